package release

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/internal/sandbox"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// hostile are charts that would crash the process that evaluates them, or never end.
var hostile = map[string]struct {
	files map[string]string
	// says lists what the message has to contain: the limit, its value, and where.
	says []string
	// counted: it could be read within the limits, but has too many parts. It gets enough processor time on a slow machine too.
	counted bool
}{
	"one large string": {files: inTemplate(configOf(`{{ repeat 3000000000 "a" | len }}`)), says: []string{"template web/templates/a.yaml", "memory, 192 MiB"}},
	"one large list":   {files: inTemplate(configOf(`{{ until 400000000 | len }}`)), says: []string{"template web/templates/a.yaml", "memory, 192 MiB"}},
	"tpl on itself": {
		files: with(inTemplate(configOf(`{{ tpl .Values.t . }}`)), "values.yaml", "t: \"{{ tpl .Values.t . }}\"\n"),
		says:  []string{"template web/templates/a.yaml", "limit of"},
	},
	"an endless range": {
		files: inTemplate(configOf(`{{ range until 30000 }}{{ range until 30000 }}{{ end }}{{ end }}`)),
		says:  []string{"template web/templates/a.yaml", "processor time, 1s"},
	},
	"in a subchart": {
		files: with(subchart(), "charts/db/templates/b.yaml", `{{ repeat 3000000000 "a" | len }}`),
		says:  []string{"template web/charts/db/templates/b.yaml", "memory, 192 MiB"},
	},
	"values of many lists": {
		files: map[string]string{"values.yaml": "a: [" + strings.Repeat("[],", (5<<20-100)/3) + "[]]\n"},
		says:  []string{"values.yaml", "takes more than the limit of"},
	},
	"manifest of many lists": {
		files: inTemplate("a: [{{ repeat 3000000 \"[],\" }}[]]\n"), says: []string{"what template web/templates/a.yaml renders to"},
	},
	"kinds of many lists": {
		files: map[string]string{"crds/a.yaml": "a: [" + strings.Repeat("[],", 600_000) + "[]]\n"},
		says:  []string{"crds/a.yaml", "more than 500000"}, counted: true,
	},
	"a schema of many lists": {
		files: map[string]string{"values.schema.json": "{\"enum\": [" + strings.Repeat("[],", 1<<20) + "[]]}"},
		says:  []string{"values.schema.json", "more than 500000"}, counted: true,
	},
	"broken text, then lists": {
		files: inTemplate("a: b: c\n---\na: [{{ repeat 1000000 \"[],\" }}[]]\n"),
		says:  []string{"what template web/templates/a.yaml renders to"}, counted: true,
	},
	"a manifest of 40 MB": {
		files: inTemplate("a: |\n{{ repeat 40000000 \"a\" | indent 2 }}\n"), says: []string{"template web/templates/a.yaml", "limit of"},
	},
}

func subchart() map[string]string {
	return map[string]string{"charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n"}
}

func with(files map[string]string, name, text string) map[string]string {
	files[name] = text
	return files
}

// needsProcesses skips a test that needs charts to be evaluated in a process of its own, such as one whose evaluation is ended.
func needsProcesses(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("the race detector cannot run in a confined process")
	}
}

// TestAHostileChartIsReportedAndNotEvaluatedAgain: a chart that crashes the process that evaluates it is reported with limit and place. It is not evaluated again, not
// even by the next operator. Neither this process nor another app is disturbed.
func TestAHostileChartIsReportedAndNotEvaluatedAgain(t *testing.T) {
	needsProcesses(t)
	limited := map[bool]*sandbox.Pool{}
	for counted, cpu := range map[bool]time.Duration{false: time.Second, true: 15 * time.Second} {
		p := sandbox.New(sandbox.Options{Processes: 2, Limits: sandbox.Limits{Memory: 192 << 20, CPU: cpu, Wall: 20 * time.Second}})
		t.Cleanup(p.Close)
		limited[counted] = p
	}
	before := residentBytes(t)
	for name, test := range hostile {
		t.Run(name, func(t *testing.T) {
			tm := newTeam(t)
			var calls atomic.Int64
			tm.evaluate = func(ctx context.Context, c apart.Call) ([]byte, error) {
				calls.Add(1)
				return evaluateIn(limited[test.counted])(ctx, c)
			}
			tm.restart("me")
			r := tm.request(sources.ChartFolder(test.files))
			out := tm.settle(r)
			tm.refused(out, test.says)
			if n := calls.Load(); n != 1 {
				t.Errorf("evaluated %d times, want once", n)
			}
			tm.restart("the next operator")
			tm.refused(tm.settle(r), test.says)
			if n := calls.Load(); n != 1 && !test.counted {
				t.Errorf("after a restart evaluated %d times, want once", n)
			}
			tm.deploy(tm.request(sources.ChartFolder(inTemplate(configOf("good")))))
		})
	}
	t.Cleanup(func() {
		if now := residentBytes(t); now > before+256<<20 {
			t.Errorf("this process grew from %d to %d MiB", before>>20, now>>20)
		}
	})
}

