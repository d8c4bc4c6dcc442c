// Package drift detects and reports the drift of an App's objects, and limits how often it is corrected.
package drift

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/backoff"
	"github.com/kubeop/kubeop/delivery/differ"
)

// freeCorrections is how many corrections in a row are made without a pause.
const freeCorrections = 3

// State is the drift state of one App. It is kept in memory between Reconciles.
type State struct {
	// found lists the differences. key identifies the compared state of a release; "" means that the release must be compared.
	found []string
	key   string
	// objects are the results for single objects, by inventory ID, if drift is only reported. unclear says why some could not be compared,
	// and uncompared counts those that wait to be compared.
	objects    map[string]object
	unclear    []string
	uncompared int
	// corrected lists the corrected fields until the status reports them. corrections counts the corrections in a row, and correctedAt is
	// the time of the last one.
	corrected   string
	corrections int
	correctedAt time.Time
}

// Rest returns the remaining pause before the next correction; 0 or less for none. After three corrections in a row, each pause is longer,
// because someone else may keep changing the same field, which only people can end. Fifteen minutes without a correction end the row.
func (d *State) Rest(now time.Time) time.Duration {
	past := now.Sub(d.correctedAt)
	if past > 3*backoff.Last {
		d.corrections = 0
	}
	if d.corrections < freeCorrections {
		return 0
	}
	return backoff.Pause(d.corrections-freeCorrections+1) - past
}

// Corrected records which fields were corrected.
func (d *State) Corrected(what string, now time.Time) {
	d.corrected, d.found = "put back: "+what, nil
	d.corrections++
	d.correctedAt = now
}

// Compared reports whether the objects were compared in the state that a key identifies.
func (d *State) Compared(key string) bool { return key != "" && key == d.key }

// Found records the differences in the state that key identifies. Without a key, the next Reconcile compares again.
func (d *State) Found(key string, differences []string) { d.key, d.found = key, differences }

// Report is what a Reconcile reports about drift.
type Report struct {
	Notes []step.Note
	// corrected is the State whose correction is reported; nil if none is.
	corrected *State
}

// None is the report of an App without drift detection.
func None() Report { return Report{Notes: []step.Note{{Condition: v1alpha1.DriftedCondition}}} }

// Record writes into the status in which generation drift was corrected, as long as the condition Drifted reports that.
func (r Report) Record(app *v1alpha1.App) {
	switch {
	case r.corrected != nil:
		app.Status.CorrectedGeneration = app.Generation
	case len(r.Notes) > 0:
		app.Status.CorrectedGeneration = 0
	}
}

// Reported records that the report is in the status.
func (r Report) Reported() {
	if r.corrected != nil {
		r.corrected.corrected = ""
	}
}

// Report returns the condition Drifted. After a correction, the condition stays until there is something else to report.
func (d *State) Report(s *subject.Subject) Report {
	note := step.Note{Condition: v1alpha1.DriftedCondition, Status: "False", Reason: v1alpha1.NoDriftDetectedReason}
	reported := s.App.Status.CorrectedGeneration
	switch {
	case d.corrected != "":
		note.Reason, note.Message, note.Event = v1alpha1.DriftCorrectedReason, d.corrected, "Normal"
		return Report{Notes: []step.Note{note}, corrected: d}
	case len(d.found) > 0:
		note.Status, note.Reason, note.Message, note.Event = "True", v1alpha1.DriftDetectedReason, d.words(), "Warning"
		if s.App.Spec.DriftMode() == v1alpha1.DriftCorrect {
			note.Message = fmt.Sprintf("changed again after it was put back %d times; someone else keeps changing it: %s", d.corrections, note.Message)
		}
	case len(d.unclear) > 0 || d.uncompared > 0:
		note.Status, note.Reason, note.Message, note.Event = "Unknown", v1alpha1.NotComparedReason, d.words(), "Warning"
	case reported != 0 && reported == s.App.Generation:
		return Report{}
	}
	return Report{Notes: []step.Note{note}}
}

// words say how objects differ, and how many are not compared yet.
func (d *State) words() string {
	words := step.Few(slices.Concat(d.found, d.unclear))
	if d.uncompared == 0 {
		return words
	}
	if words != "" {
		words += "; "
	}
	return fmt.Sprintf("%s%d changed objects are not compared yet", words, d.uncompared)
}

// Describe returns a text that says how a live object differs from what its author declares. author names the source or the release.
func Describe(object string, missing bool, fields []differ.Change, author string) string {
	if missing {
		return object + " is gone"
	}
	var differences []string
	for _, f := range fields {
		switch {
		case f.Have == "":
			differences = append(differences, fmt.Sprintf("%s is gone, %s says %s", f.Path, author, f.Want))
		case f.Want == "":
			differences = append(differences, fmt.Sprintf("%s is %s, %s has none", f.Path, f.Have, author))
		default:
			differences = append(differences, fmt.Sprintf("%s is %s, %s says %s", f.Path, f.Have, author, f.Want))
		}
	}
	return object + ": " + strings.Join(differences, ", ")
}
