package decide

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	helm "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Revision is read from the metadata of one record of Helm's storage.
type Revision struct {
	Number int
	// Version of the record.
	Version string
	Status  helm.Status
	// Since is when the record was last written: at the end of an action or while it ran.
	Since time.Time
	// App is the owner, as a label value; empty when kubeop never wrote this release.
	App string
	// carried is the number of the revision from which Helm copied our labels; the revision's own number when Ours.
	carried int
	// Ours: kubeop wrote this very revision. Otherwise the fields that follow are empty.
	Ours bool
	marks
}

// marks are the facts that kubeop records in the labels of its revisions. See the labels.
type marks struct {
	Digest, trial, Holder, Held, Content, proven, Test, Fault, Action, request string
	attempt, InputFailures, To                                                 int
}

// State is the release's history, oldest first.
type State []Revision

// StateOf reads metadata. It skips Secrets that do not have the name of a record of the release, because anyone who may write Secrets can
// have made them.
func StateOf(release string, records []metav1.PartialObjectMetadata) State {
	s := make(State, 0, len(records))
	for i := range records {
		if n, ok := numberOf(release, records[i].Name); ok {
			s = append(s, revisionOf(n, &records[i].ObjectMeta))
		}
	}
	slices.SortFunc(s, func(a, b Revision) int { return a.Number - b.Number })
	return s
}

// numberOf is the inverse of KeyOf.
func numberOf(release, key string) (int, bool) {
	number, ours := strings.CutPrefix(key, storage.HelmStorageType+"."+release+".v")
	n := count(number)
	return n, ours && n > 0
}

// count parses a number in exactly the form in which kubeop writes it, because admission compares numbers as text. It returns 0 for
// anything else.
func count(label string) int {
	n, err := strconv.Atoi(label)
	if err != nil || strconv.Itoa(n) != label {
		return 0
	}
	return max(n, 0)
}

func revisionOf(number int, m *metav1.ObjectMeta) Revision {
	l := m.Labels
	v := Revision{
		Number:  number,
		Version: m.ResourceVersion,
		Status:  helm.Status(l["status"]),
		Since:   m.CreationTimestamp.Time,
		App:     l[AppLabel],
		carried: count(l[RevisionLabel]),
	}
	for _, key := range []string{"createdAt", "modifiedAt"} {
		if at, err := strconv.ParseInt(l[key], 10, 64); err == nil {
			v.Since = time.Unix(at, 0)
		}
	}
	if v.Ours = v.carried == number; v.Ours {
		v.marks = marks{
			Digest: l[DigestLabel], trial: l[TrialLabel], Holder: l[HolderLabel], Held: l[HeldLabel], Content: l[ContentLabel],
			proven: l[ProvenLabel], Test: l[TestLabel], Fault: l[FaultLabel], Action: l[ActionLabel], request: l[RequestLabel],
			attempt: count(l[AttemptLabel]), InputFailures: count(l[InputFailuresLabel]), To: count(l[ToLabel]),
		}
	}
	return v
}

// Last returns the newest revision, or nil.
func (s State) Last() *Revision {
	if len(s) == 0 {
		return nil
	}
	return &s[len(s)-1]
}

// Deployed returns the newest revision that is deployed, or nil.
func (s State) Deployed() *Revision {
	for i := range slices.Backward(s) {
		if s[i].Status == helm.StatusDeployed {
			return &s[i]
		}
	}
	return nil
}

// everDeployed reports whether a revision succeeded since the release was last uninstalled.
func (s State) everDeployed() bool {
	for i := range slices.Backward(s) {
		switch s[i].Status {
		case helm.StatusDeployed, helm.StatusSuperseded:
			return true
		case helm.StatusUninstalled:
			return false
		}
	}
	return false
}

// Tally is how often an input failed in a row.
type Tally struct {
	// attempts counts all failures, inputFailures those caused by the input.
	attempts, inputFailures int
	// at is when the last one ended; zero when an action was interrupted since then.
	at time.Time
}

// tally counts the failures of this trial at the end of the history; interrupted actions do not count.
func (s State) tally(trial string) Tally {
	interrupted := false
	for i := range slices.Backward(s) {
		r := &s[i]
		switch {
		case r.Status != helm.StatusFailed || !r.Ours || r.Action == ActionRollback:
			return Tally{}
		case r.trial == "":
			interrupted = true
		case r.trial != trial:
			return Tally{}
		case interrupted:
			return Tally{attempts: max(r.attempt, 1), inputFailures: r.InputFailures}
		default:
			return Tally{attempts: max(r.attempt, 1), inputFailures: r.InputFailures, at: r.Since}
		}
	}
	return Tally{}
}

// Failure returns the newest revision that failed with this trial, or nil.
func (s State) Failure(trial string) *Revision {
	for i := range slices.Backward(s) {
		if r := &s[i]; r.Status == helm.StatusFailed && r.trial == trial && trial != "" {
			return r
		}
	}
	return nil
}

// holds reports whether this trial is not to be repeated, however often people have changed the release by hand since.
func (s State) holds(trial string) bool {
	for i := range slices.Backward(s) {
		r := &s[i]
		switch {
		case !r.Ours:
		case r.Status == helm.StatusDeployed, r.Status == helm.StatusSuperseded, r.Status == helm.StatusUninstalled:
			return trial != "" && r.Held == trial
		default:
			return false
		}
	}
	return false
}

// target returns the newest revision that a rollback may restore, or nil. The revision was seen healthy before it was superseded, or is
// deployed and proven. Its content is checked when it is read; trusts leaves out revisions that failed that check.
func (s State) target(proven func(*Revision) bool, trusts func(number int, version string) bool) *Revision {
	for i := range slices.Backward(s) {
		r := &s[i]
		if r.Status == helm.StatusUninstalled {
			return nil
		}
		good := r.Status == helm.StatusSuperseded && r.proven == Yes || r.Status == helm.StatusDeployed && proven(r)
		if good && r.Ours && r.Content != "" && (trusts == nil || trusts(r.Number, r.Version)) {
			return r
		}
	}
	return nil
}

// Surplus returns the oldest revisions beyond keep, except the newest deployed one and the target of a rollback.
func (s State) Surplus(keep int, proven func(*Revision) bool, trusts func(int, string) bool) State {
	var out State
	deployed, target := s.Deployed(), s.target(proven, trusts)
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

// Accepted reports whether some revision carried out that request.
func (s State) Accepted(request string) bool {
	return slices.ContainsFunc(s, func(r Revision) bool { return r.request == request })
}

// Number returns the revision with that number, or nil.
func (s State) Number(n int) *Revision {
	i, ok := slices.BinarySearchFunc(s, n, func(r Revision, n int) int { return r.Number - n })
	if !ok {
		return nil
	}
	return &s[i]
}

// Statuses returns the status of each revision by its number.
func (s State) Statuses() map[int]string {
	out := make(map[int]string, len(s))
	for _, r := range s {
		out[r.Number] = r.Status.String()
	}
	return out
}

func chartName(m *chart.Metadata) string { return m.Name + "-" + m.Version }
