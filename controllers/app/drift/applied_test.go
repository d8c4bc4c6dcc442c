package drift

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/kustomize"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/record"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/backoff"
)

// watched is an app that reports drift of its objects, of which somebody changed some.
type watched struct {
	*testing.T
	a        *Applied
	app      *v1alpha1.App
	client   client.Client
	subjects *subject.Subjects
	s        *subject.Subject
	clock    *clocktesting.FakePassiveClock
	moved    []apply.Deviation
	// asked counts the dry runs of each object. Those in refused fail; the others show the source's version.
	asked   map[string]int
	source  string
	report  Report
	refused map[string]bool
}

func newWatched(t *testing.T, objects int) *watched {
	w := &watched{T: t, source: "a", clock: clocktesting.NewFakePassiveClock(time.Unix(100000, 0)), asked: map[string]int{}, refused: map[string]bool{}}
	w.a = &Applied{Applier: &apply.Applier{}}
	app := &v1alpha1.App{}
	app.UID, app.Spec.Drift.Mode = "web", v1alpha1.DriftWarn
	w.app = app
	w.begin()
	w.client = interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			return unstructured.SetNestedField(o.(*unstructured.Unstructured).Object, "theirs", "data", "key")
		},
		Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
			if w.asked[o.GetName()]++; w.refused[o.GetName()] {
				return errors.New("dry runs are refused")
			}
			return unstructured.SetNestedField(o.(*unstructured.Unstructured).Object, w.source, "data", "key")
		},
	})
	for i := range objects {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		o.SetName(fmt.Sprintf("c%03d", i))
		w.moved = append(w.moved, apply.Deviation{Entry: v1alpha1.InventoryEntry{ID: o.GetName(), Digest: "1"}, Manifest: o})
	}
	return w
}

// begin starts a Reconcile.
func (w *watched) begin() {
	if w.subjects == nil {
		w.subjects = &subject.Subjects{Clock: w.clock}
	}
	w.s = w.subjects.New(w.app)
	w.s.Client = w.client
}

// pass runs one pass, and returns the number of its dry runs, its message and when it comes again.
func (w *watched) pass() (asked int, message string, again time.Duration) {
	w.Helper()
	before := 0
	for _, n := range w.asked {
		before += n
	}
	w.begin()
	var err error
	if w.report, err = w.a.Compare(w.Context(), w.s, apply.Result{Moved: w.moved}); err != nil {
		w.Fatal(err)
	}
	for _, n := range w.asked {
		asked += n
	}
	return asked - before, w.report.Notes[0].Message, w.s.Again()
}

// TestARefusedDryRunCausesNoNewDryRunsOfOthers runs passes as fast as events come.
func TestARefusedDryRunCausesNoNewDryRunsOfOthers(t *testing.T) {
	w := newWatched(t, 3)
	w.refused["c001"] = true
	const want = `ConfigMap/c000: /data/key is "theirs", the source says "a"; ConfigMap/c002: /data/key is "theirs", the source says "a"; ` +
		"ConfigMap/c001: asking what would change: dry runs are refused"
	for i, asked := range []int{3, 0, 0, 0} {
		if got, message, again := w.pass(); got != asked || message != want || again <= 0 {
			t.Errorf("pass %d makes %d dry runs, comes again after %s and reports %s", i, got, again, message)
		}
		w.moved[1].Entry.Digest += "1" // Somebody keeps changing it.
	}
	w.moved[0].Entry.Digest = "2"
	if got, _, _ := w.pass(); got != 1 || w.asked["c000"] != 2 {
		t.Errorf("one object changed, and %d dry runs were made: %v", got, w.asked)
	}
	for i := range 3600 {
		w.clock.SetTime(w.clock.Now().Add(time.Second))
		if got, message, _ := w.pass(); got > 1 || message != want {
			t.Fatalf("after %d seconds %d dry runs were made, and it reports %s", i, got, message)
		}
	}
	if got := w.asked["c001"]; got < 12 || got > 25 {
		t.Errorf("made %d dry runs within an hour", got)
	}
	w.refused["c001"] = false
	w.clock.SetTime(w.clock.Now().Add(backoff.Last))
	if got, _, again := w.pass(); got != 1 || again != 0 || len(w.a.Get(w.app).unclear) != 0 {
		t.Errorf("makes %d dry runs, comes again after %s and has the unknown objects %v", got, again, w.a.Get(w.app).unclear)
	}
}

