// Package writeback writes changes of apps' files to Git, for controllers: as a commit to the branch that the app's repository follows, or as a
// pull request. The queue of gitops/report sends them, apart from the workers.
package writeback

import (
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/controllers/writeback/update"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/fetch/verdict"
	"github.com/kubeop/kubeop/gitops/commit"
	gitreport "github.com/kubeop/kubeop/gitops/report"
)

// Writer writes updates to Git. It implements update.Writer. Safe for concurrent use. What is asked for is kept in memory only: after a restart, it is asked for again.
type Writer struct {
	Options

	commits commit.Writer
	mu      sync.Mutex
	pending map[string]*pending
}

// Options are what a Writer needs.
type Options struct {
	Queue   *gitreport.Queue
	Git     *git.Store
	Network *transport.Network
	Clock   clock.PassiveClock
	// Client annotates Repositories, so that a commit is fetched at once.
	Client client.Client
	// Repositories finds the Repository that declares an App, and its credentials.
	Repositories Repositories
}

// Repositories are what is known of the Repositories.
type Repositories interface {
	// Declaring returns the Repository that declares an App, and refuses one of another tenant.
	Declaring(ctx context.Context, app *v1alpha1.App) (repository *v1alpha1.Repository, tenant string, err error)
	// Source returns where to fetch from and push to.
	Source(ctx context.Context, repository *v1alpha1.Repository) (git.Source, error)
	// APIAuth returns the credentials for the API of the Git host.
	APIAuth(ctx context.Context, repository *v1alpha1.Repository) (transport.Auth, error)
}

// pending is an update that was asked for, and what became of it.
type pending struct {
	update.Update
	written  *update.Written
	failure  error
	failures int
	answered bool
}

// New returns a Writer.
func New(o Options) *Writer {
	return &Writer{Options: o, commits: commit.Writer{Clock: clock.RealClock{}}, pending: map[string]*pending{}}
}

// Ask implements update.Writer: the update's Done is called when it is written, or cannot be.
func (w *Writer) Ask(u update.Update) *update.Written {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := w.pending[u.Key]; now != nil {
		if now.Version == u.Version && now.File() == u.File() && now.Mode == u.Mode {
			return now.written
		}
		w.drop(u.Key)
	}
	u.App = u.App.DeepCopy()
	now := &pending{Update: u}
	queued := w.Queue.Put(gitreport.Message{
		Key: u.Key, Kind: gitreport.WriteBack, Host: "the repository " + u.App.Labels[v1alpha1.RepositoryLabel], Tenant: v1alpha1.TenantOf(u.App.Namespace),
		Send: func(ctx context.Context) error { return w.send(ctx, now) },
		Done: func(err error) { w.done(now, err) },
	})
	if queued { // If not, it is asked for again.
		w.pending[u.Key] = now
	}
	return nil
}

// Last implements update.Writer.
func (w *Writer) Last(key string) (update.Update, *update.Written) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.pending[key]
	if now == nil {
		return update.Update{}, nil
	}
	return now.Update, now.written
}

// Drop implements update.Writer.
func (w *Writer) Drop(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(key)
}

// drop is Drop; the lock is held.
func (w *Writer) drop(key string) {
	if w.pending[key] != nil {
		delete(w.pending, key)
		w.Queue.Drop(key)
	}
}

// done records the end of an attempt.
func (w *Writer) done(of *pending, err error) {
	w.mu.Lock()
	current := w.pending[of.Key] == of
	if current {
		of.answered, of.failure = true, err
		of.failures++
	}
	w.mu.Unlock()
	if current {
		of.Done()
	}
}

// patience is how many failures in a row are reported nowhere, because most end by themselves: a server that does not answer, or a commit of
// others that has just changed the file.
const patience = 2

// Note implements update.Writer.
func (w *Writer) Note(key, condition string) step.Note {
	note := step.Note{Condition: condition}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.pending[key]
	if now != nil && !now.answered {
		return step.Stays(condition)
	}
	if now == nil || now.failure == nil {
		return note
	}
	reason, final := verdict.Of(now.failure)
	final = final || errors.Is(now.failure, git.ErrRefused) || errors.Is(now.failure, commit.ErrInvalidEdit) || errors.Is(now.failure, errNotWritable)
	if !final && now.failures < patience {
		return note
	}
	if reason == v1alpha1.FetchFailedReason {
		reason = v1alpha1.WriteFailedReason
	}
	note.Status, note.Reason, note.Event = metav1.ConditionTrue, reason, corev1.EventTypeWarning
	note.Message = "writing " + now.What + " to " + now.File() + ": " + now.failure.Error()
	return note
}
