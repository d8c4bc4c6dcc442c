package commit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/delivery/backoff"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/git"
)

// The pause before the next attempt grows from firstPause to lastPause. maxFailures is how many times in a row the server may fail.
const (
	firstPause  = 20 * time.Millisecond
	lastPause   = 2 * time.Second
	maxFailures = 4
)

// Writer writes to branches with group commits, as databases write their logs: while one push is under way, the requests to the same branch
// gather, and the next push has a commit for each of them. So a request waits for at most one push and its own, unless there are more than
// one push takes. Writers of several processes meet as git.ErrMoved, and try again upon the newest commit. Safe for concurrent use.
//
// A request is committed once, however often and wherever it is written again: its ID is looked for in the last 1,000 commits of the branch.
// The limit is of commits and not those since the base of the request: one that creates a file has no base, and one that is repeated may have
// a newer one.
type Writer struct {
	Clock clock.Clock

	mu     sync.Mutex
	queues map[queueKey]*queue
}

// queueKey names those whose requests are pushed together. A new branch is for one request, which has its ID.
type queueKey struct{ name, branch, id string }

// queue are the requests to a branch, the oldest first; those of the push under way are among them. It lasts while there are some.
type queue struct {
	requests []*waiting
	// end ends the turn under way when nobody waits any more, unless it is pushing: a push that has begun may arrive, and what became of it has to be known.
	end     context.CancelFunc
	pushing bool
	// most is how many requests the next push takes, and tries how many turns in a row have to be repeated.
	most, tries int
	known       known
}

// Write commits a request to a branch, and returns when it is pushed. ctx bounds the attempts: while others push without end, there is no
// other limit. If it ends, the commit may be pushed or not: write the request again, with the same ID.
//
// Errors: ErrConflict, ErrExists, ErrMissing, ErrInvalidEdit, and those of Branch.
func (w *Writer) Write(ctx context.Context, to Branch, r Request) (Result, error) {
	if r.ID == "" || strings.TrimSpace(r.ID) != r.ID || strings.ContainsFunc(r.ID, unicode.IsControl) {
		return Result{}, failure.New(ErrInvalidEdit, "%q is no ID of a request: it is on one line, without spaces around it", r.ID)
	}
	key := queueKey{name: to.Name(), branch: r.Branch}
	if r.New {
		key.id = r.ID
	}
	p := w.enter(ctx, key, to, r)
	select {
	case <-p.answered:
		return p.result, p.err
	case <-ctx.Done():
		if w.leave(key, p) {
			<-p.answered
			return p.result, p.err
		}
		tried := int(p.attempts.Load())
		return Result{Attempts: tried}, fmt.Errorf("the commit could not be pushed in time: %w after %d attempts", context.Cause(ctx), tried)
	}
}

// enter adds a request to its queue, unless it is there, and returns the one to wait for.
func (w *Writer) enter(ctx context.Context, key queueKey, to Branch, r Request) *waiting {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.queues[key]
	if q == nil {
		q = &queue{most: maxRequests, known: known{commits: map[string]string{}}}
		// The context of one request must not end the push of the others.
		ctx, q.end = context.WithCancel(context.WithoutCancel(ctx))
		if w.queues == nil {
			w.queues = map[queueKey]*queue{}
		}
		w.queues[key] = q
		go w.push(ctx, key, q)
	}
	at := slices.IndexFunc(q.requests, func(p *waiting) bool { return p.ID == r.ID })
	if at < 0 {
		at = len(q.requests)
		q.requests = append(q.requests, &waiting{Request: r, to: to, answered: make(chan struct{})})
	}
	q.requests[at].callers.Add(1)
	return q.requests[at]
}

