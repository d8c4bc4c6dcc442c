// Package report reports the commits of Repositories to their Git hosts, and the apps of Tenants to the receivers of their notifications. It
// reads only the operator's caches, and the queue of gitops/report sends. What a Git host accepted last is in the status of the Repository, so
// a restart sends nothing again.
package report

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/fetch/verdict"
	gitreport "github.com/kubeop/kubeop/gitops/report"
)

// Reporter reports the commits of Repositories with spec.commitStatus.
type Reporter struct {
	// Reader reads the manager's cache.
	Reader  client.Reader
	Queue   *gitreport.Queue
	Network *transport.Network
	Clock   clock.PassiveClock
	// Auth reads the credentials for the API of a Repository's Git host, and Wake reconciles a Repository, whose status records what the Git
	// host accepted.
	Auth func(context.Context, *v1alpha1.Repository) (transport.Auth, error)
	Wake func(types.NamespacedName)

	mu      sync.Mutex
	records map[string]*record
}

// record is what is known about the reports of one Repository.
type record struct {
	uid types.UID
	// spec is what was set when the statuses were sent: with another address or context, they have to be sent again.
	spec v1alpha1.CommitStatus
	// accepted are the statuses that the Git host accepted, the newest commit first.
	accepted []v1alpha1.ReportedStatus
	// asked are the statuses that were given to the queue and not accepted yet, by commit.
	asked map[string]v1alpha1.ReportedStatus
	// since is when a commit was first seen.
	since map[string]time.Time
	// repeats counts the statuses of the newest commit that differ by their description only, and last is when the last was sent.
	repeats int
	last    time.Time
	// failure is why the Git host accepts nothing; answered: it accepted or refused something since the start.
	failure  error
	failures int
	answered bool
	// secrets are the versions of the Secrets with the credentials.
	secrets string
}

// maxCommits bounds the commits of a Repository that are followed.
const maxCommits = 5

// recordOf returns the record of a Repository, which begins with what its status says. The lock is held.
func (r *Reporter) recordOf(repository *v1alpha1.Repository) *record {
	rec := r.records[repository.Name]
	if rec == nil || rec.uid != repository.UID {
		rec = &record{
			uid: repository.UID, spec: *repository.Spec.CommitStatus, accepted: slices.Clone(repository.Status.CommitStatuses),
			asked: map[string]v1alpha1.ReportedStatus{}, since: map[string]time.Time{},
		}
		if r.records == nil {
			r.records = map[string]*record{}
		}
		r.records[repository.Name] = rec
	}
	return rec
}

// forget drops a Repository that reports nothing any more.
func (r *Reporter) forget(name string) {
	r.mu.Lock()
	rec := r.records[name]
	delete(r.records, name)
	r.mu.Unlock()
	if rec != nil {
		r.Queue.DropAll(keyOf(rec.uid, ""))
	}
}

// reports says whether the Repository of the name is known to report.
func (r *Reporter) reports(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.records[name] != nil
}

// StatusOf returns the condition CommitStatusFailed, and the statuses that the Git host of a Repository accepted, for its status. secrets are
// the versions of the Secrets that the Repository names: when they change, what failed is tried again.
func (r *Reporter) StatusOf(repository *v1alpha1.Repository, secrets string) (step.Note, []v1alpha1.ReportedStatus) {
	if repository.Spec.CommitStatus == nil {
		return step.Note{Condition: v1alpha1.CommitStatusFailedCondition}, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	rec := r.recordOf(repository)
	if was := rec.secrets; was != secrets {
		rec.secrets = secrets
		if was != "" {
			r.Queue.Hurry(keyOf(rec.uid, ""))
		}
	}
	return rec.note(), slices.Clone(rec.accepted)
}

// patience is how many failures in a row of a Git host that does not answer are reported nowhere, because most end by themselves.
const patience = 3

// note returns the condition CommitStatusFailed.
func (rec *record) note() step.Note {
	note := step.Note{Condition: v1alpha1.CommitStatusFailedCondition}
	switch {
	case !rec.answered:
		return step.Stays(note.Condition)
	case rec.failure == nil:
		return note
	}
	reason, final := verdict.Of(rec.failure)
	if !final && rec.failures < patience {
		return note
	}
	note.Status, note.Reason, note.Event = metav1.ConditionTrue, reason, corev1.EventTypeWarning
	note.Message = rec.failure.Error() + "; the commits are applied all the same"
	return note
}

// done records the answer of the Git host to a status.
func (r *Reporter) done(name string, uid types.UID, sent v1alpha1.ReportedStatus, err error) {
	r.mu.Lock()
	rec := r.records[name]
	if rec == nil || rec.uid != uid {
		r.mu.Unlock()
		return
	}
	rec.answered = true
	rec.failure = err
	rec.failures++
	if err == nil {
		rec.failures = 0
		rec.accept(sent)
		if rec.asked[sent.Commit] == sent {
			delete(rec.asked, sent.Commit)
		}
	}
	r.mu.Unlock()
	r.Wake(types.NamespacedName{Name: name})
}

// accept records a status; the commit keeps its place, and a new one comes first.
func (rec *record) accept(sent v1alpha1.ReportedStatus) {
	at := slices.IndexFunc(rec.accepted, func(s v1alpha1.ReportedStatus) bool { return s.Commit == sent.Commit })
	if at >= 0 {
		rec.accepted[at] = sent
		return
	}
	rec.accepted = slices.Insert(rec.accepted, 0, sent)
	rec.accepted = rec.accepted[:min(len(rec.accepted), maxCommits)]
}

// keyOf is the key of messages about a commit of a Repository.
func keyOf(uid types.UID, commit string) string { return "commit " + string(uid) + " " + commit }
