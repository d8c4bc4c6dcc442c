package release

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// slot is the place of one release: at most one action is in it.
type slot struct {
	// mu is held while deciding, so that two requests at once do not both act.
	mu sync.Mutex
	// action that is queued or runs; settled when there is none.
	action act
	last   attempt
}

func (e *Engine) slot(key types.NamespacedName) *slot {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, ok := e.slots[key]
	if !ok {
		s = &slot{}
		e.slots[key] = s
	}
	return s
}

// job is an action to run: on which input, and how.
type job struct {
	act    act
	digest string
	run    func(context.Context) (stored bool, err error)
}

// start runs the job as soon as a worker is free, and Notify after it. The slot is locked by the caller. The job's
// context carries the caller's values but ends with nothing.
func (e *Engine) start(ctx context.Context, s *slot, app types.NamespacedName, j job) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.draining {
		return ErrDraining
	}
	s.action = j.act
	e.actions.Add(1)
	go e.work(context.WithoutCancel(ctx), s, app, j)
	return nil
}

func (e *Engine) work(ctx context.Context, s *slot, app types.NamespacedName, j job) {
	defer e.actions.Done()
	// The namespace's share comes first, so that who waits for it takes no worker's place.
	share := e.share(app.Namespace)
	if !e.enter(share) || !e.enter(e.tokens) {
		s.abandon()
		return
	}
	stored, err := safely(ctx, j)
	<-e.tokens
	<-share
	s.finish(e, j.digest, stored, err)
	e.opts.Notify(app)
}

// share returns the places of one namespace: half of the workers and at least one, because hooks that never end would
// otherwise take them all from everybody.
func (e *Engine) share(namespace string) chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	share, ok := e.shares[namespace]
	if !ok {
		share = make(chan struct{}, max(1, e.opts.Workers/2))
		e.shares[namespace] = share
	}
	return share
}

// enter waits for a place and reports false when the engine stops, after which nobody enters anywhere.
func (e *Engine) enter(places chan struct{}) bool {
	select {
	case <-e.stop:
		return false
	case places <- struct{}{}:
		return !e.isDraining()
	}
}

func (e *Engine) isDraining() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.draining
}

func safely(ctx context.Context, j job) (stored bool, err error) {
	defer recovered(string(j.act), &err)
	return j.run(ctx)
}

// abandon frees the slot of an action that never began.
func (s *slot) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.action = settled
}

func (s *slot) finish(e *Engine, digest string, stored bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.action = settled
	unstored := 0
	if err != nil && !stored {
		unstored = 1
		if s.last.digest == digest {
			unstored += s.last.unstored
		}
	}
	s.last = attempt{digest: digest, err: err, at: e.opts.Now(), unstored: unstored}
}

// Drain starts nothing more, drops what is queued and waits until what runs has ended, or ctx.
func (e *Engine) Drain(ctx context.Context) error {
	e.mu.Lock()
	if !e.draining {
		e.draining = true
		close(e.stop)
	}
	e.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		e.actions.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for running Helm actions: %w", ctx.Err())
	}
}
