package source

import (
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// deliveredApp is an App whose current spec and folder were delivered.
func deliveredApp(change func(*v1alpha1.App)) *v1alpha1.App {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-a-b", Name: "web", UID: "1", Generation: 2, Annotations: map[string]string{v1alpha1.TreeAnnotation: "tree"}}}
	app.Status.LastAppliedRevision, app.Status.ObservedTree = "main@sha1:1", "tree"
	app.Status.AppliedGeneration = new(int64(2))
	if change != nil {
		change(app)
	}
	return app
}

func TestAnAppIsDeliveredWithItsCurrentSpecAndFolder(t *testing.T) {
	raw := func(a *v1alpha1.App) { a.Spec.Raw = &v1alpha1.RawSource{Path: "manifests"} }
	before := func(a *v1alpha1.App, generation int64, result string) {
		a.Status.AppliedGeneration, a.Status.Deliveries = nil, []v1alpha1.DeliveryRecord{{Generation: generation, Result: result}, {Generation: 2, Result: v1alpha1.DeliverySucceeded}}
	}
	cases := map[string]struct {
		change func(*v1alpha1.App)
		want   bool
	}{
		"all is delivered":          {nil, true},
		"nothing was applied":       {func(a *v1alpha1.App) { a.Status.AppliedGeneration = nil }, false},
		"the last attempt failed":   {func(a *v1alpha1.App) { a.Status.AppliedGeneration = new(int64) }, false},
		"the spec is newer":         {func(a *v1alpha1.App) { a.Generation = 3 }, false},
		"no revision is known":      {func(a *v1alpha1.App) { a.Status.LastAppliedRevision = "" }, false},
		"its folder":                {raw, true},
		"its folder is newer":       {func(a *v1alpha1.App) { raw(a); a.Status.ObservedTree = "old" }, false},
		"a folder that is not used": {func(a *v1alpha1.App) { a.Status.ObservedTree = "old" }, true},
		"before the field existed":  {func(a *v1alpha1.App) { before(a, 2, v1alpha1.DeliverySucceeded) }, true},
		"of an earlier spec, then":  {func(a *v1alpha1.App) { before(a, 1, v1alpha1.DeliverySucceeded) }, false},
		"in progress, then":         {func(a *v1alpha1.App) { before(a, 2, v1alpha1.DeliveryProgressing) }, false},
		"it failed after a success": {func(a *v1alpha1.App) {
			before(a, 2, v1alpha1.DeliverySucceeded)
			a.Status.AppliedGeneration = new(int64)
		}, false},
	}
	for name, c := range cases {
		if got := delivered(deliveredApp(c.change)); got != c.want {
			t.Errorf("%s: delivered %t, want %t", name, got, c.want)
		}
	}
}

func TestOnlySpecsWithFilesUseTheFolder(t *testing.T) {
	for name, c := range map[string]struct {
		spec v1alpha1.AppSpec
		want bool
	}{
		"nothing":                 {v1alpha1.AppSpec{}, false},
		"an image":                {v1alpha1.AppSpec{Image: &v1alpha1.ImageSource{}}, false},
		"files of an image":       {v1alpha1.AppSpec{Image: &v1alpha1.ImageSource{ConfigFiles: []v1alpha1.ImageFiles{{}}}}, true},
		"manifests in the spec":   {v1alpha1.AppSpec{Raw: &v1alpha1.RawSource{}}, false},
		"manifests in the folder": {v1alpha1.AppSpec{Raw: &v1alpha1.RawSource{Path: "."}}, true},
		"a chart of a repository": {v1alpha1.AppSpec{Helm: &v1alpha1.HelmSource{}}, false},
		"a chart in the folder":   {v1alpha1.AppSpec{Helm: &v1alpha1.HelmSource{Path: "chart"}}, true},
		"values files":            {v1alpha1.AppSpec{Helm: &v1alpha1.HelmSource{ValuesFiles: []string{"values.yaml"}}}, true},
		"another Git repository":  {v1alpha1.AppSpec{Git: &v1alpha1.GitSource{}}, false},
	} {
		if got := usesFolder(&c.spec); got != c.want {
			t.Errorf("%s: the folder is used: %t, want %t", name, got, c.want)
		}
	}
}

// passOf is a pass of a Fetcher over an App.
func passOf(app *v1alpha1.App) *pass {
	s := (&subject.Subjects{Clock: clocktesting.NewFakePassiveClock(time.Unix(1000, 0))}).New(app)
	return &pass{Subject: s, found: &Found{}, last: &lastQuery{}}
}

// TestAFailedSourceDoesNotAffectADeliveredApp, except if its content is not trusted.
func TestAFailedSourceDoesNotAffectADeliveredApp(t *testing.T) {
	cases := map[string]struct {
		err   error
		kept  bool
		waits bool
		// again: when it is fetched again before the interval.
		again time.Duration
	}{
		"it cannot be reached":      {failure.ErrUnavailable, true, false, time.Second},
		"it refuses the login":      {failure.ErrAuthentication, true, false, 0},
		"it is not there":           {failure.ErrNotFound, true, false, 0},
		"it waits for its turn":     {failure.ErrBusy, true, true, time.Second},
		"its signature is wrong":    {failure.ErrSignature, false, false, 0},
		"its digest is another one": {failure.ErrDigest, false, false, 0},
		"its Flux source waits":     {failure.ErrNotReady, false, true, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, isDelivered := range []bool{true, false} {
				p := passOf(deliveredApp(func(a *v1alpha1.App) {
					if !isDelivered {
						a.Generation = 3
					}
				}))
				err := (&Fetcher{}).end(p, fmt.Errorf("fetching: %w", c.err))
				if !errors.Is(err, c.err) || step.Waits(err) != c.waits {
					t.Errorf("delivered %t: error %v", isDelivered, err)
				}
				if kept := c.kept && isDelivered; p.found.Kept != kept {
					t.Errorf("delivered %t: what was delivered is kept: %t, want %t", isDelivered, p.found.Kept, kept)
				}
				if isDelivered && p.Again() != c.again || !isDelivered && p.Again() != 0 {
					t.Errorf("delivered %t: it is fetched again after %s", isDelivered, p.Again())
				}
				if p.found.InLine != errors.Is(c.err, failure.ErrBusy) {
					t.Errorf("it waits for its turn: %t", p.found.InLine)
				}
			}
		})
	}
}