// TestTheDryRunsOfAPassAreLimited changes more objects than a pass can compare, and then has all dry runs refused.
func TestTheDryRunsOfAPassAreLimited(t *testing.T) {
	w := newWatched(t, 45)
	for i, want := range []struct {
		asked       int
		more, still string
	}{
		{20, "and 15 more", "; 25 changed objects are not compared yet"},
		{20, "and 35 more", "; 5 changed objects are not compared yet"},
		{5, "and 40 more", ""},
		{0, "and 40 more", ""},
	} {
		asked, message, again := w.pass()
		first := step.Few(w.a.Get(w.app).found[:5])
		if asked != want.asked || message != first+"; "+want.more+want.still || (again != 0) != (want.still != "") {
			t.Errorf("pass %d makes %d dry runs, comes again after %s and reports %s", i, asked, again, message)
		}
	}
	for i := range w.moved {
		w.moved[i].Entry.Digest, w.refused[w.moved[i].Entry.ID] = "2", true
	}
	for range 30 {
		if asked, _, again := w.pass(); asked > maxPreviews || again <= 0 {
			t.Errorf("makes %d dry runs, and comes again after %s", asked, again)
		}
		w.clock.SetTime(w.clock.Now().Add(backoff.Last))
	}
	for name, asked := range w.asked {
		if asked < 10 {
			t.Errorf("%s had %d dry runs, because others came first", name, asked)
		}
	}
}

// TestObjectsThatWereNotComparedAreUnknown: an object waits for its turn while the others do not differ.
func TestObjectsThatWereNotComparedAreUnknown(t *testing.T) {
	w := newWatched(t, maxPreviews+1)
	w.source = "theirs"
	const want = "1 changed objects are not compared yet"
	if _, message, again := w.pass(); message != want || again == 0 || w.report.Notes[0].Status != "Unknown" {
		t.Errorf("the condition is %s, %s; it comes again after %s", w.report.Notes[0].Status, message, again)
	}
	if _, message, again := w.pass(); message != "" || again != 0 || w.report.Notes[0].Status != "False" {
		t.Errorf("the condition is %s, %s; it comes again after %s", w.report.Notes[0].Status, message, again)
	}
}

// result compares with the outcome of an apply, writes the report, and returns the condition and when the App comes again.
func (w *watched) result(result apply.Result) (step.Note, time.Duration) {
	w.Helper()
	w.begin()
	report, err := w.a.Compare(w.Context(), w.s, result)
	if err != nil {
		w.Fatal(err)
	}
	report.Reported()
	if len(report.Notes) == 0 {
		return step.Note{}, w.s.Again()
	}
	return report.Notes[0], w.s.Again()
}

func TestTheModeDecidesWhatIsReported(t *testing.T) {
	corrected := apply.Result{Corrected: []v1alpha1.InventoryEntry{{ID: "_web__ConfigMap"}}}
	for name, tc := range map[string]struct {
		mode           v1alpha1.DriftMode
		result         func(*watched) apply.Result
		status, reason string
		asked          int
	}{
		"off, changed":       {v1alpha1.DriftOff, func(w *watched) apply.Result { return apply.Result{Moved: w.moved} }, "", "", 0},
		"warn, changed":      {v1alpha1.DriftWarn, func(w *watched) apply.Result { return apply.Result{Moved: w.moved} }, "True", v1alpha1.DriftDetectedReason, 1},
		"warn, the same":     {v1alpha1.DriftWarn, func(*watched) apply.Result { return apply.Result{} }, "False", v1alpha1.NoDriftDetectedReason, 0},
		"correct, corrected": {v1alpha1.DriftCorrect, func(*watched) apply.Result { return corrected }, "False", v1alpha1.DriftCorrectedReason, 0},
		"correct, left":      {v1alpha1.DriftCorrect, func(w *watched) apply.Result { return apply.Result{Moved: w.moved} }, "True", v1alpha1.DriftDetectedReason, 0},
		"correct, the same":  {v1alpha1.DriftCorrect, func(*watched) apply.Result { return apply.Result{} }, "False", v1alpha1.NoDriftDetectedReason, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatched(t, 1)
			w.moved[0].Entry.ID = "_c000__ConfigMap"
			w.app.Spec.Drift.Mode = tc.mode
			note, _ := w.result(tc.result(w))
			if note.Condition != v1alpha1.DriftedCondition || string(note.Status) != tc.status || note.Reason != tc.reason || w.asked["c000"] != tc.asked {
				t.Errorf("reported as %+v after %d dry runs", note, w.asked["c000"])
			}
		})
	}
}

