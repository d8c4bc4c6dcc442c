package drift

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/delivery/backoff"
	"github.com/kubeop/kubeop/delivery/differ"
)

// TestACorrectionIsReportedUntilTheStatusHasIt, even if the status hides part of the message.
func TestACorrectionIsReportedUntilTheStatusHasIt(t *testing.T) {
	app, state := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Generation: 2}}, &State{}
	s := (&subject.Subjects{}).New(app)
	s.Hide("hunter22")
	state.Corrected("ConfigMap/hunter22", time.Now())
	for range 2 {
		report := state.Report(s)
		if n := report.Notes[0]; n.Reason != v1alpha1.DriftCorrectedReason || n.Message != "put back: ConfigMap/hunter22" {
			t.Errorf("the correction is reported as %+v", n)
		}
	}
	report := state.Report(s)
	report.Record(app)
	report.Reported()
	again := state.Report(s)
	if again.Record(app); len(again.Notes) != 0 || app.Status.CorrectedGeneration != 2 {
		t.Errorf("the condition was changed again: %+v, and the status has generation %d", again.Notes, app.Status.CorrectedGeneration)
	}
	state.Found("", []string{"ConfigMap/other is gone"})
	found := state.Report(s)
	if found.Record(app); found.Notes[0].Reason != v1alpha1.DriftDetectedReason || app.Status.CorrectedGeneration != 0 {
		t.Errorf("drift after a correction is reported as %+v, and the status has generation %d", found.Notes[0], app.Status.CorrectedGeneration)
	}
}

func TestRepeatedCorrectionsBackOff(t *testing.T) {
	state, began := &State{}, time.Unix(100000, 0)
	now, corrected := began, 0
	for now.Sub(began) < 5*time.Minute {
		if state.Rest(now) <= 0 {
			corrected++
			state.Corrected("a", now)
		}
		now = now.Add(100 * time.Millisecond)
	}
	if corrected < 6 || corrected > 14 {
		t.Errorf("corrected %d times in five minutes", corrected)
	}
	if now = now.Add(time.Hour); state.Rest(now) > 0 || state.corrections != 0 {
		t.Error("the pause is not reset after an hour without a correction")
	}
}

// TestTheFourthCorrectionInARowWaits, and each one after it for longer. Fifteen minutes end the row.
func TestTheFourthCorrectionInARowWaits(t *testing.T) {
	state, now := &State{}, time.Unix(100000, 0)
	for i, want := range []time.Duration{0, 0, 0, backoff.Pause(1), backoff.Pause(2)} {
		if got := state.Rest(now); got != want {
			t.Errorf("before correction %d it rests for %s, want %s", i+1, got, want)
		}
		state.Corrected("a", now)
	}
	for _, past := range []time.Duration{3 * backoff.Last, 3*backoff.Last + 1} {
		if state.Rest(now.Add(past)); (state.corrections == 0) != (past > 3*backoff.Last) {
			t.Errorf("after %s there are %d corrections in a row", past, state.corrections)
		}
	}
}

// TestACorrectionIsShownUntilTheAppChanges, and no other condition is kept.
func TestACorrectionIsShownUntilTheAppChanges(t *testing.T) {
	for name, c := range map[string]struct {
		corrected int64
		stays     bool
	}{
		"it was corrected":               {2, true},
		"it was corrected, then changed": {1, false},
		"it was not corrected":           {0, false},
	} {
		app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		app.Status.CorrectedGeneration = c.corrected
		notes := (&State{}).Report((&subject.Subjects{}).New(app)).Notes
		if stays := len(notes) == 0; stays != c.stays || !stays && notes[0].Reason != v1alpha1.NoDriftDetectedReason {
			t.Errorf("%s: %+v", name, notes)
		}
	}
}

// TestAReleaseIsComparedOncePerState: without a key, nothing is known about the state.
func TestAReleaseIsComparedOncePerState(t *testing.T) {
	app, state := &v1alpha1.App{}, &State{}
	if state.Compared("") || state.Compared("1") {
		t.Error("a new state is compared")
	}
	state.Found("1", []string{"ConfigMap/web is gone"})
	if !state.Compared("1") || state.Compared("2") || state.Compared("") {
		t.Error("the state with the key 1 alone was compared")
	}
	app.Spec.Drift.Mode = v1alpha1.DriftWarn
	s := (&subject.Subjects{}).New(app)
	if n := state.Report(s).Notes[0]; n.Status != "True" || n.Reason != v1alpha1.DriftDetectedReason || n.Message != "ConfigMap/web is gone" || n.Event != "Warning" {
		t.Errorf("drift is reported as %+v", n)
	}
	if state.Found("", nil); state.Compared("") || state.Compared("1") {
		t.Error("a state that could not be identified is compared")
	}
	if n := state.Report(s).Notes[0]; n.Status != "False" || n.Reason != v1alpha1.NoDriftDetectedReason || n.Event != "" {
		t.Errorf("no drift is reported as %+v", n)
	}
}

func TestADifferenceSaysWhatEachSideHas(t *testing.T) {
	for name, tc := range map[string]struct {
		missing bool
		fields  []differ.Change
		want    string
	}{
		"no object":       {true, nil, "Service/web is gone"},
		"another value":   {false, []differ.Change{{Path: "/a", Want: "1", Have: "2"}}, "Service/web: /a is 2, the source says 1"},
		"a missing field": {false, []differ.Change{{Path: "/a", Want: "1"}}, "Service/web: /a is gone, the source says 1"},
		"a field more":    {false, []differ.Change{{Path: "/a", Have: "2"}}, "Service/web: /a is 2, the source has none"},
		"several":         {false, []differ.Change{{Path: "/a", Have: "2"}, {Path: "/b", Want: "3"}}, "Service/web: /a is 2, the source has none, /b is gone, the source says 3"},
	} {
		if got := Describe("Service/web", tc.missing, tc.fields, "the source"); got != tc.want {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
