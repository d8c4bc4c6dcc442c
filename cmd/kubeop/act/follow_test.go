package act

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/exit"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/internal/testenv/memory"
)

var web = target.Object{Kind: target.App, Ref: identity.Ref{Tenant: "acme", Project: "shop", App: "web"}}

// TestAnObjectIsSettledByAStatusOfItsPresentVersion, and by nothing else.
func TestAnObjectIsSettledByAStatusOfItsPresentVersion(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, generation int64) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: "Because", Message: kind + " of this", ObservedGeneration: generation}
	}
	yes, no := metav1.ConditionTrue, metav1.ConditionFalse
	isReady := func(status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{condition(v1alpha1.ReadyCondition, status, 2)}
	}
	stalled := append(isReady(no), condition(v1alpha1.StalledCondition, yes, 2))
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		change     func(*v1alpha1.App)
		done       bool
		fails      string
	}{
		"nothing known":          {nil, nil, false, ""},
		"ready":                  {isReady(yes), nil, true, ""},
		"an earlier version":     {[]metav1.Condition{condition(v1alpha1.ReadyCondition, yes, 1)}, nil, false, ""},
		"in progress":            {isReady(metav1.ConditionUnknown), nil, false, ""},
		"failed, tried again":    {isReady(no), nil, false, ""},
		"stalled":                {stalled, nil, false, "Because: Ready of this"},
		"suspended":              {append(isReady(yes), condition(v1alpha1.SuspendedCondition, yes, 2)), nil, false, "Suspended of this"},
		"suspended no more":      {append(isReady(yes), condition(v1alpha1.SuspendedCondition, no, 2)), nil, true, ""},
		"the folder is new":      {isReady(yes), func(a *v1alpha1.App) { a.Annotations[v1alpha1.TreeAnnotation] = "new" }, false, ""},
		"the folder is the same": {isReady(yes), func(a *v1alpha1.App) { a.Annotations[v1alpha1.TreeAnnotation], a.Status.ObservedTree = "new", "new" }, true, ""},
		"stalled before the new": {stalled, func(a *v1alpha1.App) { a.Annotations[v1alpha1.TreeAnnotation] = "new" }, false, ""},
		"stalled with the new": {stalled, func(a *v1alpha1.App) {
			a.Annotations[v1alpha1.TreeAnnotation] = "new"
			a.Status.LastAttemptedRevision = "main@sha1:" + commitHash
		}, false, "Because: Ready of this"},
		"content of another Git": {stalled, func(a *v1alpha1.App) {
			a.Annotations[v1alpha1.TreeAnnotation] = "new"
			a.Spec.Git = &v1alpha1.GitSource{}
		}, false, "Because: Ready of this"},
		"a chart of another Git": {stalled, func(a *v1alpha1.App) {
			a.Annotations[v1alpha1.TreeAnnotation] = "new"
			a.Spec.Helm = &v1alpha1.HelmSource{Git: &v1alpha1.ChartGitSource{}}
		}, false, "Because: Ready of this"},
		"a chart of a repository": {stalled, func(a *v1alpha1.App) {
			a.Annotations[v1alpha1.TreeAnnotation] = "new"
			a.Spec.Helm = &v1alpha1.HelmSource{Repository: "https://charts.example.com"}
		}, false, "Because: Ready of this"},
		"a chart in the own folder": {stalled, func(a *v1alpha1.App) {
			a.Annotations[v1alpha1.TreeAnnotation] = "new"
			a.Spec.Helm = &v1alpha1.HelmSource{}
		}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			app := newApp()
			app.Status.Conditions = tc.conditions
			if tc.change != nil {
				tc.change(app)
			}
			done, err := settled(app)
			if done != tc.done || (err != nil) != (tc.fails != "") || err != nil && err.Error() != tc.fails {
				t.Errorf("done: %t, error: %v", done, err)
			}
		})
	}
}

