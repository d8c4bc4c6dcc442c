package release

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	helm "helm.sh/helm/v3/pkg/release"
	helmtime "helm.sh/helm/v3/pkg/time"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// record is a revision as storage holds it; kubeop wrote it for the digest, unless that is empty.
func record(number int, status helm.Status, digest string, change ...func(*helm.Release)) *helm.Release {
	r := &helm.Release{
		Name:      "web",
		Namespace: "team",
		Version:   number,
		Info:      &helm.Info{Status: status, LastDeployed: helmtime.Time{Time: noon}, Deleted: helmtime.Time{Time: noon}},
		Labels:    map[string]string{},
	}
	if digest != "" {
		r.Labels = map[string]string{
			appLabel:      "shop",
			digestLabel:   digest,
			holderLabel:   "me",
			attemptLabel:  "1",
			revisionLabel: strconv.Itoa(number),
		}
	}
	for _, c := range change {
		c(r)
	}
	return r
}

func label(key, value string) func(*helm.Release) {
	return func(r *helm.Release) { r.Labels[key] = value }
}

func history(records ...*helm.Release) []*helm.Release { return records }

func TestNext(t *testing.T) {
	overdue := noon.Add(6 * time.Minute) // timeout and grace
	tests := map[string]struct {
		history []*helm.Release
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
			want:    decision{act: upgrade},
		},
		"upgraded by a person, whose helm carried our labels on": {
			history: history(record(1, helm.StatusSuperseded, "new"), record(2, helm.StatusDeployed, "new", label(revisionLabel, "1"))),
			want:    decision{act: upgrade},
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
			history: history(record(1, helm.StatusFailed, "new", func(r *helm.Release) { delete(r.Labels, digestLabel) })),
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
		"the pause counts from the end that this process remembers": {
			history: history(record(2, helm.StatusFailed, "new")),
			change: func(w *want) {
				w.retry, w.now = minutes, noon.Add(2*time.Minute)
				w.last = attempt{digest: "new", err: errors.New("hook failed"), at: noon.Add(90 * time.Second)}
			},
			want: decision{act: failed, attempts: 1, until: noon.Add(150 * time.Second)},
		},
		"failed before anything was recorded": {
			history: history(record(1, helm.StatusDeployed, "old")),
			change:  func(w *want) { w.last = attempt{digest: "new", err: errors.New("no"), at: noon, unstored: 2} },
			want:    decision{act: failed, attempts: 2},
		},
		"failed, and its record was deleted": {
			history: history(record(1, helm.StatusDeployed, "old")),
			change:  func(w *want) { w.last = attempt{digest: "new", err: errors.New("no"), at: noon} },
			want:    decision{act: failed, attempts: 1},
		},
		"another input failed before anything was recorded": {
			history: history(record(1, helm.StatusDeployed, "old")),
			change:  func(w *want) { w.last = attempt{digest: "bad", err: errors.New("no"), at: noon, unstored: 2} },
			want:    decision{act: upgrade},
		},
		"rolled back by a person to an older input": {
			history: history(record(2, helm.StatusSuperseded, "new"), record(3, helm.StatusDeployed, "old", label(revisionLabel, "1"))),
			want:    decision{act: upgrade},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := asWanted()
			if test.change != nil {
				test.change(&w)
			}
			got := next(stateOf(test.history), w)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(decision{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func minutes(attempts int) time.Duration { return time.Duration(attempts) * time.Minute }

func asWanted() want {
	return want{
		app: "shop", digest: "new", holder: "me",
		holderAlive: func(string) bool { return false },
		now:         noon, timeout: 5 * time.Minute,
	}
}

func TestRemoval(t *testing.T) {
	tests := map[string]struct {
		history []*helm.Release
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
				w.retry, w.last = minutes, attempt{digest: uninstalling, err: errors.New("no"), at: noon, unstored: 1}
			},
			want: decision{act: failed, attempts: 1, until: noon.Add(time.Minute)},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := asWanted()
			w.digest = uninstalling
			if test.change != nil {
				test.change(&w)
			}
			got := removal(stateOf(test.history), w)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(decision{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
