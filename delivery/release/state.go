package release

import (
	"slices"
	"strconv"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	helm "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// revision is what the metadata of one record of Helm's storage says.
type revision struct {
	number int
	// version of the record.
	version string
	status  helm.Status
	// since is when the record was last written: the end of an action, or its last sign of life.
	since time.Time
	// app is the owner, as a label value; empty when kubeop never wrote this release.
	app string
	// carried is the number of the revision from which Helm copied our labels; the revision's own when ours.
	carried int
	// ours: kubeop wrote this very revision. Only then what follows means anything; else it is empty.
	ours bool
	marks
}

// marks are what kubeop notes on its revisions. See the labels.
type marks struct {
	digest, trial, holder, held, content, proven, test, fault, action, asked string
	attempt, blame, to                                                       int
}

// state is the release's history, oldest first.
type state []revision

// stateOf reads metadata. What is not named as a record of the release is none; anyone who may write Secrets could have
// made it.
func stateOf(release string, records []metav1.PartialObjectMetadata) state {
	s := make(state, 0, len(records))
	for i := range records {
		if n, ok := numberOf(release, records[i].Name); ok {
			s = append(s, revisionOf(n, &records[i].ObjectMeta))
		}
	}
	slices.SortFunc(s, func(a, b revision) int { return a.number - b.number })
	return s
}

func revisionOf(number int, m *metav1.ObjectMeta) revision {
	l := m.Labels
	v := revision{
		number:  number,
		version: m.ResourceVersion,
		status:  helm.Status(l["status"]),
		since:   m.CreationTimestamp.Time,
		app:     l[appLabel],
		carried: count(l[revisionLabel]),
	}
	for _, key := range []string{"createdAt", "modifiedAt"} {
		if at, err := strconv.ParseInt(l[key], 10, 64); err == nil {
			v.since = time.Unix(at, 0)
		}
	}
	if v.ours = v.carried == number; v.ours {
		v.marks = marks{
			digest: l[digestLabel], trial: l[trialLabel], holder: l[holderLabel], held: l[heldLabel], content: l[contentLabel],
			proven: l[provenLabel], test: l[testLabel], fault: l[faultLabel], action: l[actionLabel], asked: l[askedLabel],
			attempt: count(l[attemptLabel]), blame: count(l[blameLabel]), to: count(l[toLabel]),
		}
	}
	return v
}

// count is a number that kubeop wrote, in the one way in which it writes numbers: admission compares them as text. Anything
// else is none.
func count(label string) int {
	n, err := strconv.Atoi(label)
	if err != nil || strconv.Itoa(n) != label {
		return 0
	}
	return max(n, 0)
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
	for i := range slices.Backward(s) {
		if s[i].status == helm.StatusDeployed {
			return &s[i]
		}
	}
	return nil
}

// everDeployed is whether some revision succeeded since the release was last uninstalled.
func (s state) everDeployed() bool {
	for i := range slices.Backward(s) {
		switch s[i].status {
		case helm.StatusDeployed, helm.StatusSuperseded:
			return true
		case helm.StatusUninstalled:
			return false
		}
	}
	return false
}

// tally is how often an input failed in a row.
type tally struct {
	// attempts counts all failures, blame those that were the input's.
	attempts, blame int
	// at is when the last one ended; zero when an action was interrupted since.
	at time.Time
}

// tally counts the failures of this trial with which the history ends; what was interrupted says nothing about it.
func (s state) tally(trial string) tally {
	interrupted := false
	for i := range slices.Backward(s) {
		r := &s[i]
		switch {
		case r.status != helm.StatusFailed || !r.ours || r.action == actionRollback:
			return tally{}
		case r.trial == "":
			interrupted = true
		case r.trial != trial:
			return tally{}
		case interrupted:
			return tally{attempts: max(r.attempt, 1), blame: r.blame}
		default:
			return tally{attempts: max(r.attempt, 1), blame: r.blame, at: r.since}
		}
	}
	return tally{}
}

// failure returns the newest revision that failed with this trial, or nil.
func (s state) failure(trial string) *revision {
	for i := range slices.Backward(s) {
		if r := &s[i]; r.status == helm.StatusFailed && r.trial == trial && trial != "" {
			return r
		}
	}
	return nil
}

// holds is whether this trial is not to be made again, however often people have changed the release by hand since.
func (s state) holds(trial string) bool {
	for i := range slices.Backward(s) {
		r := &s[i]
		switch {
		case !r.ours:
		case r.status == helm.StatusDeployed, r.status == helm.StatusSuperseded, r.status == helm.StatusUninstalled:
			return trial != "" && r.held == trial
		default:
			return false
		}
	}
	return false
}

// target returns the newest revision that a rollback may return to, or nil: it was seen to be good before it was superseded,
// or is deployed and proven. That its content is what it was is checked when it is read; trusts leaves out those found
// otherwise.
func (s state) target(proven func(*revision) bool, trusts func(number int, version string) bool) *revision {
	for i := range slices.Backward(s) {
		r := &s[i]
		if r.status == helm.StatusUninstalled {
			return nil
		}
		good := r.status == helm.StatusSuperseded && r.proven == yes || r.status == helm.StatusDeployed && proven(r)
		if good && r.ours && r.content != "" && (trusts == nil || trusts(r.number, r.version)) {
			return r
		}
	}
	return nil
}

// surplus returns the oldest revisions beyond keep, but neither the newest deployed one nor what a rollback returns to.
func (s state) surplus(keep int, proven func(*revision) bool, trusts func(int, string) bool) state {
	var out state
	deployed, target := s.deployed(), s.target(proven, trusts)
	for i := range s {
		if len(s)-len(out) <= keep {
			break
		}
		if r := &s[i]; r != deployed && r != target {
			out = append(out, *r)
		}
	}
	return out
}

// heeded is whether some revision was made at that request.
func (s state) heeded(asked string) bool {
	return slices.ContainsFunc(s, func(r revision) bool { return r.asked == asked })
}

// number returns that revision, or nil.
func (s state) number(n int) *revision {
	i, ok := slices.BinarySearchFunc(s, n, func(r revision, n int) int { return r.number - n })
	if !ok {
		return nil
	}
	return &s[i]
}

// statuses by revision.
func (s state) statuses() map[int]string {
	out := make(map[int]string, len(s))
	for _, r := range s {
		out[r.number] = r.status.String()
	}
	return out
}

func chartName(m *chart.Metadata) string { return m.Name + "-" + m.Version }