// TestWaitingFollowsAnObjectThroughItsChanges and prints each new reason once.
func TestWaitingFollowsAnObjectThroughItsChanges(t *testing.T) {
	s := memory.Serve(t, newApp())
	c := newCall(s, clocktesting.NewFakeClock(noon), "")
	steps := []func(*v1alpha1.App){
		func(app *v1alpha1.App) { ready(app, metav1.ConditionFalse) },
		func(app *v1alpha1.App) { app.Annotations["other"] = "change" },
		func(app *v1alpha1.App) { ready(app, metav1.ConditionTrue) },
	}
	seen := 0
	err := follow(t.Context(), c.Call, web, time.Minute, func(o state) (bool, error) {
		if seen < len(steps) {
			app := o.DeepCopyObject().(*v1alpha1.App)
			steps[seen](app)
			seen++
			if err := s.Update(t.Context(), app); err != nil {
				t.Fatal(err)
			}
		}
		return settled(o)
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = "    0s  kubeop has not looked at it yet\n    0s  Because: of this\n"
	if got := c.complaint.String(); got != want {
		t.Errorf("standard error:\n%swant\n%s", got, want)
	}
}

func TestWaitingEndsWhenTheObjectIsDeleted(t *testing.T) {
	s := memory.Serve(t, newApp())
	err := follow(t.Context(), newCall(s, clock.RealClock{}, "").Call, web, time.Minute, func(o state) (bool, error) {
		return false, s.Delete(t.Context(), newApp())
	})
	if err == nil || err.Error() != "the app acme/shop/web was deleted" {
		t.Errorf("the error is %v", err)
	}
}

func TestTheTimeoutSaysWhatTheObjectWaitsFor(t *testing.T) {
	app := newApp()
	ready(app, metav1.ConditionFalse)
	for name, tc := range map[string]struct {
		intercept func(http.ResponseWriter, *http.Request) bool
		want      string
	}{
		"a reason":      {nil, "waiting for the app acme/shop/web ended after 300ms: Because: of this"},
		"never answers": {hang, "waiting for the app acme/shop/web ended after 300ms: nothing was seen of it"},
	} {
		t.Run(name, func(t *testing.T) {
			s := memory.Serve(t, app)
			s.Intercept = tc.intercept
			err := follow(t.Context(), newCall(s, clock.RealClock{}, "").Call, web, 300*time.Millisecond, settled)
			if exit.Code(err) != exit.NotReady || err.Error() != tc.want {
				t.Errorf("exit code %d: %v", exit.Code(err), err)
			}
		})
	}
}

// hang answers no request about an object.
func hang(_ http.ResponseWriter, r *http.Request) bool {
	if !strings.HasSuffix(r.URL.Path, "/web") {
		return false
	}
	<-r.Context().Done()
	return true
}

// TestAnInterruptionIsNoTimeout: scripts take the exit code of the timeout for an object that is not ready.
func TestAnInterruptionIsNoTimeout(t *testing.T) {
	s := memory.Serve(t, newApp())
	ctx, interrupt := context.WithCancel(t.Context())
	err := follow(ctx, newCall(s, clock.RealClock{}, "").Call, web, time.Minute, func(state) (bool, error) {
		interrupt()
		return false, nil
	})
	if !errors.Is(err, context.Canceled) || exit.Code(err) == exit.NotReady {
		t.Errorf("exit code %d: %v", exit.Code(err), err)
	}
}

// TestAnAPIServerThatAnsweredBeforeIsAskedAgain if what it answers now may pass, and if its watches end.
func TestAnAPIServerThatAnsweredBeforeIsAskedAgain(t *testing.T) {
	isWatch := func(r *http.Request) bool { return r.URL.Query().Get("watch") != "" }
	isGet := func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/web") }
	for name, tc := range map[string]struct {
		// disturbs are the requests that are disturbed, of those after the first few.
		disturbs func(*http.Request) bool
		after    int32
		code     int
		fails    string
	}{
		"a watch that is refused":       {isWatch, 0, http.StatusForbidden, ""},
		"a watch that ends at once":     {isWatch, 0, http.StatusOK, ""},
		"too busy for a watch":          {isWatch, 1, http.StatusServiceUnavailable, ""},
		"too busy for the first watch":  {isWatch, 0, http.StatusServiceUnavailable, "watching the app acme/shop/web"},
		"restarts":                      {isGet, 1, http.StatusInternalServerError, ""},
		"unavailable at first":          {isGet, 0, http.StatusServiceUnavailable, "reading the app acme/shop/web"},
		"refuses to read it after that": {isGet, 1, http.StatusForbidden, "reading the app acme/shop/web"},
	} {
		t.Run(name, func(t *testing.T) {
			s := memory.Serve(t, newApp())
			var requests, disturbed atomic.Int32
			s.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case tc.disturbs(r) && requests.Add(1) > tc.after && disturbed.Add(1) <= 2:
					w.WriteHeader(tc.code)
					return true
				case isWatch(r) && disturbed.Load() < 2: // It ends, so that the object is read again.
					w.WriteHeader(http.StatusOK)
					return true
				}
				return false
			}
			looks := 0
			c := newCall(s, clocktesting.NewFakeClock(noon), "")
			c.Clock = stepping{c.Clock}
			err := follow(t.Context(), c.Call, web, 20*time.Second, func(state) (bool, error) {
				looks++
				return disturbed.Load() >= 2, nil
			})
			if (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("the error is %v, want %q", err, tc.fails)
			}
			if err == nil && looks < 2 {
				t.Errorf("it was looked at %d times", looks)
			}
		})
	}
}

