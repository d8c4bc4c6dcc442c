package release

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

// record is the metadata of a revision's record; kubeop wrote it for the digest, and a trial of the same name, unless that
// is empty.
func record(number int, status helm.Status, digest string, change ...func(map[string]string)) metav1.PartialObjectMetadata {
	labels := map[string]string{
		"owner": "helm", "name": "web", "status": status.String(), "version": strconv.Itoa(number),
		"createdAt": "1", "modifiedAt": strconv.FormatInt(noon.Unix(), 10),
	}
	if digest != "" {
		labels[appLabel] = "shop"
		labels[digestLabel], labels[trialLabel] = digest, digest
		labels[holderLabel] = "me"
		labels[attemptLabel] = "1"
		labels[contentLabel] = "c"
		labels[revisionLabel] = strconv.Itoa(number)
	}
	for _, c := range change {
		c(labels)
	}
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: keyOf("web", number), Labels: labels, ResourceVersion: strconv.Itoa(100 + number),
	}}
}

func label(key, value string) func(map[string]string) {
	return func(l map[string]string) { l[key] = value }
}

// inputFailed is a failure of that many that were the input's.
func inputFailed(n int) func(map[string]string) {
	return func(l map[string]string) {
		l[attemptLabel], l[blameLabel], l[faultLabel] = strconv.Itoa(n), strconv.Itoa(n), faultInput
	}
}

// interruptedly takes away what an interrupted action does not tell.
func interruptedly(l map[string]string) { delete(l, digestLabel); delete(l, trialLabel) }

func history(records ...metav1.PartialObjectMetadata) []metav1.PartialObjectMetadata { return records }

