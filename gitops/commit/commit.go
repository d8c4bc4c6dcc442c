// Package commit writes to repositories: it makes a commit of edits, and pushes it to a branch. If others pushed meanwhile, it makes the same
// edits on their commit, until the push succeeds. Only an edit of what another commit changed, too, is an error: nobody's change is undone.
package commit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/delivery/backoff"
	"github.com/kubeop/kubeop/delivery/fetch/draft"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/keymutex"
)

// Branch is a branch of a repository to which commits are pushed.
type Branch interface {
	// Name is the same for all that write to this branch.
	Name() string
	// Fetch returns the newest commit.
	Fetch(ctx context.Context) (git.Commit, error)
	// Push pushes a commit as git.Store.Push does. Its branch is this one, or a new one.
	Push(ctx context.Context, p git.Proposed) (hash string, err error)
}

// Request is what to commit.
type Request struct {
	// ID names the request in the trailer of the commit, so that a commit is found from the log of who requested it.
	ID string
	// Title is the first line of the message, in the imperative. Body is optional.
	Title, Body string
	// Author and Committer are who requested the commit, and what makes it.
	Author, Committer draft.Person
	// Base are the files that the requester saw. An edit of what was changed since then is a conflict. Nil: those of the first fetched commit.
	Base *folder.Folder
	// Folder in the repository to which the paths of the edits are relative. "": its root.
	Folder string
	Edits  []Edit
	// Branch is pushed to. If New, it is created, for a pull request.
	Branch string
	New    bool
}

// Trailer is the key of the trailer with the ID of a request.
const Trailer = "Kubeop-Request"

// Result is what became of a request.
type Result struct {
	// Hash is that of the commit, or of a newer one if the answer to its push was lost; of the newest one if Unchanged.
	Hash string
	// Unchanged means that the newest commit has all that was requested, so nothing was pushed.
	Unchanged bool
	// Attempts is how many commits were made until one was pushed.
	Attempts int
}

// The pause before the next attempt grows from firstPause to lastPause. maxFailures is how many times in a row the server may fail.
const (
	firstPause  = 20 * time.Millisecond
	lastPause   = 2 * time.Second
	maxFailures = 4
)

// Writer writes to branches. Safe for concurrent use: those of one process that write to the same branch wait for each other.
type Writer struct {
	Clock clock.Clock

	turns keymutex.Mutexes
}

// Write commits a request to a branch, and returns when it is pushed. ctx bounds the attempts: while others push without end, there is no
// other limit.
//
// Errors: ErrConflict, ErrExists, ErrMissing, ErrInvalidEdit, and those of Branch.
func (w *Writer) Write(ctx context.Context, to Branch, r Request) (Result, error) {
	done, err := w.turns.Lock(ctx, to.Name())
	if err != nil {
		return Result{}, fmt.Errorf("waiting for other commits to %s: %w", to.Name(), err)
	}
	defer done()
	result, failures, lost := Result{}, 0, false
	for {
		attempt, err := w.attempt(ctx, to, &r)
		result.Hash, result.Unchanged, result.Attempts = attempt.Hash, attempt.Unchanged && !lost, result.Attempts+attempt.Attempts
		switch {
		case err == nil:
			return result, nil
		case errors.Is(err, git.ErrMoved) && !r.New:
			failures = 0
		case errors.Is(err, failure.ErrUnavailable) || errors.Is(err, failure.ErrSlow):
			if failures++; failures == maxFailures {
				return result, err
			}
			lost = lost || attempt.Attempts > 0
		default:
			return result, err
		}
		if err := w.pause(ctx, result.Attempts+failures); err != nil {
			return result, fmt.Errorf("%w after %d attempts", err, result.Attempts)
		}
	}
}

// attempt makes the commit once.
func (w *Writer) attempt(ctx context.Context, to Branch, r *Request) (Result, error) {
	newest, err := to.Fetch(ctx)
	if err != nil {
		return Result{}, err
	}
	if r.Base == nil {
		r.Base = newest.Root
	}
	changes, err := changesOf(*r, newest.Root)
	if err != nil {
		return Result{}, err
	}
	if len(changes) == 0 {
		return Result{Hash: newest.Hash, Unchanged: true}, nil
	}
	hash, err := to.Push(ctx, git.Proposed{
		Upon: newest, Changes: changes, Message: r.message(), Author: r.Author, Committer: r.Committer, At: w.Clock.Now(), Branch: r.Branch, New: r.New,
	})
	return Result{Hash: hash, Attempts: 1}, err
}

// pause waits before the next attempt, for a random part of a time that grows: writers that met once do not meet again at the same moment.
func (w *Writer) pause(ctx context.Context, attempts int) error {
	longest := backoff.Between(firstPause, lastPause, max(attempts, 1))
	select {
	case <-ctx.Done():
		return fmt.Errorf("the commit could not be pushed in time: %w", context.Cause(ctx))
	case <-w.Clock.After(rand.N(longest)):
		return nil
	}
}

// changesOf returns what a request changes in the newest files.
func changesOf(r Request, newest *folder.Folder) ([]draft.Change, error) {
	base, err := within(r.Base, r.Folder)
	if err == nil {
		newest, err = within(newest, r.Folder)
	}
	if err != nil {
		return nil, err
	}
	all, err := Changes(base, newest, r.Edits)
	for i := range all {
		all[i].Path = path.Join(r.Folder, all[i].Path)
	}
	return all, err
}

func within(files *folder.Folder, dir string) (*folder.Folder, error) {
	if dir == "" {
		return files, nil
	}
	sub, err := files.Sub(dir)
	if err != nil {
		return nil, failure.Because(ErrInvalidEdit, err, "the folder %s of the repository cannot be read: %s", dir, err)
	}
	return sub, nil
}

// Changes returns what edits change in the newest files, in the order of the paths; nothing if they have it all. base are the files that the
// requester saw. Errors: ErrConflict, ErrExists, ErrMissing, ErrInvalidEdit.
func Changes(base, newest *folder.Folder, edits []Edit) ([]draft.Change, error) {
	var all []draft.Change
	for _, e := range edits {
		changes, err := e.changes(base, newest)
		if err != nil {
			return nil, err
		}
		all = append(all, changes...)
	}
	slices.SortFunc(all, func(a, b draft.Change) int { return strings.Compare(a.Path, b.Path) })
	for i := range all[:max(len(all)-1, 0)] {
		if all[i].Path == all[i+1].Path {
			return nil, failure.New(ErrInvalidEdit, "%s is edited twice in one commit", all[i].Path)
		}
	}
	return all, nil
}

// message is the message of the commit.
func (r Request) message() string {
	text := strings.TrimSpace(r.Title) + "\n\n"
	if body := strings.TrimSpace(r.Body); body != "" {
		text += body + "\n\n"
	}
	return text + Trailer + ": " + r.ID + "\n"
}