// TestDriftIsLeftDuringThePause corrects until the pause begins, and looks again when it ends.
func TestDriftIsLeftDuringThePause(t *testing.T) {
	w := newWatched(t, 1)
	w.moved[0].Entry.ID = "_c000__ConfigMap"
	w.app.Spec.Drift.Mode = v1alpha1.DriftCorrect
	set := apply.Set{}
	for range freeCorrections {
		if err := w.a.Prepare(w.s, &record.Writes{}, &set); err != nil || set.Leave {
			t.Fatalf("drift is left before the pause: %v", err)
		}
		w.result(apply.Result{Corrected: []v1alpha1.InventoryEntry{w.moved[0].Entry}})
	}
	if err := w.a.Prepare(w.s, &record.Writes{}, &set); err != nil || !set.Leave {
		t.Errorf("drift is corrected in the pause: %v", err)
	}
	note, again := w.result(apply.Result{Moved: w.moved})
	if want := "changed again after it was put back 3 times; someone else keeps changing it: ConfigMap/c000"; note.Message != want {
		t.Errorf("the message is %q", note.Message)
	}
	if rest := w.a.Get(w.app).Rest(w.clock.Now()); rest <= 0 || again != max(rest, backoff.First) {
		t.Errorf("the app comes again after %s, and the pause lasts %s", again, rest)
	}
	if note, _ = w.result(apply.Result{}); note.Reason != v1alpha1.NoDriftDetectedReason {
		t.Errorf("drift that has gone by itself is reported: %+v", note)
	}
	w.clock.SetTime(w.clock.Now().Add(again))
	if err := w.a.Prepare(w.s, &record.Writes{}, &set); err != nil || set.Leave {
		t.Errorf("drift is left after the pause: %v", err)
	}
	w.a.Forget(w.app)
	if got := w.a.Get(w.app).corrections; got != 0 {
		t.Errorf("a forgotten app had %d corrections", got)
	}
}

func TestAnApplyGetsTheVersionsOfRecentWrites(t *testing.T) {
	w := newWatched(t, 0)
	writes := &record.Writes{}
	entries := []v1alpha1.InventoryEntry{{ID: "a"}}
	writes.Add(entries, map[string]string{"a": "7"}, w.clock.Now())
	set := apply.Set{}
	if err := w.a.Prepare(w.s, writes, &set); err != nil || !set.Leave || !set.Fresh || set.Floors["a"] != "7" {
		t.Errorf("after a write: %+v, %v", set, err)
	}
	w.clock.SetTime(w.clock.Now().Add(step.Quiet))
	if err := w.a.Prepare(w.s, writes, &set); err != nil || set.Fresh {
		t.Errorf("%s after a write: %+v, %v", step.Quiet, set, err)
	}
	w.app.Spec.Drift.Ignore = []v1alpha1.IgnoreRule{{Paths: []string{"/spec"}, Target: &kustomize.Selector{LabelSelector: "a in ("}}}
	err := w.a.Prepare(w.s, writes, &set)
	if reason, failed := step.Failure(err); !failed || step.Fails(err) || reason != v1alpha1.RenderFailedReason {
		t.Errorf("rules that cannot be read end as %v, %s", err, reason)
	}
}

// TestDriftHidesSecretValues: a value of a Secret that a variable put into another object is shown on neither side.
func TestDriftHidesSecretValues(t *testing.T) {
	w := newWatched(t, 1)
	w.source = "hunter22"
	w.begin()
	w.s.Hide("hunter22", "theirs")
	report, err := w.a.Compare(t.Context(), w.s, apply.Result{Moved: w.moved})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := report.Notes[0].Message, `ConfigMap/c000: /data/key is "***", the source says "***"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	w.refused["c000"], w.moved[0].Entry.Digest = true, "2"
	w.begin()
	w.s.Hide("dry runs")
	if report, err = w.a.Compare(t.Context(), w.s, apply.Result{Moved: w.moved}); err != nil {
		t.Fatal(err)
	}
	if got, want := report.Notes[0].Message, "ConfigMap/c000: asking what would change: *** are refused"; got != want {
		t.Errorf("a refused dry run: got %s, want %s", got, want)
	}
}

// TestAnObjectThatIsGoneIsReported, and an operator that stops reports nothing.
func TestAnObjectThatIsGoneIsReported(t *testing.T) {
	w := newWatched(t, 1)
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "c000")
	why := error(missing)
	w.client = interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return why
		},
	})
	if _, message, again := w.pass(); message != "ConfigMap/c000 is gone" || again != 0 {
		t.Errorf("it reports %q, and comes again after %s", message, again)
	}
	why, w.moved[0].Entry.Digest = context.Canceled, "2"
	w.begin()
	if report, err := w.a.Compare(t.Context(), w.s, apply.Result{Moved: w.moved}); !errors.Is(err, context.Canceled) || len(report.Notes) != 0 {
		t.Errorf("the operator stops: %+v, %v", report, err)
	}
}
