package repositories

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/internal/manager/problem"
)

// branchLog are the last commits of a branch, by their hashes.
type branchLog struct {
	head    git.Commit
	commits map[string]git.Logged
}

// maxMessage is how many bytes of a message are kept.
const maxMessage = 2000

// log returns the last commits of the branch of a repository, from the cache if it has no newer one.
func (r *Repositories) log(ctx context.Context, p *place) (found branchLog, err error) {
	for range attempts {
		if found, err = r.logOnce(ctx, p); !errors.Is(err, git.ErrMoved) {
			break
		}
	}
	if err != nil {
		return branchLog{}, p.failed(ctx, err, nil)
	}
	return found, nil
}

func (r *Repositories) logOnce(ctx context.Context, p *place) (found branchLog, err error) {
	newest, err := p.remote.Fetch(ctx)
	if err != nil {
		return branchLog{}, err
	}
	if found = r.cache.log(p.remote.Name()); found.head.Hash == newest.Hash {
		return found, nil
	}
	found = branchLog{head: newest}
	// A server that sends commits only with their files may have to send too much.
	for most := lookBack; most > 0; most /= 10 {
		if found.commits, err = p.remote.Log(ctx, newest, most); !errors.Is(err, failure.ErrTooLarge) {
			break
		}
	}
	if err != nil {
		return branchLog{}, err
	}
	for hash, c := range found.commits {
		// A part of a text would keep all of it.
		c.Message, c.Author = strings.Clone(c.Message[:min(len(c.Message), maxMessage)]), strings.Clone(c.Author[:min(len(c.Author), maxMessage)])
		found.commits[hash] = c
	}
	r.cache.keepLog(p.remote.Name(), found)
	return found, nil
}

// commitsOf fetches commits of the branch. A server may have commits that are in no branch, or in another one: those are not there.
func (r *Repositories) commitsOf(ctx context.Context, p *place, hashes ...string) ([]git.Commit, error) {
	log, err := r.log(ctx, p)
	if err != nil {
		return nil, err
	}
	var all []git.Commit
	for _, hash := range hashes {
		if _, has := log.commits[hash]; !has {
			return nil, problem.New(problem.NotFound, fmt.Sprintf("None of the last %d commits of the repository is %s.", lookBack, hash))
		}
		c := log.head
		if hash != c.Hash {
			if c, err = p.remote.At(ctx, hash); err != nil {
				return nil, p.failed(ctx, err, nil)
			}
		}
		all = append(all, c)
	}
	return all, nil
}
