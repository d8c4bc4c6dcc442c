package release

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubeop/kubeop/delivery/release/fence"

	helm "helm.sh/helm/v3/pkg/release"

	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// pause stops one process at its nth write, counted from when it is set, until it is resumed: the process looks dead, but was only stopped.
type pause struct {
	mu       sync.Mutex
	nth      int
	reached  chan struct{}
	going    chan struct{}
	released bool
	// after are the writes that succeeded after it was resumed.
	after []string
}

func newPause(nth int) *pause {
	return &pause{nth: nth, reached: make(chan struct{}), going: make(chan struct{})}
}

func (p *pause) wrap(next http.RoundTripper) http.RoundTripper { return paused{p, next} }

func (p *pause) goOn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.released {
		p.released = true
		close(p.going)
	}
}

type paused struct {
	*pause
	next http.RoundTripper
}

func (p paused) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		return p.next.RoundTrip(r)
	}
	p.mu.Lock()
	p.nth--
	hold := p.nth == 0
	if p.nth < 0 && !p.released {
		hold = true // the whole process stands still
	}
	if p.nth == 0 {
		close(p.reached)
	}
	p.mu.Unlock()
	if hold {
		<-p.going
	}
	answer, err := p.next.RoundTrip(r)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.released && err == nil && answer.StatusCode < http.StatusMultipleChoices {
		p.after = append(p.after, r.Method+" "+r.URL.Path)
	}
	return answer, err
}

// interrupted starts an action in a process that stops at its nth write, and returns false when the action ended before.
func (t *team) interrupted(p *pause, begin func()) bool {
	t.Helper()
	begin()
	select {
	case <-p.reached:
		return true
	case <-t.notified:
		return false
	case <-time.After(time.Minute):
		t.Fatal("neither held nor ended")
	}
	return false
}

// writesOfDelivery and writesOfUninstall are the numbers of writes of the actions of the tests below: a hook, four objects and their
// records.
const (
	writesOfDelivery  = 8
	writesOfUninstall = 6
)

// TestAStoppedReleaseIsCompletedByTheNextProcess stops a process at each of its writes. The next process completes the release. When the first one is resumed, like a
// leader that was only paused, it finds that the release was taken over.
func TestAStoppedReleaseIsCompletedByTheNextProcess(t *testing.T) {
	hooks := map[string]string{"templates/hook.yaml": strings.Replace(web(nil)["templates/hook.yaml"], "pre-install", "pre-install,pre-upgrade,pre-rollback,pre-delete", 1)}
	good := func(tm *team, color string) Request {
		r := tm.request(sources.ChartFolder(fourObjects(hooks)), "color="+color)
		r.Policy.Retry = soon
		return r
	}
	broken := func(tm *team) Request {
		files := map[string]string{"templates/z.yaml": refused}
		for k, v := range hooks {
			files[k] = v
		}
		r := tm.request(sources.ChartFolder(fourObjects(files)), "color=broken")
		return r
	}
	actions := map[string]struct {
		before  func(*team)
		request func(*team) Request
		color   string
		// revisions is how many revisions there may be, including the one that the interruption costs.
		revisions int
		held      bool
	}{
		"install": {func(*team) {}, func(tm *team) Request { return good(tm, "blue") }, "blue", 2, false},
		"upgrade": {func(tm *team) { tm.deploy(good(tm, "blue")) }, func(tm *team) Request { return good(tm, "red") }, "red", 3, false},
		"rollback": {func(tm *team) {
			tm.deploy(good(tm, "blue"))
			tm.bad = broken(tm)
			tm.settle(tm.bad)
		}, func(tm *team) Request {
			r := tm.knowing(tm.bad)
			r.Recorded.Proven = true
			r.Policy.Retry, r.Actions.Remediation.Retries = soon, new(int32(0))
			return r
		}, "blue", 4, true},
	}
	for name, action := range actions {
		for nth := 1; nth <= writesOfDelivery+1; nth++ {
			t.Run(fmt.Sprintf("%s at write %d", name, nth), func(t *testing.T) {
				tm := newTeam(t)
				action.before(tm)
				r := action.request(tm)
				first, p := tm.stopped(nth)
				begin := func() {
					if out, err := first.Reconcile(t.Context(), r); err != nil || !out.Running {
						t.Fatalf("%+v, %v", out, err)
					}
				}
				if got, want := tm.interrupted(p, begin), nth <= writesOfDelivery; got != want {
					t.Fatalf("stopped at this write: %t, want %t", got, want)
				} else if !got {
					return
				}
				tm.restart("second")
				out := tm.settle(r)
				if out.Retry.Held != action.held || !action.held && out.Failed != nil || tm.color() != action.color || out.Release.Revision > action.revisions {
					t.Errorf("the second process: %+v, color %s", out, tm.color())
				}
				before := tm.statuses()
				tm.resume(first, p, r)
				out = tm.settle(r)
				after := tm.statuses()
				if out.Retry.Held != action.held || tm.color() != action.color || len(after) != len(before) || pendingIn(after) {
					t.Errorf("after the first went on: %+v, %v, before %v", out, after, before)
				}
			})
		}
	}
}

func pendingIn(statuses map[int]string) bool {
	for _, s := range statuses {
		if helm.Status(s).IsPending() || s == helm.StatusUninstalling.String() {
			return true
		}
	}
	return false
}

func TestAStoppedUninstallationIsCompletedByTheNextProcess(t *testing.T) {
	for nth := 1; nth <= writesOfUninstall+1; nth++ {
		t.Run(fmt.Sprintf("at write %d", nth), func(t *testing.T) {
			tm := newTeam(t)
			r := tm.good("blue")
			tm.deploy(r)
			first, p := tm.stopped(nth)
			stopped := tm.interrupted(p, func() {
				if _, err := first.Uninstall(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			})
			if want := nth <= writesOfUninstall; stopped != want {
				t.Fatalf("stopped at this write: %t, want %t", stopped, want)
			} else if !stopped {
				return
			}
			tm.restart("second")
			tm.uninstall(r)
			tm.resume(first, p, r)
			if left := tm.versions(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// stopped returns a process that stops at its nth write from now on. Its clock stops, too.
func (t *team) stopped(nth int) (*Engine, *pause) {
	t.Helper()
	t.catchUp()
	p := newPause(nth)
	t.Cleanup(p.goOn)
	t.between = p.wrap
	began := time.Now()
	t.now = func() time.Time {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.released {
			return began.Add(time.Hour)
		}
		return time.Now()
	}
	first := t.engine("first")
	t.between, t.now = nil, nil
	return first, p
}

// resume resumes the first process, and checks that it completed at most the writes that were under way.
func (t *team) resume(first *Engine, p *pause, r Request) {
	t.Helper()
	p.goOn()
	t.await(r)
	slot := first.pool.Slot(r.key()) // It uses the clock, which locks the pause.
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.after) > 4 { // as many objects of a kind are written at once
		t.Errorf("it wrote on: %q", p.after)
	}
	slot.Lock()
	defer slot.Unlock()
	if slot.Memory.last.Err != nil && !errors.Is(slot.Memory.last.Err, fence.ErrFenced) {
		t.Logf("it ended with %v", slot.Memory.last.Err)
	}
}
