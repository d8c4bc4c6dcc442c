package render

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Bounds of what is built at once in one process. A build takes milliseconds; one that a tenant made to take long must
// leave room for the others.
const (
	maxBuilds       = 4
	maxTenantBuilds = 2
)

// ErrBusy is returned when no build may begin at this moment.
var ErrBusy = errors.New("too many builds at once")

// Builders bounds how many builds run at once, and how many of one tenant's. The zero value is ready.
type Builders struct {
	mu     sync.Mutex
	all    int
	of     map[string]int
	waiter chan struct{} // closed when a place becomes free
}

// Do runs a build and waits for it, at most patience for its turn, and then until ctx ends. A build cannot be stopped: when
// ctx ends, which is an ErrTimeout, its place stays taken until the build is done, and it must not touch what the caller
// still uses. An ErrBusy says that its turn did not come.
func (b *Builders) Do(ctx context.Context, tenant string, patience time.Duration, build func() error) error {
	turn, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for free := b.enter(tenant); free != nil; free = b.enter(tenant) {
		select {
		case <-free:
		case <-turn.Done():
			return fmt.Errorf("waits for its turn: %d builds may run at once, %d of a tenant: %w", maxBuilds, maxTenantBuilds, ErrBusy)
		}
	}
	done := make(chan error, 1)
	go func() {
		defer b.leave(tenant)
		done <- safely(build)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("building the manifests %w: make what is built smaller, or spec.timeout longer", ErrTimeout)
	}
}

// safely keeps a panic that strange manifests cause from ending the process.
func safely(build func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("these manifests cannot be built") // What it panicked with may hold a secret.
		}
	}()
	return build()
}

// enter takes a place, or returns what is closed when one becomes free.
func (b *Builders) enter(tenant string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil {
		b.of = map[string]int{}
	}
	if b.all < maxBuilds && b.of[tenant] < maxTenantBuilds {
		b.all++
		b.of[tenant]++
		return nil
	}
	if b.waiter == nil {
		b.waiter = make(chan struct{})
	}
	return b.waiter
}

func (b *Builders) leave(tenant string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all--
	if b.of[tenant]--; b.of[tenant] == 0 {
		delete(b.of, tenant)
	}
	if b.waiter != nil {
		close(b.waiter)
		b.waiter = nil
	}
}
