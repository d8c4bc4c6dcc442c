package release

import (
	"fmt"
	"time"

	helm "helm.sh/helm/v3/pkg/release"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// act is what to do next.
type act string

const (
	// settled: storage holds what is wanted.
	settled act = ""
	install act = "installing"
	upgrade act = "upgrading"
	// rollback returns to an earlier revision because the input failed too often.
	rollback act = "rolling back"
	// uninstall ends an uninstallation that was left half-way, or is what becomes of an input that failed too often.
	uninstall act = "uninstalling"
	// probe runs the chart's tests.
	probe act = "testing"
	// unlock marks an interrupted revision as failed and decides again.
	unlock act = "unlocking"
	// vacate installs once the objects of the uninstalled release are gone.
	vacate act = "vacating"
	// locked: someone else works on the release.
	locked act = "locked"
	// taken: the release is another app's.
	taken act = "taken"
	// failed: the last attempt at this input failed and the next is not due.
	failed act = "failed"
	// withheld: this input failed too often and is not tried again.
	withheld act = "held"
)

// grace is added to the timeout before another's unfinished action is taken over: the end is written after the timeout.
const grace = time.Minute

// attempt is what this process remembers of the last action on a release. Storage knows nothing of an attempt that
// failed before anything was written, and of no error more than its text.
type attempt struct {
	act   act
	trial string
	err   error
	// world: err says nothing about the input.
	world bool
	at    time.Time
	// unstored counts failures in a row that left no revision behind.
	unstored int
	// log holds Helm's last lines.
	log []string
}

// want is what the release should be, and what deciding needs to know besides storage.
type want struct {
	app, holder string
	// digest is of what is released, trial of that and of how.
	digest, trial string
	holderAlive   func(string) bool
	now           time.Time
	timeout       time.Duration
	retry         func(attempts int) time.Duration
	retries       int
	strategy      v1alpha1.RemediationStrategy
	force, reset  bool
	// fresh: force or reset is asked for, and nothing was begun yet for that.
	fresh bool
	// proven says of a deployed revision that it was seen to be good.
	proven func(*revision) bool
	trusts func(number int, version string) bool
	last   attempt
}

type decision struct {
	act act
	// until is when a lock is taken over, or a failed input tried again; zero for never.
	until time.Time
	// attempts counts the failures in a row so far, blame those that were the input's.
	attempts, blame int
	// to is the revision that a rollback returns to.
	to int
	// stuck: there is no such revision.
	stuck bool
	// mends: the act is what becomes of an input that failed too often.
	mends bool
	// why says who holds the lock, owns the release, or changed it by hand and what follows.
	why string
}

// next decides. It is the one place that knows the order of things; docs show it as a table.
func next(s state, w want) decision {
	last := s.last()
	if last == nil {
		return w.try(install, tally{})
	}
	if last.app != "" && last.app != w.app {
		return decision{act: taken, why: last.app}
	}
	switch {
	case last.status.IsPending():
		return w.pending(last)
	case last.status == helm.StatusUninstalling:
		return w.uninstalling(last)
	}
	return w.rested(s, last)
}

// rested decides about a release on which no action is under way.
func (w want) rested(s state, last *revision) decision {
	asked := w.force || w.reset
	switch {
	case last.status == helm.StatusDeployed && last.ours && last.digest == w.digest && !w.force:
		return decision{act: settled}
	case s.holds(w.trial) && !asked:
		d := s.withheld(w.trial)
		if last.status == helm.StatusDeployed && !last.ours {
			d.why = byHand(s) + "; this input is held and not returned to"
		}
		return d
	case last.status == helm.StatusUninstalled:
		return w.try(vacate, tally{})
	case last.status == helm.StatusFailed && last.action == actionRollback && last.held == w.trial && !asked:
		return w.rollback(s, last)
	case !s.everDeployed():
		// Helm's upgrade would do, but never run the install hooks, and tell the templates that this is no install.
		return w.try(install, w.tally(s))
	}
	return w.upgrade(s)
}

// withheld tells how often the trial failed before it was given up, where that is still known.
func (s state) withheld(trial string) decision {
	d := decision{act: withheld}
	if f := s.failure(trial); f != nil {
		d.attempts, d.blame = f.attempt, f.blame
	}
	return d
}

// upgrade decides about a release that was deployed and has another input now, or this one in vain.
func (w want) upgrade(s state) decision {
	t := w.tally(s)
	switch {
	case s.holds(w.trial) && !w.reset:
		// Forced once: it has used up its retries.
		t.blame = max(t.blame, w.retries)
	case t.blame > w.retries && !w.force:
		return w.remedy(s, t)
	}
	d := w.try(upgrade, t)
	if last := s.last(); last.status == helm.StatusDeployed && !last.ours {
		d.why = byHand(s) + "; returning to Git's state"
	}
	return d
}

// remedy decides what becomes of an input that failed too often.
func (w want) remedy(s state, t tally) decision {
	switch w.strategy {
	case v1alpha1.RemediationNone:
		return decision{act: withheld, attempts: t.attempts, blame: t.blame}
	case v1alpha1.RemediationUninstall:
		d := w.try(uninstall, tally{})
		d.mends = true
		return d
	}
	target := s.target(w.proven, w.trusts)
	if target == nil {
		d := w.try(upgrade, t)
		d.stuck = true
		return d
	}
	d := w.try(rollback, tally{})
	d.to, d.mends = target.number, true
	return d
}

// rollback decides about a rollback that failed: it is tried for ever, because the release is worse off without it.
func (w want) rollback(s state, last *revision) decision {
	target := s.target(w.proven, w.trusts)
	if target == nil {
		d := w.try(upgrade, tally{attempts: last.attempt, at: last.since})
		d.stuck = true
		return d
	}
	t := tally{attempts: max(last.attempt, 1), at: last.since}
	if last.trial == "" { // interrupted
		t = tally{}
	}
	d := w.try(rollback, t)
	d.to, d.mends = target.number, true
	return d
}

// byHand says what a person did.
func byHand(s state) string {
	last := s[len(s)-1]
	how := "by hand"
	if len(s) > 1 && last.carried > 0 {
		how = "by hand (helm upgrade)"
		if last.carried != s[len(s)-2].carried {
			how = "by hand (helm rollback)"
		}
	}
	return fmt.Sprintf("revision %d was made %s", last.number, how)
}

// pending decides about a revision whose action has not ended: the caller knows that it does not run in this process.
func (w want) pending(last *revision) decision {
	until := last.since.Add(w.timeout + grace)
	if w.abandoned(last) || !w.now.Before(until) {
		return decision{act: unlock}
	}
	holder := last.holder
	if !last.ours {
		holder = "someone outside kubeop"
	}
	why := fmt.Sprintf("revision %d is %s by %s", last.number, last.status, holder)
	return decision{act: locked, until: until, why: why}
}

// abandoned is whether a process of kubeop worked on the revision that does so no more.
func (w want) abandoned(last *revision) bool {
	return last.ours && (last.holder == w.holder || !w.holderAlive(last.holder))
}

// uninstalling decides about an uninstallation that has not ended. A person's helm leaves our labels on, but not this one.
func (w want) uninstalling(last *revision) decision {
	until := last.since.Add(w.timeout + grace)
	if last.action == actionUninstall && w.abandoned(last) || !w.now.Before(until) {
		d := w.try(uninstall, tally{})
		d.mends = last.held != ""
		return d
	}
	return decision{act: locked, until: until, why: "it is being uninstalled"}
}

func (w want) tally(s state) tally {
	if w.reset {
		return tally{}
	}
	return s.tally(w.trial)
}

// try returns a, unless the next attempt is not due.
func (w want) try(a act, t tally) decision {
	same := w.last.act == a || w.last.act == install && a == vacate
	if same && w.last.trial == w.trial && w.last.err != nil && (!w.fresh || !w.reset) {
		t.attempts, t.at = max(t.attempts+w.last.unstored, 1), w.last.at
	}
	d := decision{act: a, attempts: t.attempts, blame: t.blame}
	if t.attempts == 0 || w.fresh {
		return d
	}
	if w.retry == nil {
		d.act = failed
		return d
	}
	if t.at.After(w.now) {
		return d // It was written down before the clock was set back. Nothing says how long ago that was.
	}
	if due := t.at.Add(w.retry(t.attempts)); w.now.Before(due) {
		d.act, d.until = failed, due
	}
	return d
}

// removal decides about a release that is to go.
func removal(s state, w want) decision {
	last := s.last()
	switch {
	case last == nil, last.app != "" && last.app != w.app:
		return decision{act: settled}
	case last.status.IsPending():
		if d := w.pending(last); d.act == locked {
			return d
		}
	case last.status == helm.StatusUninstalled:
		return decision{act: vacate}
	}
	return w.try(uninstall, tally{})
}
