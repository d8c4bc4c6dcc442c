// Package decide reads the state of a release from the labels of Helm's records and returns the next action. It makes no requests and
// changes nothing. labels.go has the labels, state.go reads them, next.go decides.
package decide

import (
	"fmt"
	"time"

	helm "helm.sh/helm/v3/pkg/release"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Act is the next action.
type Act string

const (
	// Settled means that the records show the wanted release.
	Settled Act = ""
	// Install makes the first revision.
	Install Act = "installing"
	// Upgrade makes the next one.
	Upgrade Act = "upgrading"
	// Rollback restores an earlier revision because the input failed too often.
	Rollback Act = "rolling back"
	// Uninstall completes an interrupted uninstall, or is the remediation of an input that failed too often.
	Uninstall Act = "uninstalling"
	// Probe runs the chart's tests.
	Probe Act = "testing"
	// Unlock marks an interrupted revision (pending-install, pending-upgrade or pending-rollback) as failed and decides again.
	Unlock Act = "unlocking"
	// Reinstall installs again, once the objects of the uninstalled release are gone.
	Reinstall Act = "vacating"
	// Locked means that another process or person works on the release.
	Locked Act = "locked"
	// Taken means that the release belongs to another app.
	Taken Act = "taken"
	// Failed means that the last attempt at this input failed and the next one is not due.
	Failed Act = "failed"
	// Withheld means that this input failed too often and is not tried again.
	Withheld Act = "held"
)

// grace is added to the timeout before the unfinished action of another process is taken over, because its end is written after the
// timeout.
const grace = time.Minute

// Attempt is what this process remembers of the last action on a release. The records have nothing about an attempt that failed before the
// first write, and only the text of an error.
type Attempt struct {
	Act   Act
	Trial string
	Err   error
	// Environment: the environment caused Err, not the input.
	Environment bool
	At          time.Time
	// Unstored counts failures in a row that were not recorded in a revision.
	Unstored int
	// Log holds the last lines that Helm logged.
	Log []string
}

// Want is the wanted release, and what else a decision needs besides the records.
type Want struct {
	App, Holder string
	// Digest is the digest of what is released, Trial of that and of how it is released.
	Digest, Trial string
	HolderAlive   func(string) bool
	Now           time.Time
	Timeout       time.Duration
	// Mended ends the pause after a failure before it.
	Mended   time.Time
	Retry    func(attempts int) time.Duration
	Retries  int
	Strategy v1alpha1.RemediationStrategy
	Manual   Manual
	// Proven reports whether a deployed revision was seen healthy.
	Proven func(*Revision) bool
	Trusts func(number int, version string) bool
	Last   Attempt
}

// Manual is what a person requested; see release.Manual.
type Manual struct {
	Force, Reset bool
	// Fresh: Force or Reset is requested, and no action has failed for that request yet.
	Fresh bool
}

// Decision is the next action and the reason.
type Decision struct {
	Act Act
	// Until is when a lock can be taken over, or when a failed input is retried; zero for never.
	Until time.Time
	// Attempts counts the failures in a row so far, InputFailures those caused by the input.
	Attempts, InputFailures int
	// To is the revision that a rollback restores.
	To int
	// NoTarget: no revision can be restored.
	NoTarget bool
	// Remediates: the action is the remediation of an input that failed too often.
	Remediates bool
	// Why says who holds the lock or owns the release, or which change by hand the action corrects.
	Why string
}

// Next returns the next action. The order of the rules is defined only here; the docs show it as a table.
func Next(s State, w Want) Decision {
	last := s.Last()
	if last == nil {
		return w.Try(Install, Tally{})
	}
	if last.App != "" && last.App != w.App {
		return Decision{Act: Taken, Why: last.App}
	}
	switch {
	case last.Status.IsPending():
		return w.pending(last)
	case last.Status == helm.StatusUninstalling:
		return w.uninstalling(last)
	}
	return w.idle(s, last)
}

// idle decides about a release on which no action is running.
func (w Want) idle(s State, last *Revision) Decision {
	requested := w.Manual.Force || w.Manual.Reset
	switch {
	case last.Status == helm.StatusDeployed && last.Ours && last.Digest == w.Digest && !w.Manual.Force:
		return Decision{Act: Settled}
	case s.holds(w.Trial) && !requested:
		d := gaveUp(s, w.Trial)
		if last.Status == helm.StatusDeployed && !last.Ours {
			d.Why = byHand(s) + "; this input is held and not returned to"
		}
		return d
	case last.Status == helm.StatusUninstalled:
		return w.Try(Reinstall, Tally{})
	case last.Status == helm.StatusFailed && last.Action == ActionRollback && last.Held == w.Trial && !requested:
		return w.rollback(s, last)
	case !s.everDeployed():
		// Helm's upgrade would also work, but it never runs the install hooks, and templates would see .Release.IsInstall false.
		return w.Try(Install, w.tally(s))
	}
	return w.upgrade(s)
}

// gaveUp returns how often the trial failed before it was given up, if that is still known.
func gaveUp(s State, trial string) Decision {
	d := Decision{Act: Withheld}
	if f := s.Failure(trial); f != nil {
		d.Attempts, d.InputFailures = f.attempt, f.InputFailures
	}
	return d
}

// upgrade decides about a deployed release that has another input now, or whose upgrade to this input failed.
func (w Want) upgrade(s State) Decision {
	t := w.tally(s)
	switch {
	case s.holds(w.Trial) && !w.Manual.Reset:
		// It was forced, which uses up all retries.
		t.inputFailures = max(t.inputFailures, w.Retries)
	case t.inputFailures > w.Retries && !w.Manual.Force:
		return w.remediate(s, t)
	}
	d := w.Try(Upgrade, t)
	if last := s.Last(); last.Status == helm.StatusDeployed && !last.Ours {
		d.Why = byHand(s) + "; returning to Git's state"
	}
	return d
}

// remediate decides the remediation of an input that failed too often.
func (w Want) remediate(s State, t Tally) Decision {
	switch w.Strategy {
	case v1alpha1.RemediationNone:
		return Decision{Act: Withheld, Attempts: t.attempts, InputFailures: t.inputFailures}
	case v1alpha1.RemediationUninstall:
		d := w.Try(Uninstall, Tally{})
		d.Remediates = true
		return d
	}
	target := s.target(w.Proven, w.Trusts)
	if target == nil {
		d := w.Try(Upgrade, t)
		d.NoTarget = true
		return d
	}
	d := w.Try(Rollback, Tally{})
	d.To, d.Remediates = target.Number, true
	return d
}

// rollback decides about a rollback that failed. It is retried without limit, because the release is worse without it.
func (w Want) rollback(s State, last *Revision) Decision {
	target := s.target(w.Proven, w.Trusts)
	if target == nil {
		d := w.Try(Upgrade, Tally{attempts: last.attempt, at: last.Since})
		d.NoTarget = true
		return d
	}
	t := Tally{attempts: max(last.attempt, 1), at: last.Since}
	if last.trial == "" { // interrupted
		t = Tally{}
	}
	d := w.Try(Rollback, t)
	d.To, d.Remediates = target.Number, true
	return d
}

// byHand describes what a person did.
func byHand(s State) string {
	last := s[len(s)-1]
	how := "by hand"
	if len(s) > 1 && last.carried > 0 {
		how = "by hand (helm upgrade)"
		if last.carried != s[len(s)-2].carried {
			how = "by hand (helm rollback)"
		}
	}
	return fmt.Sprintf("revision %d was made %s", last.Number, how)
}

// pending decides whether to unlock a revision that is pending-install, pending-upgrade or pending-rollback: its action has not ended. The
// caller knows that it does not run in this process.
func (w Want) pending(last *Revision) Decision {
	until := last.Since.Add(w.Timeout + grace)
	if w.abandoned(last) || !w.Now.Before(until) {
		return Decision{Act: Unlock}
	}
	holder := last.Holder
	if !last.Ours {
		holder = "someone outside kubeop"
	}
	why := fmt.Sprintf("revision %d is %s by %s", last.Number, last.Status, holder)
	return Decision{Act: Locked, Until: until, Why: why}
}

// abandoned reports whether the revision belongs to a process of kubeop that has ended.
func (w Want) abandoned(last *Revision) bool {
	return last.Ours && (last.Holder == w.Holder || !w.HolderAlive(last.Holder))
}

// uninstalling decides about an uninstall that has not ended. A person's helm command keeps our other labels, but not this one.
func (w Want) uninstalling(last *Revision) Decision {
	until := last.Since.Add(w.Timeout + grace)
	if last.Action == ActionUninstall && w.abandoned(last) || !w.Now.Before(until) {
		d := w.Try(Uninstall, Tally{})
		d.Remediates = last.Held != ""
		return d
	}
	return Decision{Act: Locked, Until: until, Why: "it is being uninstalled"}
}

func (w Want) tally(s State) Tally {
	if w.Manual.Reset {
		return Tally{}
	}
	return s.tally(w.Trial)
}

// Try returns a, unless the next attempt is not due.
func (w Want) Try(a Act, t Tally) Decision {
	same := w.Last.Act == a || w.Last.Act == Install && a == Reinstall
	if same && w.Last.Trial == w.Trial && w.Last.Err != nil && (!w.Manual.Fresh || !w.Manual.Reset) {
		t.attempts, t.at = max(t.attempts+w.Last.Unstored, 1), w.Last.At
	}
	d := Decision{Act: a, Attempts: t.attempts, InputFailures: t.inputFailures}
	if t.attempts == 0 || w.Manual.Fresh {
		return d
	}
	if w.Retry == nil {
		d.Act = Failed
		return d
	}
	if t.at.After(w.Now) {
		return d // It was recorded before the clock was set back, so the time that has passed is unknown.
	}
	if due := t.at.Add(w.Retry(t.attempts)); w.Now.Before(due) && !w.Mended.After(t.at) {
		d.Act, d.Until = Failed, due
	}
	return d
}

// Removal decides about a release that is to be removed.
func Removal(s State, w Want) Decision {
	last := s.Last()
	switch {
	case last == nil, last.App != "" && last.App != w.App:
		return Decision{Act: Settled}
	case last.Status.IsPending():
		if d := w.pending(last); d.Act == Locked {
			return d
		}
	case last.Status == helm.StatusUninstalled:
		return Decision{Act: Reinstall}
	}
	return w.Try(Uninstall, Tally{})
}

// Judged returns the newest revision if it is deployed with the wanted input and was made for it, else nil.
func Judged(s State, w Want) *Revision {
	last := s.Last()
	if last == nil || last.Status != helm.StatusDeployed || !last.Ours || last.Digest != w.Digest || last.Action == ActionRollback || last.App != w.App {
		return nil
	}
	return last
}
