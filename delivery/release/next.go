package release

import (
	"fmt"
	"time"

	helm "helm.sh/helm/v3/pkg/release"
)

// act is what to do next.
type act string

const (
	// settled: storage holds what is wanted.
	settled act = ""
	install act = "installing"
	upgrade act = "upgrading"
	// unlock marks an interrupted revision as failed and decides again.
	unlock act = "unlocking"
	// uninstall ends an uninstallation that was left half-way.
	uninstall act = "uninstalling"
	// vacate installs once the objects of the uninstalled release are gone.
	vacate act = "vacating"
	// locked: someone else works on the release.
	locked act = "locked"
	// taken: the release is another app's.
	taken act = "taken"
	// failed: the last attempt at this input failed and the next is not due.
	failed act = "failed"
)

// grace is added to the timeout before another's unfinished action is taken over: the end is written after the timeout.
const grace = time.Minute

// attempt is what this process remembers of the last action on a release. Storage knows nothing of an attempt that
// failed before anything was written.
type attempt struct {
	digest string
	err    error
	at     time.Time
	// unstored counts failures in a row that left no revision behind.
	unstored int
}

// want is what the release should be, and what deciding needs to know besides storage.
type want struct {
	app, digest, holder string
	holderAlive         func(string) bool
	now                 time.Time
	timeout             time.Duration
	retry               func(attempts int) time.Duration
	last                attempt
}

type decision struct {
	act act
	// until is when a lock is taken over, or a failed input tried again; zero for never.
	until    time.Time
	attempts int
	// why says who holds the lock or owns the release.
	why string
}

// next decides. It is the one place that knows the order of things; docs show it as a table.
func next(s state, w want) decision {
	last := s.last()
	if last == nil {
		return w.try(install, nil)
	}
	if last.app != "" && last.app != w.app {
		return decision{act: taken, why: last.app}
	}
	switch {
	case last.status.IsPending():
		return w.pending(last)
	case last.status == helm.StatusUninstalling:
		// Who uninstalls is not recorded: a person's helm leaves our labels on.
		if until := last.since.Add(w.timeout + grace); w.now.Before(until) {
			return decision{act: locked, until: until, why: "it is being uninstalled"}
		}
		return w.try(uninstall, nil)
	case last.status == helm.StatusUninstalled:
		return w.try(vacate, nil)
	case last.status == helm.StatusDeployed && last.ours && last.digest == w.digest:
		return decision{act: settled}
	case !s.everDeployed():
		// Helm's upgrade would do, but never run the install hooks, and tell the templates that this is no install.
		return w.try(install, last)
	}
	return w.try(upgrade, last)
}

// pending decides about a revision whose action has not ended: the caller knows that it does not run in this process.
func (w want) pending(last *revision) decision {
	until := last.since.Add(w.timeout + grace)
	ownProcess := last.ours && (last.holder == w.holder || !w.holderAlive(last.holder))
	if ownProcess || !w.now.Before(until) {
		return decision{act: unlock}
	}
	holder := last.holder
	if !last.ours {
		holder = "someone outside kubeop"
	}
	why := fmt.Sprintf("revision %d is %s by %s", last.number, last.status, holder)
	return decision{act: locked, until: until, why: why}
}

// try returns a, unless this very input failed and its next attempt is not due.
func (w want) try(a act, last *revision) decision {
	attempts, at := 0, time.Time{}
	if last != nil && last.ours && last.status == helm.StatusFailed && last.digest == w.digest {
		attempts, at = max(last.attempt, 1), last.since
	}
	if w.last.digest == w.digest && w.last.err != nil {
		attempts, at = max(attempts+w.last.unstored, 1), w.last.at
	}
	if attempts == 0 {
		return decision{act: a}
	}
	if w.retry == nil {
		return decision{act: failed, attempts: attempts}
	}
	if due := at.Add(w.retry(attempts)); w.now.Before(due) {
		return decision{act: failed, attempts: attempts, until: due}
	}
	return decision{act: a, attempts: attempts}
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
	return w.try(uninstall, nil)
}
