package decide

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	helm "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// record returns the metadata of a revision's record. kubeop wrote it for the digest, and for a trial of the same name; an empty digest
// means that kubeop did not write it.
func record(number int, status helm.Status, digest string, change ...func(map[string]string)) metav1.PartialObjectMetadata {
	labels := map[string]string{
		"owner": "helm", "name": "web", "status": status.String(), "version": strconv.Itoa(number),
		"createdAt": "1", "modifiedAt": strconv.FormatInt(noon.Unix(), 10),
	}
	if digest != "" {
		labels[AppLabel] = "shop"
		labels[DigestLabel], labels[TrialLabel] = digest, digest
		labels[HolderLabel] = "me"
		labels[AttemptLabel] = "1"
		labels[ContentLabel] = "c"
		labels[RevisionLabel] = strconv.Itoa(number)
	}
	for _, c := range change {
		c(labels)
	}
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: KeyOf("web", number), Labels: labels, ResourceVersion: strconv.Itoa(100 + number),
	}}
}

func label(key, value string) func(map[string]string) {
	return func(l map[string]string) { l[key] = value }
}

// inputFailed marks n failures caused by the input.
func inputFailed(n int) func(map[string]string) {
	return func(l map[string]string) {
		l[AttemptLabel], l[InputFailuresLabel], l[FaultLabel] = strconv.Itoa(n), strconv.Itoa(n), FaultInput
	}
}

// interruptedly removes the labels that an interrupted action loses.
func interruptedly(l map[string]string) { delete(l, DigestLabel); delete(l, TrialLabel) }

func history(records ...metav1.PartialObjectMetadata) []metav1.PartialObjectMetadata { return records }

