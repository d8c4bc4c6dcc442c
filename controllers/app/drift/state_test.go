package drift

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
)

// TestACorrectionIsReportedUntilTheStatusHasIt, even if the status hides part of the message.
func TestACorrectionIsReportedUntilTheStatusHasIt(t *testing.T) {
	app, state := &v1alpha1.App{}, &State{}
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
	report.Reported()
	app.Status.Conditions = []metav1.Condition{{Type: v1alpha1.DriftedCondition, Reason: v1alpha1.DriftCorrectedReason, Message: "put back: ConfigMap/***"}}
	if again := state.Report(s); len(again.Notes) != 0 {
		t.Errorf("the condition was changed again: %+v", again.Notes)
	}
	state.Found("", []string{"ConfigMap/other is gone"})
	if n := state.Report(s).Notes[0]; n.Reason != v1alpha1.DriftDetectedReason {
		t.Errorf("drift after a correction is reported as %+v", n)
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
