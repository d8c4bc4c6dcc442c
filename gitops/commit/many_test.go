package commit

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/gitops/edit"
)

// latency is how long the server in the tests of many writers takes for each request, beside what Git takes.
const latency = 50 * time.Millisecond

// TestTwoHundredWritersLoseNothing, of one process and of several, each with its own store: each request is one commit. Half of the edits are
// in one file.
func TestTwoHundredWritersLoseNothing(t *testing.T) {
	const all = 200
	for _, processes := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d processes", processes), func(t *testing.T) {
			s := serve(t)
			s.server.Set(func() {
				s.server.Wrap = func(http.ResponseWriter, *http.Request, http.Handler) bool {
					time.Sleep(latency)
					return false
				}
			})
			took, errs := make([]time.Duration, all), make([]error, all)
			var writers sync.WaitGroup
			for p := range processes {
				w, to := &Writer{Clock: clock.RealClock{}}, s.remote()
				for i := p; i < all; i += processes {
					writers.Go(func() {
						begin := time.Now()
						_, errs[i] = w.Write(t.Context(), to, numbered(t, i))
						took[i] = time.Since(begin)
					})
				}
			}
			writers.Wait()
			pushes := 0
			for _, request := range s.server.Seen() {
				if request == "POST /app.git/git-receive-pack" {
					pushes++
				}
			}
			slices.Sort(took)
			t.Logf("%d writers: p50 %s, p99 %s, %d pushes", all, took[all/2].Round(time.Millisecond), took[all*99/100].Round(time.Millisecond), pushes)
			for i, err := range errs {
				if err != nil {
					t.Errorf("%d: %v", i, err)
				}
			}
			s.wantAll(all)
		})
	}
}

// numbered is a request that creates a file, or changes the one that others change.
func numbered(t *testing.T, i int) Request {
	t.Helper()
	id := fmt.Sprintf("w%d", i)
	if i%2 == 0 {
		return request(id, Set{File: appFile, Fields: []Field{{Path: field(t, "spec.env."+id), Value: i}}})
	}
	return request(id, Create{File: "files/" + id, Content: []byte(id)})
}

// wantAll wants the first so many numbered requests in the branch, each in one commit.
func (s *served) wantAll(all int) {
	s.T.Helper()
	ids := s.ids()
	text, files := s.bare("show", "main:"+appFile), s.bare("ls-tree", "--name-only", "main:files")
	for i := range all {
		id := fmt.Sprintf("w%d", i)
		has := slices.Contains(strings.Fields(files), id)
		if i%2 == 0 {
			value, found, err := edit.Get([]byte(text), field(s.T, "spec.env."+id))
			has = err == nil && found && edit.Same(value, i)
		}
		if !has || ids[id] != 1 {
			s.T.Errorf("%s: lost, or committed %d times", id, ids[id])
		}
	}
	if !strings.HasPrefix(text, "# The shop's front.\n") || !strings.Contains(text, "replicas: 2 # two zones\n") {
		s.T.Errorf("comments of the file are lost:\n%s", text)
	}
	s.bare("fsck", "--strict")
}

// ids counts the commits of the branch by the IDs of their requests.
func (s *served) ids() map[string]int {
	s.T.Helper()
	ids := map[string]int{}
	for _, id := range strings.Fields(s.bare("log", "--format=%(trailers:key="+Trailer+",valueonly)", "main")) {
		ids[id]++
	}
	return ids
}