// stepping is a clock whose pauses end at once.
type stepping struct{ clock.Clock }

func (s stepping) After(time.Duration) <-chan time.Time {
	passed := make(chan time.Time, 1)
	passed <- s.Now()
	return passed
}

// TestTheCommandWaitsForItsCommit: it ends when the repository has applied the commit, and the app the version in it.
func TestTheCommandWaitsForItsCommit(t *testing.T) {
	synced := func(status metav1.ConditionStatus, also ...metav1.Condition) []metav1.Condition {
		return append([]metav1.Condition{{Type: v1alpha1.SyncedCondition, Status: status}, {Type: v1alpha1.ReadyCondition, Status: metav1.ConditionFalse, Reason: "InvalidTree", Message: "a file is wrong"}}, also...)
	}
	yes, no := metav1.ConditionTrue, metav1.ConditionFalse
	stalled := metav1.Condition{Type: v1alpha1.StalledCondition, Status: yes}
	for name, tc := range map[string]struct {
		attempted  string
		conditions []metav1.Condition
		refused    *v1alpha1.Refused
		args       []string
		out, fails string
	}{
		"applied":               {"main@sha1:" + commitHash, synced(yes), nil, []string{"--commit", commitHash}, "The app acme/shop/web is ready.\n", ""},
		"the hash is shortened": {"main@sha1:" + commitHash, synced(yes), nil, []string{"--commit", commitHash[:7]}, "The app acme/shop/web is ready.\n", ""},
		"the hash is too short": {"main@sha1:" + commitHash, synced(yes), nil, []string{"--commit", commitHash[:6]}, "", `the hash "012345" is too short: give at least 7 digits`},
		"files are wrong":       {"main@sha1:" + commitHash, synced(yes, stalled), nil, []string{"--commit", commitHash}, "The app acme/shop/web is ready.\n", ""},
		"not applied":           {"main@sha1:" + commitHash, synced(no), nil, []string{"--commit", commitHash, "--timeout", "300ms"}, "", "waiting for the repository acme ended after 300ms: InvalidTree: a file is wrong"},
		"cannot be applied":     {"main@sha1:" + commitHash, synced(no, stalled), nil, []string{"--commit", commitHash}, "", "InvalidTree: a file is wrong"},
		"not fetched":           {"main@sha1:" + later, synced(yes), nil, []string{"--commit", commitHash, "--timeout", "300ms"}, "", "waiting for the repository acme ended after 300ms"},
		"refused":               {"main@sha1:" + commitHash, synced(yes), &v1alpha1.Refused{Place: "app.yaml:5", Problem: "unknown field"}, []string{"--commit", commitHash}, "", "the newest version is refused: app.yaml:5: unknown field"},
		"refused, any version":  {"main@sha1:" + commitHash, synced(yes), &v1alpha1.Refused{Place: "app.yaml:5", Problem: "unknown field"}, nil, "The app acme/shop/web is ready.\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			app, repository := newApp(), newRepository()
			ready(app, yes)
			app.Status.Refused = tc.refused
			repository.Status.LastAttemptedRevision, repository.Status.Conditions = tc.attempted, tc.conditions
			s := memory.Serve(t, app, repository)
			out, err := newCall(s, clock.RealClock{}, "").run(t, Wait, append([]string{"acme/shop/web"}, tc.args...)...)
			wantEnd(t, out, err, tc.out, tc.fails)
		})
	}
}