func TestASourceThatAnsweredEndsWell(t *testing.T) {
	p := passOf(deliveredApp(nil))
	if err := (&Fetcher{}).end(p, nil); err != nil || p.found.Kept {
		t.Errorf("error %v, kept %t", err, p.found.Kept)
	}
	p.found.stale = stale{err: failure.ErrUnavailable, retry: time.Minute}
	if err := (&Fetcher{}).end(p, nil); !errors.Is(err, failure.ErrUnavailable) || p.found.Kept || p.Again() != time.Minute {
		t.Errorf("with a stale answer: error %v, kept %t, again after %s", err, p.found.Kept, p.Again())
	}
}

func TestADecidedOutcomeIsNotChanged(t *testing.T) {
	decided := step.Stop("Reason", failure.ErrUnavailable)
	if got := outcomeOf(decided); !errors.Is(got, decided) || got.Error() != decided.Error() {
		t.Errorf("got %v", got)
	}
	if got := outcomeOf(nil); got != nil {
		t.Errorf("got %v", got)
	}
}

// TestStepsWhileASourceIsFetched checks what is kept and reported before and after the time in which an answer is expected.
func TestStepsWhileASourceIsFetched(t *testing.T) {
	never := deliveredApp(func(a *v1alpha1.App) { a.Generation = 3 })
	for name, c := range map[string]struct {
		app   *v1alpha1.App
		since time.Duration
		kept  bool
		waits bool
	}{
		"the fetch has just begun":             {deliveredApp(nil), step.Quiet - time.Second, false, true},
		"it lasts, and something is delivered": {deliveredApp(nil), step.Quiet, true, false},
		"it lasts, and nothing is delivered":   {never, step.Quiet, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := passOf(c.app)
			err := (&Fetcher{}).end(p, &cache.Unanswered{Since: p.Now().Add(-c.since)})
			if p.found.Kept != c.kept || step.Waits(err) != c.waits || err == nil {
				t.Errorf("kept %t, error %v", p.found.Kept, err)
			}
		})
	}
}

// TestAppsOfOneCommitHaveOneCause: a source is fetched once for all of them.
func TestAppsOfOneCommitHaveOneCause(t *testing.T) {
	app := func(name, commit string) *pass {
		a := deliveredApp(nil)
		a.Name, a.UID = name, types.UID("uid of "+name)
		a.Annotations[v1alpha1.RevisionAnnotation] = commit
		a.Status.ObservedGeneration = 1
		return passOf(a)
	}
	q := cache.Question{Request: "now"}
	web, api := app("web", "main@sha1:1"), app("api", "main@sha1:1")
	if a, b := web.causeOf(q), api.causeOf(q); a == "" || a != b {
		t.Errorf("two apps of one commit have the causes %q and %q", a, b)
	}
	if a, b := web.causeOf(q), app("web", "main@sha1:2").causeOf(q); a == b {
		t.Errorf("two commits have the cause %q", a)
	}
	web.last.cause = web.commonCause(q)
	if a, b := web.causeOf(q), api.causeOf(q); a == b {
		t.Errorf("an app with a second request has the cause %q of the others", a)
	}
	if byHand := app("web", ""); byHand.causeOf(q) == byHand.commonCause(q) {
		t.Error("an app that was not declared in Git shares its cause")
	}
	web.last.question = q
	if got := web.causeOf(q); got != "" {
		t.Errorf("for the former query the cause is %q, want none", got)
	}
}

func TestAfterARestartTheStatusHasTheLastQuery(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.App)
		want   bool
	}{
		"nothing is new":     {func(*v1alpha1.App) {}, false},
		"the spec is newer":  {func(a *v1alpha1.App) { a.Generation = 3 }, true},
		"there is a request": {func(a *v1alpha1.App) { a.Annotations["reconcile.fluxcd.io/requestedAt"] = "now" }, true},
		"it was handled": {func(a *v1alpha1.App) {
			a.Annotations["reconcile.fluxcd.io/requestedAt"], a.Status.LastHandledReconcileAt = "now", "now"
		}, false},
	} {
		p := passOf(deliveredApp(func(a *v1alpha1.App) { a.Status.ObservedGeneration = 2; c.change(a) }))
		if got := p.isNew(cache.Question{Request: "any"}); got != c.want {
			t.Errorf("%s: the query is new: %t, want %t", name, got, c.want)
		}
	}
}
