package release

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	helm "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
)

// revision is what one record of Helm's storage says.
type revision struct {
	number int
	status helm.Status
	// app is the owner, as a label value; empty when kubeop never wrote this release.
	app string
	// ours: kubeop wrote this very revision. Only then digest, holder and attempt mean anything; else they are empty.
	ours           bool
	digest, holder string
	attempt        int
	// since is when its action began.
	since  time.Time
	why    string
	record *helm.Release
}

// state is the release's history, oldest first.
type state []revision

// read reads the history from storage.
func read(store *storage.Storage, name string) (state, error) {
	records, err := store.History(name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the records of release %s: %w", name, err)
	}
	return stateOf(records), nil
}

func stateOf(records []*helm.Release) state {
	s := make(state, 0, len(records))
	for _, r := range records {
		if r.Info != nil { // A record without it is no release; anyone who may write Secrets could have made it.
			s = append(s, revisionOf(r))
		}
	}
	slices.SortFunc(s, func(a, b revision) int { return a.number - b.number })
	return s
}

func revisionOf(r *helm.Release) revision {
	v := revision{
		number: r.Version,
		status: r.Info.Status,
		app:    r.Labels[appLabel],
		ours:   r.Labels[revisionLabel] == strconv.Itoa(r.Version),
		since:  r.Info.LastDeployed.Time,
		why:    r.Info.Description,
		record: r,
	}
	if v.status == helm.StatusUninstalling {
		v.since = r.Info.Deleted.Time
	}
	if v.ours {
		v.digest, v.holder = r.Labels[digestLabel], r.Labels[holderLabel]
		v.attempt, _ = strconv.Atoi(r.Labels[attemptLabel])
	}
	return v
}

// last returns the newest revision, or nil.
func (s state) last() *revision {
	if len(s) == 0 {
		return nil
	}
	return &s[len(s)-1]
}

// deployed returns the newest revision that is deployed, or nil.
func (s state) deployed() *revision {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i].status == helm.StatusDeployed {
			return &s[i]
		}
	}
	return nil
}

// everDeployed is whether some revision succeeded since the release was last uninstalled.
func (s state) everDeployed() bool {
	for i := len(s) - 1; i >= 0; i-- {
		switch s[i].status {
		case helm.StatusDeployed, helm.StatusSuperseded:
			return true
		case helm.StatusUninstalled:
			return false
		}
	}
	return false
}

// failures returns the revisions that failed since the last one that did not.
func (s state) failures() state {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i].status != helm.StatusFailed {
			return s[i+1:]
		}
	}
	return s
}

// surplus returns the oldest revisions beyond keep; the newest deployed one is never among them, as Helm does it.
func (s state) surplus(keep int) state {
	var out state
	deployed := s.deployed()
	for i := range s {
		if len(s)-len(out) <= keep {
			break
		}
		if deployed == nil || s[i].number != deployed.number {
			out = append(out, s[i])
		}
	}
	return out
}

func (s state) info() Info {
	last := s.last()
	if last == nil {
		return Info{}
	}
	i := Info{Name: last.record.Name, Revision: last.number, Status: last.status.String(), Digest: last.digest}
	if c := last.record.Chart; c != nil && c.Metadata != nil {
		i.Chart, i.AppVersion = chartName(c.Metadata), c.Metadata.AppVersion
	}
	return i
}

func chartName(m *chart.Metadata) string { return m.Name + "-" + m.Version }