func TestTheHistoryDecidesTheNextAction(t *testing.T) {
	overdue := noon.Add(6 * time.Minute) // timeout and grace
	tests := map[string]struct {
		history []metav1.PartialObjectMetadata
		change  func(*Want)
		want    Decision
	}{
		"nothing there": {
			want: Decision{Act: Install},
		},
		"deployed with this input": {
			history: history(record(1, helm.StatusDeployed, "new")),
			want:    Decision{Act: Settled},
		},
		"deployed with another input": {
			history: history(record(1, helm.StatusDeployed, "old")),
			want:    Decision{Act: Upgrade},
		},
		"deployed by a person": {
			history: history(record(1, helm.StatusDeployed, "")),
			want:    Decision{Act: Upgrade, Why: "revision 1 was made by hand; returning to Git's state"},
		},
		"deployed by a person over a revision of ours, without our labels": {
			history: history(record(1, helm.StatusSuperseded, "new"), record(2, helm.StatusDeployed, "")),
			want:    Decision{Act: Upgrade, Why: "revision 2 was made by hand; returning to Git's state"},
		},
		"upgraded by a person, and the revision before is gone": {
			history: history(record(2, helm.StatusDeployed, "new", label(RevisionLabel, "1"))),
			want:    Decision{Act: Upgrade, Why: "revision 2 was made by hand; returning to Git's state"},
		},
		"upgraded by a person, whose helm carried our labels on": {
			history: history(record(1, helm.StatusSuperseded, "new"), record(2, helm.StatusDeployed, "new", label(RevisionLabel, "1"))),
			want:    Decision{Act: Upgrade, Why: "revision 2 was made by hand (helm upgrade); returning to Git's state"},
		},
		"another app's": {
			history: history(record(1, helm.StatusDeployed, "new", label(AppLabel, "other"))),
			want:    Decision{Act: Taken, Why: "other"},
		},
		"interrupted in this process or before it restarted": {
			history: history(record(1, helm.StatusPendingInstall, "new")),
			want:    Decision{Act: Unlock},
		},
		"interrupted in a process that is gone": {
			history: history(record(1, helm.StatusPendingUpgrade, "new", label(HolderLabel, "gone"))),
			want:    Decision{Act: Unlock},
		},
		"pending in another live process": {
			history: history(record(3, helm.StatusPendingUpgrade, "new", label(HolderLabel, "other"))),
			change:  func(w *Want) { w.HolderAlive = func(h string) bool { return h == "other" } },
			want:    Decision{Act: Locked, Until: overdue, Why: "revision 3 is pending-upgrade by other"},
		},
		"pending in another live process for too long": {
			history: history(record(3, helm.StatusPendingUpgrade, "new", label(HolderLabel, "other"))),
			change: func(w *Want) {
				w.HolderAlive = func(string) bool { return true }
				w.Now = overdue
			},
			want: Decision{Act: Unlock},
		},
		"a person's helm is running": {
			history: history(record(2, helm.StatusPendingUpgrade, "new", label(RevisionLabel, "1"))),
			want:    Decision{Act: Locked, Until: overdue, Why: "revision 2 is pending-upgrade by someone outside kubeop"},
		},
		"a person's helm was killed": {
			history: history(record(2, helm.StatusPendingRollback, "")),
			change:  func(w *Want) { w.Now = overdue },
			want:    Decision{Act: Unlock},
		},
		"being uninstalled": {
			history: history(record(1, helm.StatusUninstalling, "new")),
			want:    Decision{Act: Locked, Until: overdue, Why: "it is being uninstalled"},
		},
		"uninstallation left half-way": {
			history: history(record(1, helm.StatusUninstalling, "new")),
			change:  func(w *Want) { w.Now = overdue },
			want:    Decision{Act: Uninstall},
		},
		"uninstalled, history kept": {
			history: history(record(1, helm.StatusUninstalled, "new")),
			want:    Decision{Act: Reinstall},
		},
		"first install failed, another input": {
			history: history(record(1, helm.StatusFailed, "old")),
			want:    Decision{Act: Install},
		},
		"first install interrupted": {
			history: history(record(1, helm.StatusFailed, "new", interruptedly)),
			want:    Decision{Act: Install},
		},
		"upgrade failed, another input": {
			history: history(record(1, helm.StatusDeployed, "older"), record(2, helm.StatusFailed, "old")),
			want:    Decision{Act: Upgrade},
		},
		"failed after it was superseded": {
			history: history(record(1, helm.StatusSuperseded, "older"), record(2, helm.StatusFailed, "old")),
			want:    Decision{Act: Upgrade},
		},
		"this input failed, no retry": {
			history: history(record(1, helm.StatusDeployed, "old"), record(2, helm.StatusFailed, "new")),
			want:    Decision{Act: Failed, Attempts: 1},
		},
		"this input failed, retry not due": {
			history: history(record(2, helm.StatusFailed, "new", label(AttemptLabel, "3"))),
			change:  func(w *Want) { w.Retry, w.Now = minutes, noon.Add(179*time.Second) },
			want:    Decision{Act: Failed, Attempts: 3, Until: noon.Add(3 * time.Minute)},
		},
		"this input failed, retry due": {
			history: history(record(1, helm.StatusDeployed, "old"), record(2, helm.StatusFailed, "new", label(AttemptLabel, "3"))),
			change:  func(w *Want) { w.Retry, w.Now = minutes, noon.Add(3*time.Minute) },
			want:    Decision{Act: Upgrade, Attempts: 3},
		},
		"this input failed before the clock was set back by hours": {
			history: history(record(1, helm.StatusDeployed, "old"), record(2, helm.StatusFailed, "new", label(AttemptLabel, "3"))),
			change:  func(w *Want) { w.Retry, w.Now = minutes, noon.Add(-5*time.Hour) },
			want:    Decision{Act: Upgrade, Attempts: 3},
		},
		"the pause counts from the end that this process remembers": {
			history: history(record(2, helm.StatusFailed, "new")),
			change: func(w *Want) {
				w.Retry, w.Now = minutes, noon.Add(2*time.Minute)
				w.Last = Attempt{Act: Install, Trial: "new", Err: errors.New("hook failed"), At: noon.Add(90 * time.Second)}
			},
			want: Decision{Act: Failed, Attempts: 1, Until: noon.Add(150 * time.Second)},
		},
		"failed before anything was recorded": {
			history: history(record(1, helm.StatusDeployed, "old")),
			change: func(w *Want) {
				w.Last = Attempt{Act: Upgrade, Trial: "new", Err: errors.New("no"), At: noon, Unstored: 2}
			},
			want: Decision{Act: Failed, Attempts: 2},
		},
		"failed, and its record was deleted": {
			history: history(record(1, helm.StatusDeployed, "old")),
			change:  func(w *Want) { w.Last = Attempt{Act: Upgrade, Trial: "new", Err: errors.New("no"), At: noon} },
			want:    Decision{Act: Failed, Attempts: 1},
		},
		"another input failed before anything was recorded": {
			history: history(record(1, helm.StatusDeployed, "old")),
			change: func(w *Want) {
				w.Last = Attempt{Act: Upgrade, Trial: "bad", Err: errors.New("no"), At: noon, Unstored: 2}
			},
			want: Decision{Act: Upgrade},
		},
		"rolled back by a person to an older input": {
			history: history(record(1, helm.StatusSuperseded, "old"), record(2, helm.StatusSuperseded, "new"), record(3, helm.StatusDeployed, "old", label(RevisionLabel, "1"))),
			want:    Decision{Act: Upgrade, Why: "revision 3 was made by hand (helm rollback); returning to Git's state"},
		},
		"settled, forced": {
			history: history(record(1, helm.StatusDeployed, "new")),
			change:  func(w *Want) { w.Manual.Force = true },
			want:    Decision{Act: Upgrade},
		},
		"settled, reset": {
			history: history(record(1, helm.StatusDeployed, "new")),
			change:  func(w *Want) { w.Manual.Reset = true },
			want:    Decision{Act: Settled},
		},
		"more failures by the environment than retries": {
			history: history(record(1, helm.StatusDeployed, "old"), record(2, helm.StatusFailed, "new", label(AttemptLabel, "9"), label(FaultLabel, FaultEnvironment))),
			change:  retrying,
			want:    Decision{Act: Upgrade, Attempts: 9},
		},
		"the input failed once": {
			history: history(record(1, helm.StatusDeployed, "old"), record(2, helm.StatusFailed, "new", inputFailed(1))),
			change:  retrying,
			want:    Decision{Act: Upgrade, Attempts: 1, InputFailures: 1},
		},
		"the input used up its retries": {
			history: history(record(1, helm.StatusDeployed, "old"), record(2, helm.StatusFailed, "new", inputFailed(1)), record(3, helm.StatusFailed, "new", inputFailed(2))),
			want:    Decision{Act: Rollback, To: 1, Remediates: true},
		},
		"the input used up its retries, then was interrupted": {
			history: history(record(1, helm.StatusDeployed, "old"), record(2, helm.StatusFailed, "new", inputFailed(2)), record(3, helm.StatusFailed, "new", interruptedly)),
			want:    Decision{Act: Rollback, To: 1, Remediates: true},
		},
		"a second failure after an interruption": {
			history: history(record(1, helm.StatusSuperseded, "old", label(ProvenLabel, Yes)), record(2, helm.StatusFailed, "new", interruptedly), record(3, helm.StatusFailed, "new", inputFailed(2))),
			want:    Decision{Act: Rollback, To: 1, Remediates: true},
		},
		"an unproven revision is no target": {
			history: history(record(1, helm.StatusSuperseded, "older", label(ProvenLabel, Yes)), record(2, helm.StatusSuperseded, "old", label(ProvenLabel, No)),
				record(3, helm.StatusFailed, "new", inputFailed(2))),
			want: Decision{Act: Rollback, To: 1, Remediates: true},
		},
		"a person's revision is no target": {
			history: history(record(1, helm.StatusSuperseded, "older", label(ProvenLabel, Yes)), record(2, helm.StatusDeployed, "older", label(RevisionLabel, "1")),
				record(3, helm.StatusFailed, "new", inputFailed(2))),
			want: Decision{Act: Rollback, To: 1, Remediates: true},
		},
		"a revision of which nobody said that it was good is no target": {
			history: history(record(1, helm.StatusSuperseded, "old"), record(2, helm.StatusFailed, "new", inputFailed(2))),
			change:  retrying,
			want:    Decision{Act: Upgrade, Attempts: 2, InputFailures: 2, NoTarget: true},
		},
		"what is deployed is no target before it is seen to be good": {
			history: history(record(1, helm.StatusSuperseded, "older", label(ProvenLabel, Yes)), record(2, helm.StatusDeployed, "old"),
				record(3, helm.StatusFailed, "new", inputFailed(2))),
			change: func(w *Want) { w.Proven = func(*Revision) bool { return false } },
			want:   Decision{Act: Rollback, To: 1, Remediates: true},
		},
		"a tampered revision is no target": {
			history: history(record(1, helm.StatusSuperseded, "older", label(ProvenLabel, Yes)), record(2, helm.StatusDeployed, "old"), record(3, helm.StatusFailed, "new", inputFailed(2))),
			change:  func(w *Want) { w.Trusts = func(n int, version string) bool { return n != 2 || version != "102" } },
			want:    Decision{Act: Rollback, To: 1, Remediates: true},
		},
		"the same input is a target when it was seen to be good": {
			history: history(record(1, helm.StatusSuperseded, "new", label(ProvenLabel, Yes)), record(2, helm.StatusFailed, "new", inputFailed(2))),
			want:    Decision{Act: Rollback, To: 1, Remediates: true},
		},
		"the same input is no target": {
			history: history(record(1, helm.StatusSuperseded, "new", label(ProvenLabel, No)), record(2, helm.StatusFailed, "new", inputFailed(2))),
			change:  retrying,
			want:    Decision{Act: Upgrade, Attempts: 2, InputFailures: 2, NoTarget: true},
		},
		"no target, and the retry is not due": {
			history: history(record(1, helm.StatusSuperseded, ""), record(2, helm.StatusFailed, "new", inputFailed(2))),
			change:  func(w *Want) { w.Retry = minutes },
			want:    Decision{Act: Failed, Attempts: 2, InputFailures: 2, NoTarget: true, Until: noon.Add(2 * time.Minute)},
		},
		"an install is never remedied": {
			history: history(record(1, helm.StatusFailed, "new", inputFailed(7))),
			change:  retrying,
			want:    Decision{Act: Install, Attempts: 7, InputFailures: 7},
		},
		"none is to be done": {
			history: history(record(1, helm.StatusDeployed, "old"), record(2, helm.StatusFailed, "new", inputFailed(2))),
			change:  func(w *Want) { w.Strategy = v1alpha1.RemediationNone },
			want:    Decision{Act: Withheld, Attempts: 2, InputFailures: 2},
		},
		"it is to be uninstalled": {
			history: history(record(1, helm.StatusDeployed, "old"), record(2, helm.StatusFailed, "new", inputFailed(2))),
			change:  func(w *Want) { w.Strategy = v1alpha1.RemediationUninstall },
			want:    Decision{Act: Uninstall, Remediates: true},
		},
		"it was uninstalled for this input": {
			history: history(record(2, helm.StatusUninstalled, "new", label(HeldLabel, "new"), label(ActionLabel, ActionUninstall))),
			want:    Decision{Act: Withheld},
		},
		"it was uninstalled for another input": {
			history: history(record(2, helm.StatusUninstalled, "bad", label(HeldLabel, "bad"), label(ActionLabel, ActionUninstall))),
			want:    Decision{Act: Reinstall},
		},
		"an install after it was uninstalled failed, not due": {
			history: history(record(2, helm.StatusUninstalled, "old", label(ActionLabel, ActionUninstall))),
			change: func(w *Want) {
				w.Retry, w.Last = minutes, Attempt{Act: Install, Trial: "new", Err: errors.New("no"), At: noon, Unstored: 1}
			},
			want: Decision{Act: Failed, Attempts: 1, Until: noon.Add(time.Minute)},
		},
		"an install after it was uninstalled failed with another input": {
			history: history(record(1, helm.StatusSuperseded, "a"), record(2, helm.StatusUninstalled, "a"), record(3, helm.StatusFailed, "old")),
			want:    Decision{Act: Install},
		},
		"an uninstallation failed before, and it is uninstalled now": {
			history: history(record(2, helm.StatusUninstalled, "old", label(ActionLabel, ActionUninstall))),
			change: func(w *Want) {
				w.Retry, w.Last = minutes, Attempt{Act: Uninstall, Trial: "new", Err: errors.New("no"), At: noon, Unstored: 1}
			},
			want: Decision{Act: Reinstall},
		},
		"an install failed before, and it is deployed now": {
			history: history(record(1, helm.StatusDeployed, "old")),
			change: func(w *Want) {
				w.Retry, w.Last = minutes, Attempt{Act: Install, Trial: "new", Err: errors.New("no"), At: noon, Unstored: 1}
			},
			want: Decision{Act: Upgrade},
		},
		"an upgrade that left no revision failed, forced": {
			history: history(record(1, helm.StatusDeployed, "old")),
			change: func(w *Want) {
				w.Manual.Force, w.Manual.Fresh = true, true
				w.Retry, w.Last = minutes, Attempt{Act: Upgrade, Trial: "new", Err: errors.New("no"), At: noon, Unstored: 2}
			},
			want: Decision{Act: Upgrade, Attempts: 2},
		},
		"an upgrade that left no revision failed, reset": {
			history: history(record(1, helm.StatusDeployed, "old")),
			change: func(w *Want) {
				w.Manual.Reset, w.Manual.Fresh = true, true
				w.Retry, w.Last = minutes, Attempt{Act: Upgrade, Trial: "new", Err: errors.New("no"), At: noon, Unstored: 2}
			},
			want: Decision{Act: Upgrade},
		},
		"it was uninstalled for this input, forced": {
			history: history(record(2, helm.StatusUninstalled, "new", label(HeldLabel, "new"), label(ActionLabel, ActionUninstall))),
			change:  func(w *Want) { w.Manual.Force = true },
			want:    Decision{Act: Reinstall},
		},
		"rolled back for this input": {
			history: history(rolledBack(4, helm.StatusDeployed, "new")),
			want:    Decision{Act: Withheld},
		},
		"rolled back for this input, forced": {
			history: history(rolledBack(4, helm.StatusDeployed, "new")),
			change:  func(w *Want) { w.Manual.Force = true },
			want:    Decision{Act: Upgrade, InputFailures: 1},
		},
		"rolled back for this input, reset": {
			history: history(rolledBack(4, helm.StatusDeployed, "new")),
			change:  func(w *Want) { w.Manual.Reset = true },
			want:    Decision{Act: Upgrade},
		},
		"rolled back for another input": {
			history: history(rolledBack(4, helm.StatusDeployed, "bad")),
			want:    Decision{Act: Upgrade},
		},
		"rolled back, and Git is back at that": {
			history: history(rolledBack(4, helm.StatusDeployed, "bad", label(DigestLabel, "new"))),
			want:    Decision{Act: Settled},
		},
		"rolled back for this input, then changed by a person": {
			history: history(rolledBack(4, helm.StatusSuperseded, "new"), record(5, helm.StatusDeployed, "old", label(RevisionLabel, "4"))),
			want:    Decision{Act: Withheld, Why: "revision 5 was made by hand (helm upgrade); this input is held and not returned to"},
		},
		"the rollback failed, not due": {
			history: history(record(1, helm.StatusDeployed, "old"), record(3, helm.StatusFailed, "new", inputFailed(2)), rolledBack(4, helm.StatusFailed, "new", label(AttemptLabel, "3"))),
			change:  func(w *Want) { w.Retry = minutes },
			want:    Decision{Act: Failed, Attempts: 3, Until: noon.Add(3 * time.Minute), To: 1, Remediates: true},
		},
		"the rollback failed, due": {
			history: history(record(1, helm.StatusDeployed, "old"), record(3, helm.StatusFailed, "new", inputFailed(2)), rolledBack(4, helm.StatusFailed, "new", label(AttemptLabel, "3"))),
			change:  retrying,
			want:    Decision{Act: Rollback, Attempts: 3, To: 1, Remediates: true},
		},
		"the rollback was interrupted": {
			history: history(record(1, helm.StatusDeployed, "old"), rolledBack(4, helm.StatusFailed, "new", interruptedly)),
			want:    Decision{Act: Rollback, To: 1, Remediates: true},
		},
		"the rollback failed, and there is another input": {
			history: history(record(1, helm.StatusDeployed, "old"), rolledBack(4, helm.StatusFailed, "bad")),
			want:    Decision{Act: Upgrade},
		},
		"the rollback failed before anything was recorded": {
			history: history(record(1, helm.StatusDeployed, "old"), record(3, helm.StatusFailed, "new", inputFailed(2))),
			change: func(w *Want) {
				w.Retry, w.Last = minutes, Attempt{Act: Rollback, Trial: "new", Err: errors.New("no"), At: noon, Unstored: 2}
			},
			want: Decision{Act: Failed, Attempts: 2, Until: noon.Add(2 * time.Minute), To: 1, Remediates: true},
		},
		"the upgrade that used up the retries does not delay the rollback": {
			history: history(record(1, helm.StatusDeployed, "old"), record(3, helm.StatusFailed, "new", inputFailed(2))),
			change: func(w *Want) {
				w.Retry, w.Last = minutes, Attempt{Act: Upgrade, Trial: "new", Err: errors.New("no"), At: noon}
			},
			want: Decision{Act: Rollback, To: 1, Remediates: true},
		},
		"failed, not due, and what was missing came since": {
			history: history(record(1, helm.StatusDeployed, "old"), record(3, helm.StatusFailed, "new", inputFailed(1))),
			change:  func(w *Want) { w.Retry, w.Mended = minutes, noon.Add(time.Millisecond) },
			want:    Decision{Act: Upgrade, Attempts: 1, InputFailures: 1},
		},
		"failed, not due, although what was missing had come": {
			history: history(record(1, helm.StatusDeployed, "old"), record(3, helm.StatusFailed, "new", inputFailed(1))),
			change:  func(w *Want) { w.Retry, w.Mended = minutes, noon },
			want:    Decision{Act: Failed, Attempts: 1, InputFailures: 1, Until: noon.Add(time.Minute)},
		},
		"failed often, reset": {
			history: history(record(1, helm.StatusDeployed, "old"), record(3, helm.StatusFailed, "new", inputFailed(2))),
			change:  func(w *Want) { w.Retry, w.Manual.Reset, w.Manual.Fresh = minutes, true, true },
			want:    Decision{Act: Upgrade},
		},
		"failed, not due, forced": {
			history: history(record(1, helm.StatusDeployed, "old"), record(3, helm.StatusFailed, "new", inputFailed(1))),
			change:  func(w *Want) { w.Retry, w.Manual.Force, w.Manual.Fresh = minutes, true, true },
			want:    Decision{Act: Upgrade, Attempts: 1, InputFailures: 1},
		},
		"held, forced, and the environment made that fail": {
			history: history(rolledBack(4, helm.StatusDeployed, "new")),
			change: func(w *Want) {
				w.Retry, w.Manual.Force = minutes, true
				w.Last = Attempt{Act: Upgrade, Trial: "new", Err: errors.New("no"), At: noon, Unstored: 1, Environment: true}
			},
			want: Decision{Act: Failed, Attempts: 1, InputFailures: 1, Until: noon.Add(time.Minute)},
		},
		"kubeop was uninstalling in a process that is gone": {
			history: history(record(1, helm.StatusUninstalling, "new", label(ActionLabel, ActionUninstall), label(HolderLabel, "gone"))),
			want:    Decision{Act: Uninstall},
		},
		"held, and it is known how often it failed": {
			history: history(record(1, helm.StatusSuperseded, "old"), record(2, helm.StatusFailed, "new", inputFailed(2)), rolledBack(3, helm.StatusDeployed, "new")),
			want:    Decision{Act: Withheld, Attempts: 2, InputFailures: 2},
		},
		"a rollback failed, and nothing can be restored": {
			history: history(record(1, helm.StatusSuperseded, "old"), record(2, helm.StatusFailed, "new", inputFailed(2)), rolledBack(3, helm.StatusFailed, "new", label(AttemptLabel, "4"))),
			change:  retrying,
			want:    Decision{Act: Upgrade, Attempts: 4, NoTarget: true},
		},
		"failed too often, proven before it was uninstalled": {
			history: history(record(1, helm.StatusSuperseded, "old", label(ProvenLabel, Yes)), record(2, helm.StatusUninstalled, "old"),
				record(3, helm.StatusDeployed, "other"), record(4, helm.StatusFailed, "new", inputFailed(2))),
			change: func(w *Want) { retrying(w); w.Proven = func(*Revision) bool { return false } },
			want:   Decision{Act: Upgrade, Attempts: 2, InputFailures: 2, NoTarget: true},
		},
		"kubeop was uninstalling for an input": {
			history: history(record(1, helm.StatusUninstalling, "new", label(ActionLabel, ActionUninstall), label(HeldLabel, "new"))),
			want:    Decision{Act: Uninstall, Remediates: true},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := asWanted()
			if test.change != nil {
				test.change(&w)
			}
			got := Next(StateOf("web", test.history), w)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(Decision{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// rolledBack is the record of a rollback made because that trial failed.
func rolledBack(number int, status helm.Status, trial string, change ...func(map[string]string)) metav1.PartialObjectMetadata {
	all := append([]func(map[string]string){label(ActionLabel, ActionRollback), label(HeldLabel, trial), label(ToLabel, "1")}, change...)
	return record(number, status, "old", all...)
}

// retrying makes every retry due at once.
func retrying(w *Want) { w.Retry = func(int) time.Duration { return 0 } }

func minutes(attempts int) time.Duration { return time.Duration(attempts) * time.Minute }

// uninstalling is the trial of an uninstall.
const uninstalling = "uninstall"

func asWanted() Want {
	return Want{
		App: "shop", Digest: "new", Trial: "new", Holder: "me", Retries: 1,
		HolderAlive: func(string) bool { return false },
		Proven:      func(*Revision) bool { return true },
		Now:         noon, Timeout: 5 * time.Minute,
	}
}

func TestTheHistoryDecidesHowARemovalGoesOn(t *testing.T) {
	tests := map[string]struct {
		history []metav1.PartialObjectMetadata
		change  func(*Want)
		want    Decision
	}{
		"nothing there":        {want: Decision{Act: Settled}},
		"deployed":             {history: history(record(1, helm.StatusDeployed, "old")), want: Decision{Act: Uninstall}},
		"first install failed": {history: history(record(1, helm.StatusFailed, "old")), want: Decision{Act: Uninstall}},
		"another app's": {
			history: history(record(1, helm.StatusDeployed, "old", label(AppLabel, "other"))),
			want:    Decision{Act: Settled},
		},
		"interrupted": {history: history(record(1, helm.StatusPendingInstall, "old")), want: Decision{Act: Uninstall}},
		"a person's helm is running": {
			history: history(record(1, helm.StatusPendingInstall, "")),
			want:    Decision{Act: Locked, Until: noon.Add(6 * time.Minute), Why: "revision 1 is pending-install by someone outside kubeop"},
		},
		"half-way":    {history: history(record(1, helm.StatusUninstalling, "old")), want: Decision{Act: Uninstall}},
		"uninstalled": {history: history(record(1, helm.StatusUninstalled, "old")), want: Decision{Act: Reinstall}},
		"failed before, not due": {
			history: history(record(1, helm.StatusUninstalling, "old")),
			change: func(w *Want) {
				w.Retry, w.Last = minutes, Attempt{Act: Uninstall, Trial: uninstalling, Err: errors.New("no"), At: noon, Unstored: 1}
			},
			want: Decision{Act: Failed, Attempts: 1, Until: noon.Add(time.Minute)},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := asWanted()
			w.Digest, w.Trial = uninstalling, uninstalling
			if test.change != nil {
				test.change(&w)
			}
			got := Removal(StateOf("web", test.history), w)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(Decision{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOnlyADeploymentOfThisInputCounts(t *testing.T) {
	tests := map[string]struct {
		record *metav1.PartialObjectMetadata
		want   bool
	}{
		"nothing there":            {nil, false},
		"deployed with this input": {new(record(2, helm.StatusDeployed, "new")), true},
		"failed with this input":   {new(record(2, helm.StatusFailed, "new")), false},
		"made by a person":         {new(record(2, helm.StatusDeployed, "new", label(RevisionLabel, "1"))), false},
		"of another input":         {new(record(2, helm.StatusDeployed, "old")), false},
		"rolled back to":           {new(record(2, helm.StatusDeployed, "new", label(ActionLabel, ActionRollback))), false},
		"another app's":            {new(record(2, helm.StatusDeployed, "new", label(AppLabel, "other"))), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var s State
			if test.record != nil {
				s = StateOf("web", history(*test.record))
			}
			if got := Judged(s, asWanted()); (got != nil) != test.want || got != nil && got.Number != 2 {
				t.Errorf("got %+v", got)
			}
		})
	}
}