// TestWaitForACommitOfThePlatform: a tenant without a repository of its own is declared there, and so is a registry.
func TestWaitForACommitOfThePlatform(t *testing.T) {
	t.Chdir(t.TempDir())
	app, platform, registry := newApp(), &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.PlatformRepository}}, &v1alpha1.Registry{ObjectMeta: metav1.ObjectMeta{Name: "ghcr"}}
	ready(app, metav1.ConditionTrue)
	registry.Status.Conditions = app.Status.Conditions
	registry.Generation = app.Generation
	platform.Status.LastAttemptedRevision, platform.Status.Conditions = "main@sha1:"+commitHash, []metav1.Condition{{Type: v1alpha1.SyncedCondition, Status: metav1.ConditionTrue}}
	s := memory.Serve(t, app, platform, registry, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}})
	for want, args := range map[string][]string{"app acme/shop/web": {"acme/shop/web"}, "registry ghcr": {"registry", "ghcr"}} {
		out, err := newCall(s, clock.RealClock{}, "").run(t, Wait, append(args, "--commit", commitHash, "--timeout", "10s")...)
		wantEnd(t, out, err, "The "+want+" is ready.\n", "")
	}
}

func TestARefusedProjectDoesNotGetTheVersionOfACommit(t *testing.T) {
	project := &v1alpha1.Project{}
	project.Status.Refused = &v1alpha1.Refused{Place: "project.yaml:2", Problem: "unknown field"}
	if done, err := settledOrRefused(project); done || err == nil || err.Error() != "the newest version is refused: project.yaml:2: unknown field" {
		t.Errorf("done: %t, error: %v", done, err)
	}
}

// TestACommitThatWasPassedOverIsReported: another commit is fetched than the one that the caller waits for.
func TestACommitThatWasPassedOverIsReported(t *testing.T) {
	t.Chdir(t.TempDir())
	over := applied(t.Context(), commitHash)
	repository := newRepository()
	repository.Status.LastAttemptedRevision = "main@sha1:aaaa"
	if done, err := over(repository); done || err != nil {
		t.Errorf("the commit that was there before: %t, %v", done, err)
	}
	repository.Status.LastAttemptedRevision = "main@sha1:bbbb"
	if done, err := over(repository); done || err == nil || !strings.Contains(err.Error(), "the repository went on to main@sha1:bbbb, and whether that contains "+commitHash+" is not known here") {
		t.Errorf("another commit: %t, %v", done, err)
	}
	if done, err := over(newApp()); done || err == nil {
		t.Errorf("no repository: %t, %v", done, err)
	}
}

// brokenPipe refuses what is written to it.
type brokenPipe struct{ bytes.Buffer }

func (*brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestProgressThatCannotBePrintedEndsTheWait(t *testing.T) {
	c := newCall(memory.Serve(t, newApp()), clock.RealClock{}, "")
	c.Err = &brokenPipe{}
	if err := follow(t.Context(), c.Call, web, time.Minute, settled); err == nil || err.Error() != "broken pipe" {
		t.Errorf("the error is %v", err)
	}
}
