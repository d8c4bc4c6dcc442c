// Package imageupdate writes the images that policies chose to the files of their apps in Git, as a commit or as a pull request. An App asks for
// it whenever it is reconciled; the queue of gitops/report sends it, apart from the workers.
package imageupdate

import (
	"context"
	"errors"
	"sync"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/fetch/verdict"
	"github.com/kubeop/kubeop/gitops/commit"
	gitreport "github.com/kubeop/kubeop/gitops/report"
)

// Writer writes images to Git. Safe for concurrent use. What is asked for is kept in memory only: after a restart, the Apps ask again.
type Writer struct {
	Options

	commits commit.Writer
	mu      sync.Mutex
	updates map[types.UID]*update
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
	// Wake reconciles an App, whose status records what was written.
	Wake func(types.NamespacedName)
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

// New returns a Writer.
func New(o Options) *Writer {
	return &Writer{Options: o, commits: commit.Writer{Clock: clock.RealClock{}}, updates: map[types.UID]*update{}}
}

// update is what became of an image to write.
type update struct {
	image
	written  *v1alpha1.ImageWritten
	failure  error
	failures int
	answered bool
}

// Ask asks for the image that an App's policy chose to be written to Git, if it is not there, and returns what was written of it; nil if it is
// not written yet. It never waits: the App is reconciled again when it is written, or cannot be.
//
// What was written once is not written again: if the file has another reference afterwards, a person wrote that, such as by a rollback. The next
// image that the policy chooses is written.
func (w *Writer) Ask(app *v1alpha1.App, chosen *v1alpha1.ImageStatus) *v1alpha1.ImageWritten {
	wants := imageOf(app, chosen)
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.updates[app.UID]
	if now != nil && now.image != wants {
		w.drop(app.UID)
		now = nil
	}
	switch last := chosen.Written; {
	case wants.was == wants.reference, last != nil && last.Reference == wants.reference && (last.PullRequest != "") == (wants.how == v1alpha1.WritePullRequest):
		w.drop(app.UID)
		return last
	case now != nil:
		return now.written
	}
	now = &update{image: wants}
	queued := w.Queue.Put(gitreport.Message{
		Key: keyOf(app.UID), Kind: gitreport.ImageUpdate, Host: "the repository " + wants.repository, Tenant: wants.app.Tenant,
		Send: func(ctx context.Context) error { return w.send(ctx, app.DeepCopy(), now) },
		Done: func(err error) { w.done(app.UID, now, err) },
	})
	if queued { // If not, the next Reconcile asks again.
		w.updates[app.UID] = now
	}
	return nil
}

// Forget drops what an App asked for.
func (w *Writer) Forget(app *v1alpha1.App) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(app.UID)
}

// drop drops what an App asked for. The lock is held.
func (w *Writer) drop(uid types.UID) {
	if w.updates[uid] != nil {
		delete(w.updates, uid)
		w.Queue.Drop(keyOf(uid))
	}
}

func keyOf(uid types.UID) string { return "image " + string(uid) }

// done records the end of an attempt.
func (w *Writer) done(uid types.UID, of *update, err error) {
	w.mu.Lock()
	current := w.updates[uid] == of
	if current {
		of.answered, of.failure = true, err
		of.failures++
	}
	w.mu.Unlock()
	if current {
		w.Wake(of.app.Key())
	}
}

// patience is how many failures in a row are reported nowhere, because most end by themselves: a server that does not answer, or a commit of
// others that has just changed the file.
const patience = 2

// Note returns the condition ImageWriteFailed of an App.
func (w *Writer) Note(app *v1alpha1.App) step.Note {
	note := step.Note{Condition: v1alpha1.ImageWriteFailedCondition}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.updates[app.UID]
	if last := conditions.Get(app, v1alpha1.ImageWriteFailedCondition); now != nil && !now.answered && last != nil {
		note.Status, note.Reason, note.Message = last.Status, last.Reason, last.Message // A restart is no news about it.
		return note
	}
	if now == nil || now.failure == nil {
		return note
	}
	reason, final := verdict.Of(now.failure)
	switch {
	case errors.Is(now.failure, git.ErrRefused), errors.Is(now.failure, commit.ErrInvalidEdit), errors.Is(now.failure, errNotWritable):
		reason = v1alpha1.WriteFailedReason
	case final:
	case now.failures < patience:
		return note
	default:
		reason = v1alpha1.WriteFailedReason
	}
	note.Status, note.Reason, note.Event = metav1.ConditionTrue, reason, "Warning"
	note.Message = "writing " + now.tag + " to " + now.file + ": " + now.failure.Error() + "; the app runs what the file says"
	return note
}
