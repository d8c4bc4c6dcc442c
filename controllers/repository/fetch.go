package repository

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/preview"
	"github.com/kubeop/kubeop/controllers/repository/upstream"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/fetch/verdict"
)

// reportAfter is how long a fetch may take before the status reports it, and reportAppliedAfter the same if a commit is already applied,
// because after a start all repositories are fetched at once. lastLook is the time after which a repository with a longer fetch is
// reconciled again, although the end of the fetch wakes it.
const (
	reportAfter        = 2 * time.Second
	reportAppliedAfter = 30 * time.Second
	lastLook           = 15 * time.Second
)

// unreportedFor is how long a fetch of the repository may be under way before the status says so.
func unreportedFor(repository *v1alpha1.Repository) time.Duration {
	if repository.Status.LastAppliedRevision != "" {
		return reportAppliedAfter
	}
	return reportAfter
}

// Remotes fetches the remotes of Repositories, and caches the answers.
type Remotes struct {
	// Commits caches the answer of each Repository's remote until the interval is over, a push is reported, or a fetch is requested.
	Commits *cache.Answers[git.Commit]
	// Older caches folders of apps that the newest commit does not contain. They come from the commit with which the app was declared.
	Older *cache.Answers[*folder.Folder]
	// Previews fetches the branches that have previews.
	Previews *preview.Previews
	// Network reaches the APIs of Git hosts.
	Network *transport.Network

	clock clock.PassiveClock
}

// NewRemotes returns Remotes that fetch through the pool.
func NewRemotes(p *pool.Pool, c clock.PassiveClock) *Remotes {
	return &Remotes{Commits: cache.NewRecent[git.Commit](p, c), Older: cache.NewRecent[*folder.Folder](p, c), Previews: preview.New(p, c), clock: c}
}

// fetch fetches the newest commit of the ref into the local object store. It contacts the remote when the interval is over, the spec or a
// Secret changed, or a push or a person requested it; not each time a watch or the end of a fetch wakes the repository. While the remote
// fails, the repository goes on with the commit that it has.
func (r *Reconciler) fetch(ctx context.Context, s *scope) error {
	query := r.query(s.repository, s.every)
	commit, err := r.Commits.Get(query, func() (cache.Fetcher[git.Commit], error) {
		source, err := r.Source(ctx, s.repository)
		// The fetch may outlast this Reconcile, which goes on writing the status.
		repository := s.repository.DeepCopy()
		return func(ctx context.Context) (git.Commit, error) { return r.newest(ctx, repository, source) }, err
	})
	if err == nil {
		s.commit = commit
		return r.accept(ctx, s)
	}
	var waits *cache.Unanswered
	waiting := errors.As(err, &waits)
	if waiting && r.clock.Now().Sub(waits.Since) < unreportedFor(s.repository) {
		return step.Soon(reportAfter)
	}
	last, asked, known := r.Commits.Last(query.Key)
	if known && asked.Generation == s.repository.Generation {
		if s.commit = last; r.accept(ctx, s) != nil {
			s.commit = git.Commit{} // The next answer of the remote decides whether this commit is accepted.
		}
	}
	if !waiting {
		return s.withoutRemote(err)
	}
	_, failure := r.Commits.Failure(query.Key)
	switch {
	case failure != nil:
		return s.withoutRemote(failure)
	case s.commit.Root != nil:
		return nil
	}
	return s.unanswered()
}

// accept decides whether the fetched commit may follow the last accepted one. If not, it is held, and the last accepted commit is used in
// its place. If that commit cannot be read any more, the step ends here, and the running objects are not changed.
func (r *Reconciler) accept(ctx context.Context, s *scope) error {
	s.source = upstream.Source(s.repository)
	objection, err := r.objection(s)
	if objection == nil && err == nil {
		objection, err = r.frozen(ctx, s)
	}
	if err != nil {
		return err
	}
	if objection == nil {
		return r.useConfirmations(ctx, s)
	}
	s.held = s.commit.Revision
	last, err := s.commit.Earlier(s.repository.Status.LastAttemptedRevision)
	if errors.Is(err, failure.ErrNotFound) {
		s.commit = git.Commit{}
		return objection
	}
	s.commit, s.unaccepted = last, objection
	return err
}

// reportHeld reports a commit that is held.
func (r *Reconciler) reportHeld(ctx context.Context, s *scope) error {
	if s.hold == nil || s.progress == nil {
		return s.unaccepted
	}
	problems, err := r.review(ctx, s)
	if err != nil {
		return err
	}
	return r.waitFor(s, problems)
}

// useConfirmations removes the confirmations of an accepted commit, so that they do not accept the same commit a second time.
func (r *Reconciler) useConfirmations(ctx context.Context, s *scope) error {
	for _, annotation := range []string{v1alpha1.ConfirmHistoryAnnotation, v1alpha1.ConfirmFreezeAnnotation} {
		if confirms(s.repository, annotation, s.commit) {
			return step.Withdraw(ctx, r.Client, s.repository, annotation) // Another one is removed when the annotations are as read here.
		}
	}
	return nil
}

// unanswered ends the step if the remote has not answered since the operator started.
func (s *scope) unanswered() error {
	return step.Unanswered(lastLook, fmt.Errorf("fetching %s: it has not answered yet", transport.SafeURL(s.repository.Spec.URL)))
}

// withoutRemote ends the step if the remote cannot be reached. The applied commit is still reconciled as far as it is cached, and its
// conditions stay.
func (s *scope) withoutRemote(err error) error {
	status := &s.repository.Status
	if status.LastAppliedRevision != "" {
		err = fmt.Errorf("%w; applied is %s, which stays", err, status.LastAppliedRevision)
	}
	reason, final := verdict.Of(err)
	end := step.Fail(reason, err)
	switch {
	case errors.Is(err, failure.ErrBusy):
		end = step.Wait(reason, lastLook, "%w", err)
	case final:
		end = step.Stop(reason, err)
	}
	if status.LastAttemptedRevision == "" {
		return end
	}
	return step.GoOn(end)
}

// withCommit skips a step if there is no commit.
func withCommit(do func(context.Context, *scope) error) func(context.Context, *scope) error {
	return func(ctx context.Context, s *scope) error {
		if s.commit.Root == nil {
			return step.Skip()
		}
		return do(ctx, s)
	}
}

// WakeApps sets the function that wakes Apps when a fetch that they wait for has ended.
func (r *Reconciler) WakeApps(wake func(types.NamespacedName)) { r.Older.Wake = wake }

// forget drops the cached answers of a deleted repository.
func (r *Reconciler) forget(repository *v1alpha1.Repository) {
	r.Commits.Forget(string(repository.UID))
	r.Previews.Forget(repository)
	r.PullRequests.Forget(repository.Name)
	r.records.forget(repository.UID, repository.Name)
	r.Refusals.Forget(repository.Name)
	r.credentials.Drop(upstream.Secrets(repository)...)
}
