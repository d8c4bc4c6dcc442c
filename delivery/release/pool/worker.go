package pool

import (
	"context"
	"sync"

	"github.com/kubeop/kubeop/delivery/fair"
)

// Worker is the worker that an action occupies while it works.
type Worker struct {
	workers *fair.Places
	tenant  string

	mu sync.Mutex
	// idle counts the running calls of Idle. release releases the worker.
	idle    int
	release func()
}

// acquire waits for a worker, and returns false if the pool stops.
func (w *Worker) acquire(stopping context.Context) bool {
	release, err := w.workers.Enter(stopping, w.tenant)
	if err != nil {
		return false
	}
	if w.release = release; stopping.Err() != nil {
		release()
		return false
	}
	return true
}

// Idle runs f, which only waits, and releases the worker to other actions meanwhile. Calls may nest and overlap: the action gets a worker
// again when the last of them has ended.
func (w *Worker) Idle(f func() error) error {
	w.mu.Lock()
	if w.idle++; w.idle == 1 {
		w.release()
	}
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.idle--; w.idle == 0 {
			// Enter cannot fail: the action also continues while the pool stops, and any number of actions may wait.
			w.release, _ = w.workers.Enter(context.Background(), w.tenant)
		}
	}()
	return f()
}
