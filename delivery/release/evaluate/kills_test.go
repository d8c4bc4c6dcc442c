package evaluate

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubeop/kubeop/delivery/release/charts"
	"github.com/kubeop/kubeop/internal/sandbox"
)

// Each kill costs the start of a process, which takes about 40 ms of processor time.
var kills = flag.Int("kills", 100, "how many processes TestAnEvaluationWhoseProcessIsKilledIsTriedAgain ends")

// TestAnEvaluationWhoseProcessIsKilledIsTriedAgain has charts of the corpus evaluated and ends the processes of a pool at random, those that wait and those that start included,
// once during each evaluation, until -kills were ended: each evaluation is done all the same, after one retry, and its answer is the
// right one. Two pools do this side by side. make property ends a thousand.
func TestAnEvaluationWhoseProcessIsKilledIsTriedAgain(t *testing.T) {
	for i := range 2 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			killsIn(t, *kills/2, 256<<20+4096*(i+1)) // By this memory the test knows the processes of its pool.
		})
	}
}

func killsIn(t *testing.T, kills, memory int) {
	p := sandbox.New(sandbox.Options{Processes: 1, Limits: sandbox.Limits{Memory: int64(memory)}})
	t.Cleanup(p.Close)
	charts := steady(t, p)
	killed, evaluations, begun := 0, 0, time.Now()
	for ; killed < kills && time.Since(begun) < 5*time.Minute; evaluations++ {
		c := charts[rand.IntN(len(charts))]
		ended := make(chan int)
		go func() {
			time.Sleep(time.Duration(rand.Int64N(int64(c.took))))
			ended <- kill(t, memory)
		}()
		templates, err := renderIn(t.Context(), p, c.chart)
		killed += <-ended
		if err != nil || !maps.Equal(templates, c.templates) {
			t.Fatalf("after %d kills, %s: %v, %d templates, want %d", killed, c.name, err, len(templates), len(c.templates))
		}
	}
	if t.Logf("%d processes were ended during %d evaluations in %s", killed, evaluations, time.Since(begun)); killed < kills {
		t.Errorf("only %d processes were ended", killed)
	}
}

// corpusChart is a chart that always renders to the same.
type corpusChart struct {
	name      string
	chart     charts.Chart
	templates map[string]string
	took      time.Duration
}

func steady(t *testing.T, p *sandbox.Pool) (out []corpusChart) {
	t.Helper()
	for _, dir := range chartsOf(t) {
		c := corpusChart{name: dir, chart: charts.Chart{Files: os.DirFS(dir)}}
		first, err := renderIn(t.Context(), p, c.chart)
		if err != nil {
			continue // It is to be refused.
		}
		at := time.Now()
		c.templates, err = renderIn(t.Context(), p, c.chart)
		c.took = time.Since(at)
		if err == nil && maps.Equal(first, c.templates) {
			out = append(out, c)
		}
	}
	if len(out) < 30 {
		t.Fatalf("only %d charts render", len(out))
	}
	return out
}

// kill ends, all at once, the children of this process that evaluate within so many bytes of memory, and returns how many there were.
func kill(t *testing.T, memory int) (killed int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Error(err)
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || !strings.HasSuffix(string(line), fmt.Sprintf("\x00%s\x00%d\x00", sandbox.Command, memory)) {
			continue
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err == nil && strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", os.Getpid())) {
			pids = append(pids, pid)
		}
	}
	for _, pid := range pids {
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	return killed
}
