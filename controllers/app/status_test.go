package app

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/release"
)

// TestTheSizeIsRecordedWithWhatWasDelivered: a restarted operator, which counts anew, does not write every status.
func TestTheSizeIsRecordedWithWhatWasDelivered(t *testing.T) {
	applied := func(app *v1alpha1.App) { app.Status.LastAppliedRevision = "one" }
	released := func(app *v1alpha1.App) {
		app.Spec.Type, app.Spec.Helm = v1alpha1.AppHelm, &v1alpha1.HelmSource{}
		app.Status.Release = &v1alpha1.ReleaseStatus{Name: "web", Revision: 2}
	}
	revision := func(n int) func(*scope) {
		return func(s *scope) { s.release.outcome = &release.Outcome{Release: release.Info{Name: "web", Revision: n}} }
	}
	for name, c := range map[string]struct {
		app  func(*v1alpha1.App)
		do   func(*scope)
		size int64
	}{
		"objects were written":            {app: applied, do: func(s *scope) { s.outcome.wrote = true }, size: 7},
		"nothing was written":             {app: applied, do: func(*scope) {}, size: 3},
		"another revision, already there": {app: applied, do: func(s *scope) { s.outcome.applied, s.found.Revision = true, "two" }, size: 7},
		"the same revision":               {app: applied, do: func(s *scope) { s.outcome.applied, s.found.Revision = true, "one" }, size: 3},
		"another one, not applied":        {app: applied, do: func(s *scope) { s.found.Revision = "two" }, size: 3},
		"a first release":                 {app: func(app *v1alpha1.App) { released(app); app.Status.Release = nil }, do: revision(1), size: 7},
		"an upgrade":                      {app: released, do: revision(3), size: 7},
		"the same release":                {app: released, do: revision(2), size: 3},
		"nothing was counted":             {app: applied, do: func(s *scope) { s.outcome.wrote, s.admitted.bytes = true, 0 }, size: 3},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, webApp(c.app, func(app *v1alpha1.App) { app.Status.RenderedBytes = 3 }), interceptor.Funcs{})
			b.s.admitted.bytes = 7
			c.do(b.s)
			if b.s.Record(); b.s.App.Status.RenderedBytes != c.size {
				t.Errorf("the status says %d bytes, want %d", b.s.App.Status.RenderedBytes, c.size)
			}
		})
	}
}

