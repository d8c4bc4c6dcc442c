package repositories

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/go-logr/logr"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/gitops/commit"
	"github.com/kubeop/kubeop/internal/manager/problem"
)

// failed returns what is answered when a commit could not be made. What Git servers and Secrets are is for the log: callers may not know of them.
func (p *place) failed(ctx context.Context, err error, edits []commit.Edit) error {
	if refused, is := isRefusal(err); is {
		return refused.problem()
	}
	var said *problem.Problem
	switch {
	case errors.As(err, &said):
		return said
	case errors.Is(err, commit.ErrExists), errors.Is(err, commit.ErrConflict):
		return p.conflict(ctx, err, edits)
	case errors.Is(err, commit.ErrMissing):
		return problem.New(problem.NotFound, "The repository does not have "+p.path()+".")
	case errors.Is(err, commit.ErrInvalidEdit):
		return problem.New(problem.Invalid, "The file cannot be changed like this.", problem.Fault{Location: p.path(), Message: err.Error()})
	case errors.Is(err, git.ErrRefused):
		logr.FromContextOrDiscard(ctx).Info("The Git server refused a commit", "why", err.Error())
		return problem.New(problem.Conflict, "The Git server refuses the commit, such as because the branch is protected.")
	case ctx.Err() != nil:
		logr.FromContextOrDiscard(ctx).Error(err, "A commit was not made in time")
		return problem.New(problem.TookTooLong, "The Git server did not take the commit in time. It may take it still: a request with an Idempotency-Key can be sent again; otherwise look at the file first.")
	case errors.Is(err, git.ErrEmpty):
		return problem.New(problem.Conflict, "The repository "+p.repository.Name+" is empty, so there is no branch to commit to: push a first commit with the file kubeop.yaml, as kubeop init writes it.")
	case errors.Is(err, failure.ErrTooLarge):
		logr.FromContextOrDiscard(ctx).Error(err, "Reaching a repository that is too large")
		return problem.New(problem.Conflict, "The repository, or what is to be pushed, is too large for the manager: make it smaller, or push by hand.")
	case errors.Is(err, failure.ErrAuthentication), errors.Is(err, failure.ErrNotFound), errors.Is(err, failure.ErrInvalid):
		return unreachable(ctx, err, "The manager may not write to the repository: its Git credentials are refused, or the repository or branch is not there.")
	}
	return unreachable(ctx, err, "The Git server of the repository does not answer as it should.")
}

// unreachable says that a repository cannot be written to now, and logs why.
func unreachable(ctx context.Context, err error, detail string) error {
	logr.FromContextOrDiscard(ctx).Error(err, "Reaching a repository")
	return problem.New(problem.Unavailable, detail).After(5 * time.Second)
}

func (r *refusal) problem() *problem.Problem {
	var all []problem.Fault
	for _, p := range r.problems {
		all = append(all, problem.Fault{Location: p.Place(), Message: p.Why + " [" + string(p.Code) + "]"})
	}
	return problem.New(problem.Invalid, "The operator would refuse this, so nothing was committed.", all...)
}

// conflict returns a conflict with both versions of the file.
func (p *place) conflict(ctx context.Context, err error, edits []commit.Edit) error {
	answer := problem.New(problem.Conflict, err.Error())
	newest, fetching := p.remote.Fetch(ctx)
	if fetching != nil {
		return answer
	}
	answer.Versions = &problem.Versions{File: p.path(), Commit: newest.Hash}
	if text, err := newest.Root.ReadFile(p.path()); err == nil {
		answer.Versions.Current = string(text)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return answer
	}
	answer.Versions.Yours = p.asWanted(newest, edits)
	return answer
}

// asWanted returns the file as edits would have it upon the newest commit, "" if they delete it or cannot be made.
func (p *place) asWanted(newest git.Commit, edits []commit.Edit) string {
	root := newest.Root
	if dir := p.folder(); dir != "" {
		var err error
		if root, err = root.Sub(dir); err != nil {
			return ""
		}
	}
	for i, e := range edits {
		if matching, is := e.(commit.Matching); is {
			e = matching.Edit
		}
		if create, is := e.(commit.Create); is {
			return string(create.Content)
		}
		edits[i] = e
	}
	changes, err := commit.Changes(root, root, edits)
	if err != nil {
		return ""
	}
	for _, c := range changes {
		if c.Path == p.file {
			return string(c.Content)
		}
	}
	return ""
}
