package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/release"
	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

// engine is a release engine with fixed answers.
type engine struct {
	outcome release.Outcome
	err     error
	// done is the answer to MarkFailed and Uninstall, and differences that to Drift.
	done        bool
	differences []cluster.Difference
	requests    []release.Request
	marked      []string
	compared    [][]cluster.Ref
	corrected   bool
}

func (e *engine) Reconcile(_ context.Context, r release.Request) (release.Outcome, error) {
	e.requests = append(e.requests, r)
	return e.outcome, e.err
}

func (e *engine) Test(_ context.Context, r release.Request) (release.Outcome, error) {
	return e.Reconcile(context.Background(), r)
}

func (e *engine) Drift(_ context.Context, r release.Request, refs []cluster.Ref, correct bool) ([]cluster.Difference, error) {
	e.requests, e.compared, e.corrected = append(e.requests, r), append(e.compared, refs), correct
	return e.differences, e.err
}

func (e *engine) MarkFailed(_ context.Context, _ release.Request, why string) (bool, error) {
	e.marked = append(e.marked, why)
	return e.done, e.err
}

func (e *engine) Uninstall(context.Context, release.Request) (bool, error) { return e.done, e.err }

// newHelmFixture has a Helm App whose release an engine makes.
func newHelmFixture(t *testing.T, e *engine, change ...func(*v1alpha1.App)) *fixture {
	t.Helper()
	app := webApp(append([]func(*v1alpha1.App){func(app *v1alpha1.App) {
		app.Spec.Type, app.Spec.Helm = v1alpha1.AppHelm, &v1alpha1.HelmSource{Path: "chart"}
	}}, change...)...)
	b := newFixture(t, app, interceptor.Funcs{})
	b.releaser.engine = e
	b.s.Owner.Tenant, b.s.Client = "acme", b.api
	return b
}

