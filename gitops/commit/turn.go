package commit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/delivery/fetch/draft"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/git"
)

// waiting is a request that is not answered.
type waiting struct {
	Request
	to Branch
	// callers is how many wait for the answer. It changes under the mutex of the Writer, as do taken and settled.
	callers atomic.Int32
	// taken: a turn has the request. settled: its answer is there, or about to be.
	taken, settled bool
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

// The bounds of one push: how many requests, how many bytes, and how long their commits are made. Another one takes what is beyond them.
const (
	maxRequests = 500
	maxBytes    = 16 << 20
	maxMaking   = 5 * time.Second
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

// errGone means that nobody waits for a request any more, so it is not made.
var errGone = errors.New("nobody waits for the commit")

// errSplit means that the server refused the commits of several requests: fewer of them may succeed.
var errSplit = errors.New("several requests were refused together")

// turn tries to make the requests of a group at once: it fetches, makes a commit of each upon the one before, and pushes them together. It
// returns those that it took part of the group. Without an error they have their answers. A request that cannot be made fails alone; but its
// error may come from a commit before it, so it is an answer only if those are pushed. pushing is called before the push, and refuses it if nobody waits.
func (k *known) turn(ctx context.Context, c clock.PassiveClock, group []*waiting, pushing func() error) (took []*waiting, err error) {
	to, first := group[0].to, group[0].Request
	newest, err := to.Fetch(ctx)
	if err == nil && !first.New { // A new branch exists if the request was made before.
		err = k.look(ctx, to, newest)
	}
	if err != nil {
		return group, err
	}
	chain := draft.New()
	if took, err = k.chain(ctx, chain, newest, c, group); err != nil {
		return took, err
	}
	hashes := []string{newest.Hash}
	if len(chain.Commits) > 0 {
		pushed, err := k.push(ctx, to, git.Proposed{Upon: newest, Draft: chain, Branch: first.Branch, New: first.New}, pushing)
		if len(took) > 1 && (errors.Is(err, git.ErrRefused) || errors.Is(err, failure.ErrTooLarge)) {
			err = errors.Join(errSplit, err)
		}
		if err != nil {
			return took, err
		}
		hashes = append(hashes, pushed...)
	}
	for _, p := range took {
		if p.result.Hash == "" && p.err == nil {
			p.result.Hash = hashes[p.made]
		}
	}
	return took, nil
}

func (k *known) push(ctx context.Context, to Branch, p git.Proposed, pushing func() error) ([]string, error) {
	if err := pushing(); err != nil {
		return nil, err
	}
	pushed, err := to.Push(ctx, p)
	if err == nil {
		k.add(p.Draft.Commits, pushed)
	}
	return pushed, err
}

// chain makes the commits of a group until there are enough for one push, and returns the requests up to there. Requests for which nobody waits are not made.
func (k *known) chain(ctx context.Context, chain *draft.Draft, newest git.Commit, c clock.PassiveClock, group []*waiting) ([]*waiting, error) {
	files, at, begin := newest.Root, newest.Root.Over(chain), c.Now()
	for i, p := range group {
		if ctx.Err() != nil {
			return group, ctx.Err()
		}
		if p.Base == nil {
			p.Base = newest.Root
		}
		p.result, p.err = Result{Hash: k.commits[p.ID]}, nil
		var changes []draft.Change
		switch {
		case p.result.Hash != "":
		case p.callers.Load() == 0:
			p.err = errGone
		default:
			changes, p.err = changesOf(p.Request, files)
			p.result.Unchanged = p.err == nil && len(changes) == 0
		}
		if len(changes) > 0 {
			p.attempts.Add(1)
			if p.err = chain.Add(files, draft.Commit{Message: p.message(), Author: p.Author, Committer: p.Committer, At: begin}, changes); p.err == nil {
				files = at(chain.Commits[len(chain.Commits)-1].Tree)
			}
		}
		p.result.Attempts, p.made = int(p.attempts.Load()), len(chain.Commits)
		// What a restored folder has is known after the next fetch only.
		restored := slices.ContainsFunc(changes, func(c draft.Change) bool { return c.Tree != "" })
		if restored || chain.Bytes() > maxBytes || c.Since(begin) > maxMaking {
			return group[:i+1], nil
		}
	}
	return group, nil
}
