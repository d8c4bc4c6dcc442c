// Package decide reads from the labels of Helm's records how a release is, and says what to do next. It asks nobody and changes nothing:
// labels.go names the labels, state.go reads them, next.go decides.
package decide

import (
	"fmt"
	"time"

	helm "helm.sh/helm/v3/pkg/release"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Act is what to do next.
type Act string

const (
	// Settled means that storage holds what is wanted.
	Settled Act = ""
	// Install makes the first revision.
	Install Act = "installing"
	// Upgrade makes the next one.
	Upgrade Act = "upgrading"
	// Rollback returns to an earlier revision because the input failed too often.
	Rollback Act = "rolling back"
	// Uninstall ends an uninstallation that was left half-way, or is what becomes of an input that failed too often.
	Uninstall Act = "uninstalling"
	// Probe runs the chart's tests.
	Probe Act = "testing"
	// Unlock marks an interrupted revision as failed and decides again.
	Unlock Act = "unlocking"
	// Vacate installs once the objects of the uninstalled release are gone.
	Vacate Act = "vacating"
	// Locked means that someone else works on the release.
	Locked Act = "locked"
	// Taken means that the release is another app's.
	Taken Act = "taken"
	// Failed means that the last attempt at this input failed and the next is not due.
	Failed Act = "failed"
	// Withheld means that this input failed too often and is not tried again.
	Withheld Act = "held"
)

// grace is added to the timeout before another's unfinished action is taken over: the end is written after the timeout.
const grace = time.Minute

// Attempt is what this process remembers of the last action on a release. Storage knows nothing of an attempt that
// failed before anything was written, and of no error more than its text.
type Attempt struct {
	Act   Act
	Trial string
	Err   error
	// World: err says nothing about the input.
	World bool
	At    time.Time
	// Unstored counts failures in a row that left no revision behind.
	Unstored int
	// Log holds Helm's last lines.
	Log []string
}

// Want is what the release should be, and what deciding needs to know besides storage.
type Want struct {
	App, Holder string
	// Digest is of what is released, trial of that and of how.
	Digest, Trial string
	HolderAlive   func(string) bool
	Now           time.Time
	Timeout       time.Duration
	Retry         func(attempts int) time.Duration
	Retries       int
	Strategy      v1alpha1.RemediationStrategy
	Manual        Manual
	// Proven says of a deployed revision that it was seen to be good.
	Proven func(*Revision) bool
	Trusts func(number int, version string) bool
	Last   Attempt
}

// Manual is what a person requests; see release.Manual.
type Manual struct {
	Force, Reset bool
	// Fresh: one of them is requested, and nothing was begun yet for that.
	Fresh bool
}

// Decision is what to do next, and why.
type Decision struct {
	Act Act
	// Until is when a lock is taken over, or a failed input tried again; zero for never.
	Until time.Time
	// Attempts counts the failures in a row so far, blame those that were the input's.
	Attempts, Blame int
	// To is the revision that a rollback returns to.
	To int
	// Stuck: there is no such revision.
	Stuck bool
	// Mends: the act is what becomes of an input that failed too often.
	Mends bool
	// Why says who holds the lock, owns the release, or changed it by hand and what follows.
	Why string
}

// Next decides. It is the one place that knows the order of things; docs show it as a table.
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
	return w.rested(s, last)
}

// rested decides about a release on which no action is under way.
func (w Want) rested(s State, last *Revision) Decision {
	asked := w.Manual.Force || w.Manual.Reset
	switch {
	case last.Status == helm.StatusDeployed && last.Ours && last.Digest == w.Digest && !w.Manual.Force:
		return Decision{Act: Settled}
	case s.holds(w.Trial) && !asked:
		d := gaveUp(s, w.Trial)
		if last.Status == helm.StatusDeployed && !last.Ours {
			d.Why = byHand(s) + "; this input is held and not returned to"
		}
		return d
	case last.Status == helm.StatusUninstalled:
		return w.Try(Vacate, Tally{})
	case last.Status == helm.StatusFailed && last.Action == ActionRollback && last.Held == w.Trial && !asked:
		return w.rollback(s, last)
	case !s.everDeployed():
		// Helm's upgrade would do, but never run the install hooks, and tell the templates that this is no install.
		return w.Try(Install, w.tally(s))
	}
	return w.upgrade(s)
}