// TestTheOutcomeOfAReleaseIsReported: what the step says of each outcome, and which facts it leaves for the later steps.
func TestTheOutcomeOfAReleaseIsReported(t *testing.T) {
	requested := func(app *v1alpha1.App) {
		app.Annotations = map[string]string{meta.ForceRequestAnnotation: "1", v1alpha1.ResetAnnotation: "2"}
	}
	tests := func(app *v1alpha1.App) { app.Spec.Helm.Test.Enable = true }
	for name, c := range map[string]struct {
		outcome release.Outcome
		err     error
		app     func(*v1alpha1.App)
		want    string
		// applied: the revision is in the cluster. proven: it passed its checks. accepted: the manual request was carried out.
		applied, proven, accepted bool
		notes                     []string
	}{
		"deployed":                {want: "done", applied: true, notes: []string{v1alpha1.RemediatedCondition, v1alpha1.TestSuccessCondition}},
		"deployed, to be tested":  {app: tests, want: "done", applied: true, notes: []string{v1alpha1.RemediatedCondition}},
		"an upgrade failed":       {outcome: release.Outcome{Failed: errors.New("no"), Deployed: release.Deployed{Revision: 2}}, want: "failed UpgradeFailed: no", notes: []string{v1alpha1.RemediatedCondition, v1alpha1.TestSuccessCondition}},
		"it was rolled back":      {outcome: release.Outcome{Remediation: &release.Remediation{Kind: v1alpha1.RemediationRollback, To: 3}}, want: "done", applied: true, proven: true, notes: []string{v1alpha1.RemediatedCondition, v1alpha1.TestSuccessCondition}},
		"the rollback failed":     {outcome: release.Outcome{Remediation: &release.Remediation{Kind: v1alpha1.RemediationRollback, To: 3, Err: errors.New("no")}}, want: "done", applied: true, notes: []string{v1alpha1.RemediatedCondition, v1alpha1.TestSuccessCondition}},
		"it was uninstalled":      {outcome: release.Outcome{Remediation: &release.Remediation{Kind: v1alpha1.RemediationUninstall}}, want: "done", applied: true, notes: []string{v1alpha1.RemediatedCondition, v1alpha1.TestSuccessCondition}},
		"it runs":                 {outcome: release.Outcome{Running: true, Action: "upgrading"}, want: "soon, after 2s"},
		"the engine is draining":  {err: fault.ErrDraining, want: "waits Progressing: "},
		"a request was accepted":  {outcome: release.Outcome{Accepted: true}, app: requested, want: "done", applied: true, accepted: true, notes: []string{v1alpha1.RemediatedCondition, v1alpha1.TestSuccessCondition}},
		"accepted, and it runs":   {outcome: release.Outcome{Accepted: true, Running: true}, app: requested, want: "soon, after 2s", accepted: true},
		"nothing was requested":   {outcome: release.Outcome{Accepted: true}, want: "done", applied: true, notes: []string{v1alpha1.RemediatedCondition, v1alpha1.TestSuccessCondition}},
		"a request is not begun":  {app: requested, want: "done", applied: true, notes: []string{v1alpha1.RemediatedCondition, v1alpha1.TestSuccessCondition}},
		"only a reset, accepted":  {outcome: release.Outcome{Accepted: true}, app: func(a *v1alpha1.App) { requested(a); delete(a.Annotations, meta.ForceRequestAnnotation) }, want: "done", applied: true, accepted: true, notes: []string{v1alpha1.RemediatedCondition, v1alpha1.TestSuccessCondition}},
		"only an attempt, begun":  {outcome: release.Outcome{Accepted: true}, app: func(a *v1alpha1.App) { requested(a); delete(a.Annotations, v1alpha1.ResetAnnotation) }, want: "done", applied: true, accepted: true, notes: []string{v1alpha1.RemediatedCondition, v1alpha1.TestSuccessCondition}},
		"the drift is not wanted": {app: func(a *v1alpha1.App) { a.Spec.Drift.Mode = v1alpha1.DriftOff }, want: "done", applied: true, notes: []string{v1alpha1.RemediatedCondition, v1alpha1.TestSuccessCondition}},
	} {
		t.Run(name, func(t *testing.T) {
			e := &engine{outcome: c.outcome, err: c.err}
			change := c.app
			if change == nil {
				change = func(*v1alpha1.App) {}
			}
			b := newHelmFixture(t, e, change)
			if got := b.ended(b.releaser.release(t.Context(), b.s)); !strings.HasPrefix(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			var notes []string
			for _, n := range b.s.release.notes {
				notes = append(notes, n.Condition)
			}
			if diff := cmp.Diff(c.notes, notes); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if f := b.s.release; b.s.outcome.applied != c.applied || f.proven != c.proven || f.accepted != c.accepted || (f.outcome == nil) != (c.outcome.Running || c.err != nil) {
				t.Errorf("applied %t, proven %t, accepted %t, outcome %v", b.s.outcome.applied, f.proven, f.accepted, f.outcome)
			}
			b.s.Record()
			if handled := b.s.App.Status.LastHandledForceAt; (handled == "1") != (c.accepted && b.s.App.Annotations[meta.ForceRequestAnnotation] != "") {
				t.Errorf("the status says that request %q is handled", handled)
			}
		})
	}
}

// TestARequestForAReleaseHasTheSettingsOfItsApp.
func TestARequestForAReleaseHasTheSettingsOfItsApp(t *testing.T) {
	b := newHelmFixture(t, &engine{}, func(a *v1alpha1.App) {
		a.Annotations = map[string]string{meta.ForceRequestAnnotation: "1", v1alpha1.ResetAnnotation: "2"}
		a.Spec.Helm.ReleaseName, a.Spec.TargetNamespace = "shop", "ingress"
		a.Spec.RetryInterval = &metav1.Duration{Duration: 7 * time.Second}
		a.Status.Release = &v1alpha1.ReleaseStatus{Name: "shop", Deployed: 3, Content: "c", Proven: true}
	})
	b.s.Hide("hunter2")
	r := b.releaser.request(t.Context(), b.s)
	if r.Name != "shop" || r.Tenant != "acme" || r.Namespace != shop || r.App.Name != "web" || !slices.Equal(r.Sensitive, []string{"hunter2"}) {
		t.Errorf("it is about release %s of %s in %s, tenant %s, hidden %v", r.Name, r.App, r.Namespace, r.Tenant, r.Sensitive)
	}
	if want := (release.Manual{Force: true, Reset: true, ID: "1/2"}); r.Manual != want {
		t.Errorf("a person requests %+v, want %+v", r.Manual, want)
	}
	if r.Recorded.Revision != 3 || r.Recorded.Content != "c" || !r.Recorded.Proven || !strings.HasSuffix(r.Input.Admission, " in ingress") {
		t.Errorf("recorded is %+v, the admission %q", r.Recorded, r.Input.Admission)
	}
	if got := r.Policy.Retry(5); got != 7*time.Second {
		t.Errorf("tried again after %s, want the App's interval", got)
	}
	b.app.Spec.RetryInterval = nil
	if one, five := retryAfter(b.app, 1), retryAfter(b.app, 5); one != time.Second || five <= one {
		t.Errorf("without an interval after %s, and after %s the fifth time", one, five)
	}
}

// TestAReleaseIsTestedOncePerRevision, and a failed test fails the App unless it says otherwise.
func TestAReleaseIsTestedOncePerRevision(t *testing.T) {
	for name, c := range map[string]struct {
		last    release.Test
		ignores bool
		outcome release.Outcome
		err     error
		want    string
		proven  bool
		asked   int
	}{
		"the last tests succeeded":            {last: release.Test{Result: "Succeeded"}, want: "done", proven: true},
		"the last tests failed":               {last: release.Test{Result: "Failed", Why: "Pod/web-test: exit code 1"}, want: "failed TestFailed: a test of the chart failed: Pod/web-test: exit code 1, after 1m0s"},
		"failures are ignored":                {last: release.Test{Result: "Failed"}, ignores: true, want: "done", proven: true},
		"the chart has no tests":              {want: "done", proven: true, asked: 1},
		"they run":                            {outcome: release.Outcome{Running: true}, want: "soon, after 2s", asked: 1},
		"they could not run, and are overdue": {outcome: release.Outcome{Failed: errors.New("no quota")}, want: "failed Retrying: no quota, after 100ms", asked: 1},
		"they could not run":                  {outcome: release.Outcome{Failed: errors.New("no quota"), Retry: release.Retry{At: time.Unix(1_000_007, 0)}}, want: "failed Retrying: no quota, after 7s", asked: 1},
		"the engine is draining":              {err: fault.ErrDraining, want: "waits Progressing: ", asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			e := &engine{outcome: c.outcome, err: c.err}
			b := newHelmFixture(t, e, func(a *v1alpha1.App) { a.Spec.Helm.Test = v1alpha1.HelmTest{Enable: true, IgnoreFailures: c.ignores} })
			b.s.release.outcome = &release.Outcome{Test: c.last}
			if got := b.ended(b.releaser.test(t.Context(), b.s)); !strings.HasPrefix(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if b.s.release.proven != c.proven || len(e.requests) != c.asked {
				t.Errorf("proven %t, want %t; tested %d times, want %d", b.s.release.proven, c.proven, len(e.requests), c.asked)
			}
		})
	}
}

// TestOnlyAnUpgradeThatWasNeverHealthyIsMarkedAsFailed: it is then retried or rolled back.
func TestOnlyAnUpgradeThatWasNeverHealthyIsMarkedAsFailed(t *testing.T) {
	upgrade := &release.Outcome{Deployed: release.Deployed{Revision: 2, Content: "c"}}
	proven := &v1alpha1.ReleaseStatus{Name: "web", Deployed: 2, Content: "c", Proven: true}
	for name, c := range map[string]struct {
		outcome *release.Outcome
		status  *v1alpha1.ReleaseStatus
		refused bool
		err     error
		want    string
		asked   bool
	}{
		"an upgrade":                 {outcome: upgrade, want: "failed Unhealthy: no pods, after 50ms", asked: true},
		"an install":                 {outcome: &release.Outcome{Deployed: release.Deployed{Revision: 1, Installed: true}}, want: "failed Failed: no pods"},
		"the engine was not called":  {want: "failed Failed: no pods"},
		"one that was healthy":       {outcome: upgrade, status: proven, want: "failed Failed: no pods"},
		"the former one was healthy": {outcome: &release.Outcome{Deployed: release.Deployed{Revision: 3}}, status: proven, want: "failed Unhealthy: no pods, after 50ms", asked: true},
		"another revision is newer":  {outcome: upgrade, refused: true, want: "failed Failed: no pods", asked: true},
		"the engine is draining":     {outcome: upgrade, err: fault.ErrDraining, want: "waits Progressing: ", asked: true},
	} {
		t.Run(name, func(t *testing.T) {
			e := &engine{done: !c.refused, err: c.err}
			b := newHelmFixture(t, e, func(a *v1alpha1.App) { a.Status.Release = c.status })
			b.s.release.outcome = c.outcome
			b.s.unhealthySince = &metav1.Time{Time: b.clock.Now()}
			if got := b.ended(b.releaser.markFailed(t.Context(), b.s, errors.New("no pods"))); !strings.HasPrefix(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if asked := len(e.marked) > 0; asked != c.asked || (b.s.unhealthySince == nil) != (c.asked && !c.refused && c.err == nil) {
				t.Errorf("marked as failed: %v, unhealthy since %v", e.marked, b.s.unhealthySince)
			}
		})
	}
}

// TestDriftOfAReleaseIsComparedOncePerState, and corrected if the App says so.
func TestDriftOfAReleaseIsComparedOncePerState(t *testing.T) {
	recorded := entry("ConfigMap", "web")
	recorded.Digest = "as Helm wrote it"
	newDrift := func(t *testing.T, mode v1alpha1.DriftMode, e *engine, live metav1.Object) *fixture {
		b := newHelmFixture(t, e, func(a *v1alpha1.App) {
			a.Spec.Drift.Mode, a.Status.Inventory.Entries = mode, []v1alpha1.InventoryEntry{recorded}
			a.Status.Release = &v1alpha1.ReleaseStatus{Name: "web", Deployed: 1}
		})
		b.releaser.applier.Live = func(context.Context, schema.GroupVersionKind, types.NamespacedName) (metav1.Object, bool, error) {
			return live, true, nil
		}
		return b
	}
	changed := &metav1.ObjectMeta{Namespace: shop, Name: "web", UID: "1", ResourceVersion: "9"}
	gone := []cluster.Difference{{Object: "ConfigMap/web", Missing: true}}
	find := func(b *fixture) string {
		return b.ended(b.releaser.findDrift(t.Context(), b.s, release.Request{}))
	}
	t.Run("reported", func(t *testing.T) {
		e := &engine{differences: gone}
		b := newDrift(t, v1alpha1.DriftWarn, e, changed)
		for range 2 {
			if got := find(b); got != "done" || len(e.compared) != 1 || e.corrected {
				t.Errorf("%s: compared %d times, corrected %t", got, len(e.compared), e.corrected)
			}
			if len(b.s.drift.Notes) == 0 || !strings.Contains(b.s.drift.Notes[0].Message, "ConfigMap/web") {
				t.Errorf("reported is %+v", b.s.drift.Notes)
			}
		}
		changed.ResourceVersion = "10"
		b.app.Generation++
		if find(b); len(e.compared) != 2 {
			t.Errorf("after another change it was compared %d times", len(e.compared))
		}
	})
	t.Run("corrected", func(t *testing.T) {
		e := &engine{differences: gone}
		b := newDrift(t, v1alpha1.DriftCorrect, e, changed)
		if got := find(b); got != "done" || len(e.compared) != 1 || !e.corrected {
			t.Errorf("%s: compared %d times, corrected %t", got, len(e.compared), e.corrected)
		}
	})
	t.Run("nobody changed it", func(t *testing.T) {
		e := &engine{}
		b := newDrift(t, v1alpha1.DriftWarn, e, changed)
		b.s.inventory.Entries = nil
		if got := find(b); got != "done" || len(e.compared) != 0 {
			t.Errorf("%s: compared %d times", got, len(e.compared))
		}
	})
	t.Run("the watch is behind", func(t *testing.T) {
		e := &engine{differences: gone}
		b := newDrift(t, v1alpha1.DriftWarn, e, &metav1.ObjectMeta{Namespace: shop, Name: "web", UID: "1", ResourceVersion: "9"})
		b.s.writes.Released(map[string]string{recorded.ID: "12"}, b.clock.Now())
		if got := find(b); got != "done" || len(e.compared) != 0 {
			t.Errorf("%s: a version from before the last write was compared %d times", got, len(e.compared))
		}
		b.clock.Step(time.Minute) // Long enough for any watch.
		if got := find(b); got != "done" || len(e.compared) != 1 {
			t.Errorf("%s: later it was compared %d times", got, len(e.compared))
		}
	})
	t.Run("the watch fails", func(t *testing.T) {
		b := newDrift(t, v1alpha1.DriftWarn, &engine{}, changed)
		b.releaser.applier.Live = func(context.Context, schema.GroupVersionKind, types.NamespacedName) (metav1.Object, bool, error) {
			return nil, true, errors.New("away")
		}
		if got := find(b); got != "failed Failed: ConfigMap/web: away" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("corrected too often", func(t *testing.T) {
		e := &engine{differences: gone}
		b := newDrift(t, v1alpha1.DriftCorrect, e, changed)
		for range 20 {
			b.s.inventory.Entries, b.s.release.memory.entries = []v1alpha1.InventoryEntry{recorded}, nil
			find(b)
		}
		if corrections := len(e.compared); corrections == 0 || corrections == 20 {
			t.Errorf("corrected %d times in a row", corrections)
		}
		if len(b.s.drift.Notes) == 0 || !strings.Contains(b.s.drift.Notes[0].Message, "ConfigMap/web") || b.s.Again() == 0 {
			t.Errorf("during the pause, reported is %+v, and the App is looked at again after %s", b.s.drift.Notes, b.s.Again())
		}
	})
	t.Run("the comparison fails", func(t *testing.T) {
		b := newDrift(t, v1alpha1.DriftWarn, &engine{err: errors.New("away")}, changed)
		if got := find(b); got != "failed ApplyFailed: away" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("it is off", func(t *testing.T) {
		e := &engine{differences: gone}
		b := newDrift(t, v1alpha1.DriftOff, e, changed)
		if got := find(b); got != "done" || len(e.compared) != 0 || conditions.Has(b.app, v1alpha1.DriftedCondition) {
			t.Errorf("%s: compared %d times", got, len(e.compared))
		}
	})
}

// TestAStatefulSetThatKeepsItsClaimsIsReportedOnce, and a volume that starts empty as long as it does.
func TestAStatefulSetThatKeepsItsClaimsIsReportedOnce(t *testing.T) {
	notes := func(b *fixture) (reasons []string) {
		for _, n := range b.s.volumes.Notes(b.s.App, b.s.objects != nil) {
			reasons = append(reasons, n.Condition+n.Reason)
		}
		return reasons
	}
	b := newFixture(t, webApp(), interceptor.Funcs{})
	b.deliver("one")
	for _, c := range []struct {
		retained []string
		want     []string
	}{{nil, nil}, {[]string{"db"}, []string{v1alpha1.ClaimsRetainedReason}}, {[]string{"db"}, nil}, {[]string{"db", "cache"}, []string{v1alpha1.ClaimsRetainedReason}}, {nil, nil}, {[]string{"db"}, []string{v1alpha1.ClaimsRetainedReason}}} {
		b.s.volumes.Retained = c.retained
		if diff := cmp.Diff(c.want, notes(b)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.retained, diff)
		}
	}
	b.s.volumes.Retained, b.s.objects = []string{"other"}, nil
	if got := notes(b); got != nil {
		t.Errorf("before the App was rendered it reports %v", got)
	}
	b.deliver("one")
	b.app.Spec.Helm = &v1alpha1.HelmSource{}
	if got := notes(b); got != nil {
		t.Errorf("a Helm App reports %v", got)
	}
	b.app.Spec.Helm, b.app.Spec.Image, b.s.volumes.Retained = nil, &v1alpha1.ImageSource{}, nil
	if got := notes(b); !slices.Equal(got, []string{v1alpha1.StartedEmptyCondition}) {
		t.Errorf("an Image App reports %v", got)
	}
	b.s.volumes.Found("volume data starts empty", nil)
	if got := b.s.volumes.Notes(b.s.App, b.s.objects != nil)[0]; got != (step.Note{Condition: v1alpha1.StartedEmptyCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.ClaimLeftBehindReason, Message: "volume data starts empty", Event: "Warning"}) {
		t.Errorf("an Image App with an empty volume reports %+v", got)
	}
}

// TestHooksRunForWhatIsDelivered: another namespace for a chart is another delivery, and no namespace is the same as before the field.
func TestHooksRunForWhatIsDelivered(t *testing.T) {
	raw := newFixture(t, webApp(), interceptor.Funcs{})
	raw.deliver("one")
	if got := raw.s.hookRevision(); got.Name != "one" || cmp.Diff(raw.s.objects, got.Delivered) != "" {
		t.Errorf("for objects the hooks run for %+v", got)
	}
	for target, want := range map[string][]any{"": nil, "ingress": {"ingress"}} {
		b := newHelmFixture(t, &engine{}, func(a *v1alpha1.App) { a.Spec.TargetNamespace, a.Spec.Helm.ReleaseName = target, "shop" })
		b.s.found.Chart.Digest, b.s.values = "sha256:1", map[string]any{"a": "b"}
		delivered, ok := b.s.hookRevision().Delivered.([]any)
		if !ok || len(delivered) < 6 || delivered[0] != "sha256:1" || delivered[1] != "shop" || cmp.Diff(b.s.values, delivered[2]) != "" {
			t.Fatalf("for a chart the hooks run for %v", delivered)
		}
		if diff := cmp.Diff(want, slices.Clone(delivered[6:]), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("in namespace %q (-want +got):\n%s", target, diff)
		}
	}
}

// TestNothingIsHeldOnceTheChartHasItAgain: an object that waited for a confirmation is in the chart again.
func TestNothingIsHeldOnceTheChartHasItAgain(t *testing.T) {
	b := newHelmFixture(t, &engine{}, func(app *v1alpha1.App) {
		app.Status.Held, app.Status.HeldToken = []string{"CustomResourceDefinition shirts.example.com: holds data"}, "0123"
	})
	b.s.held = b.releaser.pruner.Held(b.app)
	if b.s.held.Token != "0123" {
		t.Fatalf("the held objects are %+v", b.s.held)
	}
	if got := b.ended(b.releaser.pruneClusterScoped(t.Context(), b.s)); got != "done" {
		t.Fatalf("got %q", got)
	}
	if b.s.Record(); b.app.Status.HeldToken != "" || len(b.app.Status.Held) != 0 {
		t.Errorf("the status has the held objects %v, and the token %q", b.app.Status.Held, b.app.Status.HeldToken)
	}
}