// refused expects a failure caused by the input, with all these texts.
func (t *team) refused(out Outcome, says []string) {
	t.Helper()
	if !errors.Is(out.Failed, fault.ErrRender) || out.Environment {
		t.Fatalf("got %v, Environment is %t; want an ErrRender", out.Failed, out.Environment)
	}
	for _, text := range says {
		if !strings.Contains(out.Failed.Error(), text) {
			t.Errorf("%q does not say %q", out.Failed, text)
		}
	}
}

func residentBytes(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// TestANewerInputEndsTheOld: an evaluation that never ends is cancelled when another input is wanted.
func TestANewerInputEndsTheOld(t *testing.T) {
	needsProcesses(t)
	tm := newTeam(t)
	begun := make(chan struct{})
	var once sync.Once
	tm.evaluate = func(ctx context.Context, c apart.Call) ([]byte, error) {
		once.Do(func() { close(begun) })
		return evaluateIn(boxes)(ctx, c)
	}
	tm.restart("me")
	endless := sources.ChartFolder(inTemplate(configOf(`{{ range until 30000 }}{{ range until 30000 }}{{ end }}{{ end }}`)))
	if _, err := tm.Reconcile(t.Context(), tm.request(endless)); err != nil {
		t.Fatal(err)
	}
	<-begun
	at := time.Now()
	tm.deploy(tm.request(sources.ChartFolder(inTemplate(configOf("good")))))
	if took := time.Since(at); took > 5*time.Second {
		t.Errorf("it took %s; the limit of processor time is 10s", took)
	}
}

// TestForceEvaluatesAgain: an input that exceeded a limit is not evaluated until a person requests it.
func TestForceEvaluatesAgain(t *testing.T) {
	tm := newTeam(t)
	over, calls := true, 0
	tm.evaluate = func(ctx context.Context, c apart.Call) ([]byte, error) {
		if calls++; over {
			return nil, &sandbox.LimitError{Limit: "memory", Value: "1 MiB", Place: "template web/templates/a.yaml"}
		}
		return evaluateIn(boxes)(ctx, c)
	}
	tm.restart("me")
	r := tm.request(sources.ChartFolder(inTemplate(configOf("good"))))
	tm.refused(tm.settle(r), []string{"template web/templates/a.yaml takes more than the limit of memory, 1 MiB"})
	over = false
	tm.restart("another")
	tm.refused(tm.settle(r), []string{"memory, 1 MiB"})
	r.Manual.Force, r.Manual.ID = true, "now"
	tm.deploy(r)
	if calls != 2 {
		t.Errorf("evaluated %d times, want once, and once when it was asked for", calls)
	}
}

// A crash of the evaluating process says nothing about the chart, which is tried again.
func TestAnEvaluationProcessThatFailsIsRetried(t *testing.T) {
	tm := newTeam(t)
	tm.evaluate = func(context.Context, apart.Call) ([]byte, error) {
		return nil, &sandbox.CrashError{State: "signal: killed"}
	}
	tm.restart("me")
	r := tm.request(sources.ChartFolder(inTemplate(configOf("good"))))
	out := tm.settle(r)
	if out.Failed == nil || !out.Environment || errors.Is(out.Failed, fault.ErrRender) || !strings.Contains(out.Failed.Error(), "signal: killed") {
		t.Fatalf("got %v, Environment is %t", out.Failed, out.Environment)
	}
	tm.evaluate = evaluateIn(boxes)
	tm.restart("another")
	tm.deploy(r)
}