// gaveUp tells how often the trial failed before it was given up, where that is still known.
func gaveUp(s State, trial string) Decision {
	d := Decision{Act: Withheld}
	if f := s.Failure(trial); f != nil {
		d.Attempts, d.Blame = f.attempt, f.Blame
	}
	return d
}

// upgrade decides about a release that was deployed and has another input now, or this one in vain.
func (w Want) upgrade(s State) Decision {
	t := w.tally(s)
	switch {
	case s.holds(w.Trial) && !w.Manual.Reset:
		// Forced once: it has used up its retries.
		t.blame = max(t.blame, w.Retries)
	case t.blame > w.Retries && !w.Manual.Force:
		return w.remedy(s, t)
	}
	d := w.Try(Upgrade, t)
	if last := s.Last(); last.Status == helm.StatusDeployed && !last.Ours {
		d.Why = byHand(s) + "; returning to Git's state"
	}
	return d
}

// remedy decides what becomes of an input that failed too often.
func (w Want) remedy(s State, t Tally) Decision {
	switch w.Strategy {
	case v1alpha1.RemediationNone:
		return Decision{Act: Withheld, Attempts: t.attempts, Blame: t.blame}
	case v1alpha1.RemediationUninstall:
		d := w.Try(Uninstall, Tally{})
		d.Mends = true
		return d
	}
	target := s.target(w.Proven, w.Trusts)
	if target == nil {
		d := w.Try(Upgrade, t)
		d.Stuck = true
		return d
	}
	d := w.Try(Rollback, Tally{})
	d.To, d.Mends = target.Number, true
	return d
}

// rollback decides about a rollback that failed: it is tried for ever, because the release is worse off without it.
func (w Want) rollback(s State, last *Revision) Decision {
	target := s.target(w.Proven, w.Trusts)
	if target == nil {
		d := w.Try(Upgrade, Tally{attempts: last.attempt, at: last.Since})
		d.Stuck = true
		return d
	}
	t := Tally{attempts: max(last.attempt, 1), at: last.Since}
	if last.trial == "" { // interrupted
		t = Tally{}
	}
	d := w.Try(Rollback, t)
	d.To, d.Mends = target.Number, true
	return d
}

// byHand says what a person did.
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

// pending decides about a revision whose action has not ended: the caller knows that it does not run in this process.
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

// abandoned is whether a process of kubeop worked on the revision that does so no more.
func (w Want) abandoned(last *Revision) bool {
	return last.Ours && (last.Holder == w.Holder || !w.HolderAlive(last.Holder))
}

// uninstalling decides about an uninstallation that has not ended. A person's helm leaves our labels on, but not this one.
func (w Want) uninstalling(last *Revision) Decision {
	until := last.Since.Add(w.Timeout + grace)
	if last.Action == ActionUninstall && w.abandoned(last) || !w.Now.Before(until) {
		d := w.Try(Uninstall, Tally{})
		d.Mends = last.Held != ""
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
	same := w.Last.Act == a || w.Last.Act == Install && a == Vacate
	if same && w.Last.Trial == w.Trial && w.Last.Err != nil && (!w.Manual.Fresh || !w.Manual.Reset) {
		t.attempts, t.at = max(t.attempts+w.Last.Unstored, 1), w.Last.At
	}
	d := Decision{Act: a, Attempts: t.attempts, Blame: t.blame}
	if t.attempts == 0 || w.Manual.Fresh {
		return d
	}
	if w.Retry == nil {
		d.Act = Failed
		return d
	}
	if t.at.After(w.Now) {
		return d // It was written down before the clock was set back. Nothing says how long ago that was.
	}
	if due := t.at.Add(w.Retry(t.attempts)); w.Now.Before(due) {
		d.Act, d.Until = Failed, due
	}
	return d
}

// Removal decides about a release that is to go.
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
		return Decision{Act: Vacate}
	}
	return w.Try(Uninstall, Tally{})
}

// Judged returns the newest revision if it is deployed with the wanted input and that input's own doing, else nil.
func Judged(s State, w Want) *Revision {
	last := s.Last()
	if last == nil || last.Status != helm.StatusDeployed || !last.Ours || last.Digest != w.Digest || last.Action == ActionRollback || last.App != w.App {
		return nil
	}
	return last
}
