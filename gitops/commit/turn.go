package commit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/draft"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/git"
)

// waiting is a request that is not answered.
type waiting struct {
	Request
	to Branch
	// callers is how many wait for the answer. The mutex of the Writer guards it.
	callers int
	// attempts is how many commits were made, and failures how many times in a row the server failed.
	attempts atomic.Int32
	failures int
	// made is how many commits the chain of a turn had with this one.
	made int
	// result and err are the answer. They are read when answered is closed.
	result   Result
	err      error
	answered chan struct{}
}

// The bounds of one push. Another one takes what is beyond them.
const (
	maxRequests = 500
	maxBytes    = 16 << 20
)

// lookBack is among how many of the newest commits a request is looked for that was made before.
const lookBack = 1000

// known are the requests in the commits of a branch up to one of them.
type known struct {
	head    string
	commits map[string]string // by ID
}

// look reads which requests are in the newest commits. Each turn has to: an earlier process may have pushed the request and ended before its
// answer, the answer of a push may have been lost, or another process may have made it meanwhile. While the queue lasts, it reads only what
// is new.
func (k *known) look(ctx context.Context, to Branch, newest git.Commit) error {
	if len(k.commits) > 10*lookBack {
		*k = known{commits: map[string]string{}}
	}
	if k.head == newest.Hash {
		return nil
	}
	messages, err := map[string]string(nil), error(nil)
	// A server that sends commits only with their files may have to send too much.
	for most := lookBack; most > 0; most /= 10 {
		if messages, err = to.Messages(ctx, newest, k.head, most); !errors.Is(err, failure.ErrTooLarge) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("looking for what was committed before: %w", err)
	}
	for hash, message := range messages {
		k.commits[idIn(message)] = hash
	}
	k.head = newest.Hash
	return nil
}

// add adds commits that were pushed upon the newest one.
func (k *known) add(commits []draft.Commit, hashes []string) {
	for i, c := range commits {
		k.commits[idIn(c.Message)], k.head = hashes[i], hashes[i]
	}
}

// errSplit means that the server refused the commits of several requests: fewer of them may succeed.
var errSplit = errors.New("several requests were refused together")

// turn tries to make the requests of a group at once: it fetches, makes a commit of each upon the one before, and pushes them together. It
// returns those that it took part of the group. Without an error they have their answers. A request that cannot be made fails alone; but its
// error may come from a commit before it, so it is an answer only if those are pushed.
func (k *known) turn(ctx context.Context, now time.Time, group []*waiting) (took []*waiting, err error) {
	to, first := group[0].to, group[0].Request
	newest, err := to.Fetch(ctx)
	if err == nil && !first.New { // A new branch exists if the request was made before.
		err = k.look(ctx, to, newest)
	}
	if err != nil {
		return group, err
	}
	chain := draft.New()
	took = k.chain(chain, newest, now, group)
	hashes := []string{newest.Hash}
	if len(chain.Commits) > 0 {
		pushed, err := to.Push(ctx, git.Proposed{Upon: newest, Draft: chain, Branch: first.Branch, New: first.New})
		if len(took) > 1 && (errors.Is(err, git.ErrRefused) || errors.Is(err, failure.ErrTooLarge)) {
			err = errors.Join(errSplit, err)
		}
		if err != nil {
			return took, err
		}
		hashes = append(hashes, pushed...)
		k.add(chain.Commits, pushed)
	}
	for _, p := range took {
		if p.result.Hash == "" && p.err == nil {
			p.result.Hash = hashes[p.made]
		}
	}
	return took, nil
}

// chain makes the commits of a group until there are enough for one push, and returns the requests up to there.
func (k *known) chain(chain *draft.Draft, newest git.Commit, now time.Time, group []*waiting) []*waiting {
	files, at := newest.Root, newest.Root.Over(chain)
	for i, p := range group {
		if p.Base == nil {
			p.Base = newest.Root
		}
		p.result, p.err = Result{Hash: k.commits[p.ID]}, nil
		var changes []draft.Change
		if p.result.Hash == "" {
			changes, p.err = changesOf(p.Request, files)
			p.result.Unchanged = p.err == nil && len(changes) == 0
		}
		if len(changes) > 0 {
			p.attempts.Add(1)
			if p.err = chain.Add(files, draft.Commit{Message: p.message(), Author: p.Author, Committer: p.Committer, At: now}, changes); p.err == nil {
				files = at(chain.Commits[len(chain.Commits)-1].Tree)
			}
		}
		p.result.Attempts, p.made = int(p.attempts.Load()), len(chain.Commits)
		// What a restored folder has is known after the next fetch only.
		restored := slices.ContainsFunc(changes, func(c draft.Change) bool { return c.Tree != "" })
		if restored || chain.Bytes() > maxBytes {
			return group[:i+1]
		}
	}
	return group
}