func TestTheSummaryNamesTheReleaseAndAFailedFetch(t *testing.T) {
	released := func(app *v1alpha1.App) {
		app.Spec.Helm, app.Status.Release = &v1alpha1.HelmSource{}, &v1alpha1.ReleaseStatus{Name: "web", Revision: 2, Chart: "web-1.2.0"}
	}
	unfetched := func(app *v1alpha1.App) {
		conditions.MarkFalse(app, v1alpha1.SourceReadyCondition, v1alpha1.FetchFailedReason, "away")
	}
	fetched := func(app *v1alpha1.App) { conditions.MarkTrue(app, v1alpha1.SourceReadyCondition, "Succeeded", "") }
	const healthy = "Release web, revision 2 of chart web-1.2.0, is healthy"
	for name, c := range map[string]struct {
		app  []func(*v1alpha1.App)
		do   func(*scope)
		want string
	}{
		"objects":                      {do: func(*scope) {}, want: "Applied 0 objects, healthy"},
		"a fetched source":             {app: []func(*v1alpha1.App){fetched}, do: func(*scope) {}, want: "Applied 0 objects, healthy"},
		"the source is away":           {app: []func(*v1alpha1.App){unfetched}, do: func(*scope) {}, want: "Applied 0 objects, healthy; its source cannot be fetched: FetchFailed, see condition SourceReady"},
		"a release":                    {app: []func(*v1alpha1.App){released}, do: func(s *scope) { s.release.outcome = &release.Outcome{} }, want: healthy},
		"a release, its chart is away": {app: []func(*v1alpha1.App){released}, do: func(s *scope) { s.found.Kept = true }, want: healthy},
		"the engine was not called":    {app: []func(*v1alpha1.App){released}, do: func(*scope) {}, want: "Applied 0 objects, healthy"},
		"objects, the source is away":  {do: func(s *scope) { s.found.Kept = true }, want: "Applied 0 objects, healthy"},
		"the release is not known yet": {do: func(s *scope) { s.release.outcome = &release.Outcome{} }, want: "Applied 0 objects, healthy"},
		"something waits to be deleted": {do: func(s *scope) {
			s.held.Objects, s.held.Token = []string{"a"}, "0123"
			s.inventory.Entries = make([]v1alpha1.InventoryEntry, 3)
		}, want: "Applied 2 objects, healthy; 1 more left the source and wait, "},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, webApp(c.app...), interceptor.Funcs{})
			c.do(b.s)
			if got := b.s.Summary(); got != c.want && (!strings.HasSuffix(c.want, ", ") || !strings.HasPrefix(got, c.want)) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// TestADeliveryOfAChartHasTheRevisionOfItsRelease.
func TestADeliveryOfAChartHasTheRevisionOfItsRelease(t *testing.T) {
	b := newHelmFixture(t, &engine{})
	b.s.found.Revision, b.s.found.Reference, b.s.found.Files.Author = "1.2.0", "registry.example.com/web:1", "Ann"
	if got := b.s.source(); got.Release != 0 || got.Revision != "1.2.0" || got.Image != "registry.example.com/web:1" || got.Author != "Ann" {
		t.Errorf("the delivery is %+v", got)
	}
	b.app.Status.Release = &v1alpha1.ReleaseStatus{Revision: 3}
	if got := b.s.source(); got.Release != 3 {
		t.Errorf("the delivery is of revision %d", got.Release)
	}
}

// TestTheStatusSaysSinceWhenAnAppIsUnhealthy.
func TestTheStatusSaysSinceWhenAnAppIsUnhealthy(t *testing.T) {
	b := newFixture(t, webApp(), interceptor.Funcs{})
	b.s.unhealthySince = &metav1.Time{Time: time.Unix(1000, 0)}
	if b.s.Record(); !b.app.Status.UnhealthySince.Equal(b.s.unhealthySince) {
		t.Errorf("the status says since %v", b.app.Status.UnhealthySince)
	}
	b.s.unhealthySince = nil
	if b.s.Record(); b.app.Status.UnhealthySince != nil {
		t.Errorf("of a healthy App the status says since %v", b.app.Status.UnhealthySince)
	}
}

// TestAWriteGivesTheAppItsFullTimeToBecomeHealthy, unless nothing could be written.
func TestAWriteGivesTheAppItsFullTimeToBecomeHealthy(t *testing.T) {
	away := errors.New("away")
	for name, errs := range map[string]map[string]error{"all": nil, "some": {"two": away}, "none": {"one": away, "two": away}} {
		b := newFixture(t, holding(), patched(errs))
		b.deliver("one", "two")
		b.s.unhealthySince = &metav1.Time{Time: time.Unix(1000, 0)}
		_ = b.applier.apply(t.Context(), b.s)
		if wrote := name != "none"; b.s.outcome.wrote != wrote || (b.s.unhealthySince == nil) != wrote {
			t.Errorf("%s written: wrote %t, unhealthy since %v", name, b.s.outcome.wrote, b.s.unhealthySince)
		}
	}
}

// TestAnActionSaysWhatItWaitsForAndWhyItBegan.
func TestAnActionSaysWhatItWaitsForAndWhyItBegan(t *testing.T) {
	for want, o := range map[string]release.Outcome{
		"release web waits for a free worker; next is upgrading it": {Running: true, Queued: true, Action: "upgrading", Why: "drift"},
		"upgrading release web: its values changed":                 {Running: true, Action: "upgrading", Why: "its values changed"},
		"upgrading release web":                                     {Running: true, Action: "upgrading"},
	} {
		if got := underWay("web", o).Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	b := newHelmFixture(t, &engine{})
	why := func(o *release.Outcome) (texts []string) {
		b.s.release.outcome = o
		for _, n := range b.s.release.why() {
			if n.Event != "Normal" || n.Reason != v1alpha1.ProgressingReason || n.Condition != "" {
				t.Errorf("the event is %+v", n)
			}
			texts = append(texts, n.Message)
		}
		return texts
	}
	ended := time.Unix(1000, 0)
	for _, c := range []struct {
		outcome *release.Outcome
		want    string
	}{
		{nil, ""}, {&release.Outcome{Ended: ended}, ""}, {&release.Outcome{Ended: ended, Why: "a"}, "a"}, {&release.Outcome{Ended: ended, Why: "a"}, ""},
		{&release.Outcome{Ended: ended.Add(time.Second), Why: "b"}, "b"}, {&release.Outcome{Ended: ended, Why: "a"}, ""},
	} {
		if got := strings.Join(why(c.outcome), " "); got != c.want {
			t.Errorf("%+v: the events are %q, want %q", c.outcome, got, c.want)
		}
	}
}

// TestOnlyTheHealthIsCheckedWhileTheSourceIsAway: the other conditions stay.
func TestOnlyTheHealthIsCheckedWhileTheSourceIsAway(t *testing.T) {
	for kept, want := range map[bool]string{false: "abc", true: "b"} {
		b := newFixture(t, webApp(), interceptor.Funcs{})
		did := ""
		do := func(condition, what string) act {
			return act{condition, always, func(context.Context, *scope) error { did += what; return nil }}
		}
		b.s.found.Kept = kept
		steps := b.s.applicable(do(v1alpha1.AppliedCondition, "a"), do(v1alpha1.HealthyCondition, "b"), do(v1alpha1.TestSuccessCondition, "c"))
		if _, err := b.steps.Run(t.Context(), b.app, b.s, steps...); err != nil || did != want || b.s.outcome.done == kept {
			t.Errorf("with the source away (%t) the steps %s ran, complete %t: %v", kept, did, b.s.outcome.done, err)
		}
		if c := conditions.Get(b.app, v1alpha1.AppliedCondition); (c == nil) != kept {
			t.Errorf("with the source away (%t) the condition is %v", kept, c)
		}
	}
}

// TestTheStatusHasTheGenerationThatIsApplied: without it, nobody could say after a restart whether an App whose source is away runs with its present spec.
func TestTheStatusHasTheGenerationThatIsApplied(t *testing.T) {
	no := errors.New("no")
	type end struct {
		condition string
		err       error
	}
	for name, c := range map[string]struct {
		ends []end
		kept bool
		want int64
	}{
		"it is applied":                   {ends: []end{{v1alpha1.AppliedCondition, nil}}, want: 7},
		"it is applied, and not healthy":  {ends: []end{{v1alpha1.AppliedCondition, nil}, {v1alpha1.HealthyCondition, no}}, want: 7},
		"it cannot be applied":            {ends: []end{{v1alpha1.AppliedCondition, step.Fail("R", no)}}, want: 0},
		"it is being applied":             {ends: []end{{v1alpha1.AppliedCondition, step.Wait("R", time.Minute, "later")}}, want: 0},
		"it is not rendered":              {ends: []end{{v1alpha1.RenderedCondition, no}, {v1alpha1.AppliedCondition, nil}}, want: 6},
		"it is released":                  {ends: []end{{v1alpha1.ReleasedCondition, nil}}, want: 7},
		"what left the chart stays there": {ends: []end{{v1alpha1.ReleasedCondition, nil}, {v1alpha1.HealthyCondition, nil}, {v1alpha1.ReleasedCondition, no}}, want: 0},
		"its source is away":              {ends: []end{{v1alpha1.AppliedCondition, no}, {v1alpha1.HealthyCondition, nil}}, kept: true, want: 6},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, webApp(func(app *v1alpha1.App) { app.Generation, app.Status.AppliedGeneration = 7, new(int64(6)) }), interceptor.Funcs{})
			b.s.found.Kept = c.kept
			var acts []act
			for _, e := range c.ends {
				acts = append(acts, act{e.condition, always, func(context.Context, *scope) error { return e.err }})
			}
			_, _ = b.steps.Run(t.Context(), b.app, b.s, b.s.applicable(acts...)...)
			if got := b.app.Status.AppliedGeneration; got == nil || *got != c.want {
				t.Errorf("the status has generation %v, want %d", got, c.want)
			}
		})
	}
}