func TestNext(t *testing.T) {
	overdue := noon.Add(6 * time.Minute) // timeout and grace
	tests := map[string]struct {
		history []metav1.PartialObjectMetadata
		change  func(*want)
		want    decision
	}{
		"nothing there": {
			want: decision{act: install},
		},
		"deployed with this input": {
			history: history(record(1, helm.StatusDeployed, "new")),
			want:    decision{act: settled},
		},
		"deployed with another input": {
			history: history(record(1, helm.StatusDeployed, "old")),
			want:    decision{act: upgrade},
		},
		"deployed by a person": {
			history: history(record(1, helm.StatusDeployed, "")),
			want:    decision{act: upgrade, why: "revision 1 was made by hand; returning to Git's state"},
		},
		"upgraded by a person, whose helm carried our labels on": {
			history: history(record(1, helm.StatusSuperseded, "new"), record(2, helm.StatusDeployed, "new", label(revisionLabel, "1"))),
			want:    decision{act: upgrade, why: "revision 2 was made by hand (helm upgrade); returning to Git's state"},
		},
		"another app's": {
			history: history(record(1, helm.StatusDeployed, "new", label(appLabel, "other"))),
			want:    decision{act: taken, why: "other"},
		},
		"interrupted in this process or before it restarted": {
			history: history(record(1, helm.StatusPendingInstall, "new")),
			want:    decision{act: unlock},
		},
		"interrupted in a process that is gone": {
			history: history(record(1, helm.StatusPendingUpgrade, "new", label(holderLabel, "gone"))),
			want:    decision{act: unlock},
		},
		"pending in another live process": {
			history: history(record(3, helm.StatusPendingUpgrade, "new", label(holderLabel, "other"))),
			change:  func(w *want) { w.holderAlive = func(h string) bool { return h == "other" } },
			want:    decision{act: locked, until: overdue, why: "revision 3 is pending-upgrade by other"},
		},
		"pending in another live process for too long": {
			history: history(record(3, helm.StatusPendingUpgrade, "new", label(holderLabel, "other"))),
			change: func(w *want) {
				w.holderAlive = func(string) bool { return true }
				w.now = overdue
			},
			want: decision{act: unlock},
		},
		"a person's helm is running": {
			history: history(record(2, helm.StatusPendingUpgrade, "new", label(revisionLabel, "1"))),
			want:    decision{act: locked, until: overdue, why: "revision 2 is pending-upgrade by someone outside kubeop"},
		},
		"a person's helm was killed": {
			history: history(record(2, helm.StatusPendingRollback, "")),
			change:  func(w *want) { w.now = overdue },
			want:    decision{act: unlock},
		},
		"being uninstalled": {
			history: history(record(1, helm.StatusUninstalling, "new")),
			want:    decision{act: locked, until: overdue, why: "it is being uninstalled"},
		},
		"uninstallation left half-way": {
			history: history(record(1, helm.StatusUninstalling, "new")),
			change:  func(w *want) { w.now = overdue },
			want:    decision{act: uninstall},
		},
		"uninstalled, history kept": {
			history: history(record(1, helm.StatusUninstalled, "new")),
			want:    decision{act: vacate},
		},
		"first install failed, another input": {
			history: history(record(1, helm.StatusFailed, "old")),
			want:    decision{act: install},
		},
		"first install interrupted": {
			history: history(record(1, helm.StatusFailed, "new", interruptedly)),
			want:    decision{act: install},
		},
		"upgrade failed, another input": {
			history: history(record(1, helm.StatusDeployed, "older"), record(2, helm.StatusFailed, "old")),
			want:    decision{act: upgrade},
		},
		"failed after it was superseded": {
			history: history(record(1, helm.StatusSuperseded, "older"), record(2, helm.StatusFailed, "old")),
			want:    decision{act: upgrade},
		},
		"this input failed, no retry": {
			history: history(record(1, helm.StatusDeployed, "old"), record(2, helm.StatusFailed, "new")),
			want:    decision{act: failed, attempts: 1},
		},
		"this input failed, retry not due": {
			history: history(record(2, helm.StatusFailed, "new", label(attemptLabel, "3"))),
			change:  func(w *want) { w.retry, w.now = minutes, noon.Add(179*time.Second) },
			want:    decision{act: failed, attempts: 3, until: noon.Add(3 * time.Minute)},
		},
		"this input failed, retry due": {
			history: history(record(1, helm.StatusDeployed, "old"), record(2, helm.StatusFailed, "new", label(attemptLabel, "3"))),
			change:  func(w *want) { w.retry, w.now = minutes, noon.Add(3*time.Minute) },
			want:    decision{act: upgrade, attempts: 3},
		},
		"this input failed before the clock was set back by hours": {
			history: history(record(1, helm.StatusDeployed, "old"), record(2, helm.StatusFailed, "new", label(attemptLabel, "3"))),
			change:  func(w *want) { w.retry, w.now = minutes, noon.Add(-5*time.Hour) },
			want:    decision{act: upgrade, attempts: 3},
		},
		"the pause counts from the end that this process remembers": {
			history: history(record(2, helm.StatusFailed, "new")),
			change: func(w *want) {
				w.retry, w.now = minutes, noon.Add(2*time.Minute)
				w.last = attempt{act: install, trial: "new", err: errors.New("hook failed"), at: noon.Add(90 * time.Second)}
			},
			want: decision{act: failed, attempts: 1, until: noon.Add(150 * time.Second)},
		},
		"failed before anything was recorded": {
			history: history(record(1, helm.StatusDeployed, "old")),
			change: func(w *want) {
				w.last = attempt{act: upgrade, trial: "new", err: errors.New("no"), at: noon, unstored: 2}
			},
			want: decision{act: failed, attempts: 2},
		},
		"failed, and its record was deleted": {
			history: history(record(1, helm.StatusDeployed, "old")),
			change:  func(w *want) { w.last = attempt{act: upgrade, trial: "new", err: errors.New("no"), at: noon} },
			want:    decision{act: failed, attempts: 1},
		},
		"another input failed before anything was recorded": {
			history: history(record(1, helm.StatusDeployed, "old")),
			change: func(w *want) {
				w.last = attempt{act: upgrade, trial: "bad", err: errors.New("no"), at: noon, unstored: 2}
			},
			want: decision{act: upgrade},
		},
		"rolled back by a person to an older input": {
			history: history(record(1, helm.StatusSuperseded, "old"), record(2, helm.StatusSuperseded, "new"), record(3, helm.StatusDeployed, "old", label(revisionLabel, "1"))),
			want:    decision{act: upgrade, why: "revision 3 was made by hand (helm rollback); returning to Git's state"},
		},
		"settled, forced": {
			history: history(record(1, helm.StatusDeployed, "new")),
			change:  func(w *want) { w.force = true },
			want:    decision{act: upgrade},
		},
		"settled, reset": {
			history: history(record(1, helm.StatusDeployed, "new")),
			change:  func(w *want) { w.reset = true },
			want:    decision{act: settled},
		},
		"the world stood in the way more often than there are retries": {
			history: history(record(1, helm.StatusDeployed, "old"), record(2, helm.StatusFailed, "new", label(attemptLabel, "9"), label(faultLabel, faultWorld))),
			change:  retrying,
			want:    decision{act: upgrade, attempts: 9},
		},
		"the input failed once": {
			history: history(record(1, helm.StatusDeployed, "old"), record(2, helm.StatusFailed, "new", inputFailed(1))),
			change:  retrying,
			want:    decision{act: upgrade, attempts: 1, blame: 1},
		},
		"the input used up its retries": {
			history: history(record(1, helm.StatusDeployed, "old"), record(2, helm.StatusFailed, "new", inputFailed(1)), record(3, helm.StatusFailed, "new", inputFailed(2))),
			want:    decision{act: rollback, to: 1, mends: true},
		},
		"the input used up its retries, then was interrupted": {
			history: history(record(1, helm.StatusDeployed, "old"), record(2, helm.StatusFailed, "new", inputFailed(2)), record(3, helm.StatusFailed, "new", interruptedly)),
			want:    decision{act: rollback, to: 1, mends: true},
		},
		"a second failure after an interruption": {
			history: history(record(1, helm.StatusSuperseded, "old", label(provenLabel, yes)), record(2, helm.StatusFailed, "new", interruptedly), record(3, helm.StatusFailed, "new", inputFailed(2))),
			want:    decision{act: rollback, to: 1, mends: true},
		},
		"an unproven revision is no target": {
			history: history(record(1, helm.StatusSuperseded, "older", label(provenLabel, yes)), record(2, helm.StatusSuperseded, "old", label(provenLabel, no)),
				record(3, helm.StatusFailed, "new", inputFailed(2))),
			want: decision{act: rollback, to: 1, mends: true},
		},
		"a person's revision is no target": {
			history: history(record(1, helm.StatusSuperseded, "older", label(provenLabel, yes)), record(2, helm.StatusDeployed, "older", label(revisionLabel, "1")),
				record(3, helm.StatusFailed, "new", inputFailed(2))),
			want: decision{act: rollback, to: 1, mends: true},
		},
		"a revision of which nobody said that it was good is no target": {
			history: history(record(1, helm.StatusSuperseded, "old"), record(2, helm.StatusFailed, "new", inputFailed(2))),
			change:  retrying,
			want:    decision{act: upgrade, attempts: 2, blame: 2, stuck: true},
		},
		"what is deployed is no target before it is seen to be good": {
			history: history(record(1, helm.StatusSuperseded, "older", label(provenLabel, yes)), record(2, helm.StatusDeployed, "old"),
				record(3, helm.StatusFailed, "new", inputFailed(2))),
			change: func(w *want) { w.proven = func(*revision) bool { return false } },
			want:   decision{act: rollback, to: 1, mends: true},
		},
		"a tampered revision is no target": {
			history: history(record(1, helm.StatusSuperseded, "older", label(provenLabel, yes)), record(2, helm.StatusDeployed, "old"), record(3, helm.StatusFailed, "new", inputFailed(2))),
			change:  func(w *want) { w.trusts = func(n int, version string) bool { return n != 2 || version != "102" } },
			want:    decision{act: rollback, to: 1, mends: true},
		},
		"the same input is a target when it was seen to be good": {
			history: history(record(1, helm.StatusSuperseded, "new", label(provenLabel, yes)), record(2, helm.StatusFailed, "new", inputFailed(2))),
			want:    decision{act: rollback, to: 1, mends: true},
		},
		"the same input is no target": {
			history: history(record(1, helm.StatusSuperseded, "new", label(provenLabel, no)), record(2, helm.StatusFailed, "new", inputFailed(2))),
			change:  retrying,
			want:    decision{act: upgrade, attempts: 2, blame: 2, stuck: true},
		},
		"no target, and the retry is not due": {
			history: history(record(1, helm.StatusSuperseded, ""), record(2, helm.StatusFailed, "new", inputFailed(2))),
			change:  func(w *want) { w.retry = minutes },
			want:    decision{act: failed, attempts: 2, blame: 2, stuck: true, until: noon.Add(2 * time.Minute)},
		},
		"an install is never remedied": {
			history: history(record(1, helm.StatusFailed, "new", inputFailed(7))),
			change:  retrying,
			want:    decision{act: install, attempts: 7, blame: 7},
		},
		"none is to be done": {
			history: history(record(1, helm.StatusDeployed, "old"), record(2, helm.StatusFailed, "new", inputFailed(2))),
			change:  func(w *want) { w.strategy = v1alpha1.RemediationNone },
			want:    decision{act: withheld, attempts: 2, blame: 2},
		},
		"it is to be uninstalled": {
			history: history(record(1, helm.StatusDeployed, "old"), record(2, helm.StatusFailed, "new", inputFailed(2))),
			change:  func(w *want) { w.strategy = v1alpha1.RemediationUninstall },
			want:    decision{act: uninstall, mends: true},
		},
		"it was uninstalled for this input": {
			history: history(record(2, helm.StatusUninstalled, "new", label(heldLabel, "new"), label(actionLabel, actionUninstall))),
			want:    decision{act: withheld},
		},
		"it was uninstalled for another input": {
			history: history(record(2, helm.StatusUninstalled, "bad", label(heldLabel, "bad"), label(actionLabel, actionUninstall))),
			want:    decision{act: vacate},
		},
		"it was uninstalled for this input, forced": {
			history: history(record(2, helm.StatusUninstalled, "new", label(heldLabel, "new"), label(actionLabel, actionUninstall))),
			change:  func(w *want) { w.force = true },
			want:    decision{act: vacate},
		},
		"rolled back for this input": {
			history: history(rolledBack(4, helm.StatusDeployed, "new")),
			want:    decision{act: withheld},
		},
		"rolled back for this input, forced": {
			history: history(rolledBack(4, helm.StatusDeployed, "new")),
			change:  func(w *want) { w.force = true },
			want:    decision{act: upgrade, blame: 1},
		},
		"rolled back for this input, reset": {
			history: history(rolledBack(4, helm.StatusDeployed, "new")),
			change:  func(w *want) { w.reset = true },
			want:    decision{act: upgrade},
		},
		"rolled back for another input": {
			history: history(rolledBack(4, helm.StatusDeployed, "bad")),
			want:    decision{act: upgrade},
		},
		"rolled back, and Git is back at that": {
			history: history(rolledBack(4, helm.StatusDeployed, "bad", label(digestLabel, "new"))),
			want:    decision{act: settled},
		},
		"rolled back for this input, then changed by a person": {
			history: history(rolledBack(4, helm.StatusSuperseded, "new"), record(5, helm.StatusDeployed, "old", label(revisionLabel, "4"))),
			want:    decision{act: withheld, why: "revision 5 was made by hand (helm upgrade); this input is held and not returned to"},
		},
		"the rollback failed, not due": {
			history: history(record(1, helm.StatusDeployed, "old"), record(3, helm.StatusFailed, "new", inputFailed(2)), rolledBack(4, helm.StatusFailed, "new", label(attemptLabel, "3"))),
			change:  func(w *want) { w.retry = minutes },
			want:    decision{act: failed, attempts: 3, until: noon.Add(3 * time.Minute), to: 1, mends: true},
		},
		"the rollback failed, due": {
			history: history(record(1, helm.StatusDeployed, "old"), record(3, helm.StatusFailed, "new", inputFailed(2)), rolledBack(4, helm.StatusFailed, "new", label(attemptLabel, "3"))),
			change:  retrying,
			want:    decision{act: rollback, attempts: 3, to: 1, mends: true},
		},
		"the rollback was interrupted": {
			history: history(record(1, helm.StatusDeployed, "old"), rolledBack(4, helm.StatusFailed, "new", interruptedly)),
			want:    decision{act: rollback, to: 1, mends: true},
		},
		"the rollback failed, and there is another input": {
			history: history(record(1, helm.StatusDeployed, "old"), rolledBack(4, helm.StatusFailed, "bad")),
			want:    decision{act: upgrade},
		},
		"the rollback failed before anything was recorded": {
			history: history(record(1, helm.StatusDeployed, "old"), record(3, helm.StatusFailed, "new", inputFailed(2))),
			change: func(w *want) {
				w.retry, w.last = minutes, attempt{act: rollback, trial: "new", err: errors.New("no"), at: noon, unstored: 2}
			},
			want: decision{act: failed, attempts: 2, until: noon.Add(2 * time.Minute), to: 1, mends: true},
		},
		"the upgrade that used up the retries does not delay the rollback": {
			history: history(record(1, helm.StatusDeployed, "old"), record(3, helm.StatusFailed, "new", inputFailed(2))),
			change: func(w *want) {
				w.retry, w.last = minutes, attempt{act: upgrade, trial: "new", err: errors.New("no"), at: noon}
			},
			want: decision{act: rollback, to: 1, mends: true},
		},
		"failed often, reset": {
			history: history(record(1, helm.StatusDeployed, "old"), record(3, helm.StatusFailed, "new", inputFailed(2))),
			change:  func(w *want) { w.retry, w.reset, w.fresh = minutes, true, true },
			want:    decision{act: upgrade},
		},
		"failed, not due, forced": {
			history: history(record(1, helm.StatusDeployed, "old"), record(3, helm.StatusFailed, "new", inputFailed(1))),
			change:  func(w *want) { w.retry, w.force, w.fresh = minutes, true, true },
			want:    decision{act: upgrade, attempts: 1, blame: 1},
		},
		"held, forced, and the world stood in the way of that": {
			history: history(rolledBack(4, helm.StatusDeployed, "new")),
			change: func(w *want) {
				w.retry, w.force = minutes, true
				w.last = attempt{act: upgrade, trial: "new", err: errors.New("no"), at: noon, unstored: 1, world: true}
			},
			want: decision{act: failed, attempts: 1, blame: 1, until: noon.Add(time.Minute)},
		},
		"kubeop was uninstalling in a process that is gone": {
			history: history(record(1, helm.StatusUninstalling, "new", label(actionLabel, actionUninstall), label(holderLabel, "gone"))),
			want:    decision{act: uninstall},
		},
		"kubeop was uninstalling for an input": {
			history: history(record(1, helm.StatusUninstalling, "new", label(actionLabel, actionUninstall), label(heldLabel, "new"))),
			want:    decision{act: uninstall, mends: true},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := asWanted()
			if test.change != nil {
				test.change(&w)
			}
			got := next(stateOf("web", test.history), w)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(decision{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// rolledBack is a rollback that was made because that trial failed.
func rolledBack(number int, status helm.Status, trial string, change ...func(map[string]string)) metav1.PartialObjectMetadata {
	all := append([]func(map[string]string){label(actionLabel, actionRollback), label(heldLabel, trial), label(toLabel, "1")}, change...)
	return record(number, status, "old", all...)
}

// retrying has every retry be due.
func retrying(w *want) { w.retry = func(int) time.Duration { return 0 } }

func minutes(attempts int) time.Duration { return time.Duration(attempts) * time.Minute }

func asWanted() want {
	return want{
		app: "shop", digest: "new", trial: "new", holder: "me", retries: 1,
		holderAlive: func(string) bool { return false },
		proven:      func(*revision) bool { return true },
		now:         noon, timeout: 5 * time.Minute,
	}
}

func TestRemoval(t *testing.T) {
	tests := map[string]struct {
		history []metav1.PartialObjectMetadata
		change  func(*want)
		want    decision
	}{
		"nothing there":        {want: decision{act: settled}},
		"deployed":             {history: history(record(1, helm.StatusDeployed, "old")), want: decision{act: uninstall}},
		"first install failed": {history: history(record(1, helm.StatusFailed, "old")), want: decision{act: uninstall}},
		"another app's": {
			history: history(record(1, helm.StatusDeployed, "old", label(appLabel, "other"))),
			want:    decision{act: settled},
		},
		"interrupted": {history: history(record(1, helm.StatusPendingInstall, "old")), want: decision{act: uninstall}},
		"a person's helm is running": {
			history: history(record(1, helm.StatusPendingInstall, "")),
			want:    decision{act: locked, until: noon.Add(6 * time.Minute), why: "revision 1 is pending-install by someone outside kubeop"},
		},
		"half-way":    {history: history(record(1, helm.StatusUninstalling, "old")), want: decision{act: uninstall}},
		"uninstalled": {history: history(record(1, helm.StatusUninstalled, "old")), want: decision{act: vacate}},
		"failed before, not due": {
			history: history(record(1, helm.StatusUninstalling, "old")),
			change: func(w *want) {
				w.retry, w.last = minutes, attempt{act: uninstall, trial: uninstalling, err: errors.New("no"), at: noon, unstored: 1}
			},
			want: decision{act: failed, attempts: 1, until: noon.Add(time.Minute)},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := asWanted()
			w.digest, w.trial = uninstalling, uninstalling
			if test.change != nil {
				test.change(&w)
			}
			got := removal(stateOf("web", test.history), w)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(decision{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
