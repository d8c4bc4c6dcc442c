package preview

import (
	"context"
	"fmt"
	"maps"
	"slices"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/gitops/preview"
)

// maxBranches is how many branches are fetched at most.
const maxBranches = 50

// wanted are the branches that match one of the patterns, as in path.Match. Those in First are fetched before others, and a commit with the
// hash Except is not fetched.
type wanted struct {
	Patterns []string
	First    map[string]bool
	Except   string
}

// head is a branch with its newest commit.
type head struct {
	Branch, Hash string
	// Commit has no Root if it was not fetched: it is wanted.Except, or Err says why.
	Commit git.Commit
	Err    error
}

// Answer are the branches that the server lists, by name.
type Answer struct {
	// Version is that of the query without the patterns.
	Version  string
	Patterns []string
	Heads    []head
}

// fetchBranches lists the branches and fetches those that match and changed since the answer before. An error is one of the listing; a commit that
// cannot be fetched is an error of its head only.
func fetchBranches(ctx context.Context, store *git.Store, src git.Source, w wanted, before Answer) (Answer, error) {
	listed, err := store.Heads(ctx, src)
	if err != nil {
		return Answer{}, err
	}
	known := map[string]head{}
	for _, h := range before.Heads {
		known[h.Branch] = h
	}
	answer := Answer{Version: before.Version, Patterns: w.Patterns}
	left := maxBranches
	for _, branch := range w.order(listed) {
		now := head{Branch: branch, Hash: listed[branch]}
		was := known[branch]
		switch {
		case now.Hash == w.Except:
		case left == 0:
			now.Err = failure.New(failure.ErrTooLarge, "more than %d branches match: delete old branches in Git, or choose a pattern that fewer match", maxBranches)
		case was.Hash == now.Hash && was.Commit.Root != nil:
			left--
			now = was
		default:
			left--
			now = fetchHead(ctx, store, src, now)
		}
		if ctx.Err() != nil {
			return Answer{}, context.Cause(ctx)
		}
		answer.Heads = append(answer.Heads, now)
	}
	return answer, nil
}

// order returns the branches that match, in the order in which they are fetched.
func (w wanted) order(listed map[string]string) (first []string) {
	var others []string
	for _, branch := range slices.Sorted(maps.Keys(listed)) {
		switch {
		case !w.matches(branch):
		case w.First[branch]:
			first = append(first, branch)
		default:
			others = append(others, branch)
		}
	}
	return append(first, others...)
}

func (w wanted) matches(branch string) bool {
	return slices.ContainsFunc(w.Patterns, func(pattern string) bool { return preview.Matches(pattern, branch) })
}

func fetchHead(ctx context.Context, store *git.Store, src git.Source, now head) head {
	src.Ref = &sourcev1.GitRepositoryRef{Branch: now.Branch}
	src.After, src.WithAfter = "", false
	commit, err := store.Fetch(ctx, src)
	switch {
	case err != nil:
		now.Err = err
	case commit.Unsigned != nil:
		now.Err = fmt.Errorf("commit %s: %w", commit.Hash, commit.Unsigned)
	default:
		now.Hash, now.Commit = commit.Hash, commit
	}
	return now
}