// leave takes a caller away from a request, and the request from its queue when it was the last one, unless a turn has it: then the turn settles it. It reports
// whether the request is settled, so that its answer is there.
func (w *Writer) leave(key queueKey, p *waiting) (settled bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.settled {
		return true
	}
	q := w.queues[key]
	if p.callers.Add(-1) > 0 || q == nil || !slices.Contains(q.requests, p) {
		return false
	}
	if !p.taken {
		w.remove(key, q, p)
	}
	if !q.pushing && !slices.ContainsFunc(q.requests, func(p *waiting) bool { return p.callers.Load() > 0 }) {
		w.close(key, q)
	}
	return false
}

// remove removes requests from a queue, and ends it after the last one. The lock is held.
func (w *Writer) remove(key queueKey, q *queue, done ...*waiting) {
	q.requests = slices.DeleteFunc(q.requests, func(p *waiting) bool { return slices.Contains(done, p) })
	if len(q.requests) == 0 {
		w.close(key, q)
	}
}

// close ends a queue. Requests that come afterwards have another one. The lock is held.
func (w *Writer) close(key queueKey, q *queue) {
	if w.queues[key] == q {
		delete(w.queues, key)
	}
	q.end()
}

// push pushes until the queue is empty.
func (w *Writer) push(ctx context.Context, key queueKey, q *queue) {
	for {
		w.mu.Lock()
		group := slices.Clone(q.requests[:min(len(q.requests), q.most)])
		for _, p := range group {
			p.taken = true
		}
		w.mu.Unlock()
		if len(group) == 0 {
			return
		}
		took, err := q.known.turn(ctx, w.Clock, group, func() error {
			w.mu.Lock()
			defer w.mu.Unlock()
			q.pushing = ctx.Err() == nil
			return ctx.Err()
		})
		w.settle(key, q, took, err)
		if q.tries > 0 {
			w.pause(ctx, q.tries)
		}
	}
}

// settle answers the requests that a turn took, unless they are to be tried again.
func (w *Writer) settle(key queueKey, q *queue, took []*waiting, err error) {
	w.mu.Lock()
	q.pushing = false
	w.mu.Unlock()
	q.tries++
	switch {
	case errors.Is(err, errSplit):
		// Half of them at a time, until those are alone that the server does not want.
		q.most, q.tries = len(took)/2, 0
		return
	case errors.Is(err, git.ErrMoved) && !took[0].New:
		for _, p := range took {
			p.failures = 0
		}
		return
	case errors.Is(err, failure.ErrUnavailable) || errors.Is(err, failure.ErrSlow):
		took = slices.DeleteFunc(slices.Clone(took), func(p *waiting) bool {
			p.failures++
			return p.failures < maxFailures
		})
	default:
		q.tries = 0
	}
	if err == nil {
		q.most = min(2*q.most, maxRequests)
	}
	w.answer(key, q, took, err)
}

// answer answers requests, whose results are there unless err says why there are none.
func (w *Writer) answer(key queueKey, q *queue, took []*waiting, err error) {
	w.mu.Lock()
	took = slices.DeleteFunc(slices.Clone(took), func(p *waiting) bool { // Somebody waits for it again.
		return err == nil && errors.Is(p.err, errGone) && p.callers.Load() > 0
	})
	w.remove(key, q, took...)
	var alone []*waiting
	for _, p := range took {
		if p.settled = true; p.callers.Load() == 0 {
			alone = append(alone, p)
		}
	}
	w.mu.Unlock()
	for _, p := range took {
		if err != nil {
			p.result, p.err = Result{Attempts: int(p.attempts.Load())}, err
		}
		close(p.answered)
	}
	for _, p := range alone {
		if p.err == nil && p.Alone != nil {
			go p.Alone(p.result)
		}
	}
}

// pause waits before the next attempt, for a random part of a time that grows: writers that met once do not meet again at the same moment.
func (w *Writer) pause(ctx context.Context, tries int) {
	select {
	case <-ctx.Done():
	case <-w.Clock.After(rand.N(backoff.Between(firstPause, lastPause, tries))):
	}
}
