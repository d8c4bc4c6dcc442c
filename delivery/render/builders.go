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

// Builders bounds how many builds run at once, and how many of one tenant's. The last place is kept for tenants of whom none runs,
// and a tenant of whom one runs on past its time begins no other: so those who make theirs take long stand in their own way. The
// zero value is ready.
type Builders struct {
	mu     sync.Mutex
	all    int
	of     map[string]builds
	waiter chan struct{} // closed when a place becomes free
}

// builds are those of one tenant: that run, and those among them whose time is over.
type builds struct{ running, late int }

// Do runs a build and waits for it, at most patience for its turn, and then until ctx ends. A build cannot be stopped: when
// ctx ends, which is an ErrTimeout, its place stays taken until the build is done, and it must not touch what the caller
// still uses. An ErrBusy says that its turn did not come, and why.
func (b *Builders) Do(ctx context.Context, tenant string, patience time.Duration, build func() error) error {
	if err := b.turn(ctx, tenant, patience); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- safely(build) }()
	select {
	case err := <-done:
		b.count(tenant, -1, 0)
		return err
	case <-ctx.Done():
		b.count(tenant, 0, 1)
		go func() {
			<-done
			b.count(tenant, -1, -1)
		}()
		return fmt.Errorf("building the manifests %w, and until it ends no other build of the tenant begins: make what is built smaller, or spec.timeout longer", ErrTimeout)
	}
}

// turn takes a place.
func (b *Builders) turn(ctx context.Context, tenant string, patience time.Duration) error {
	turn, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		free, late := b.enter(tenant)
		switch {
		case late > 0:
			return fmt.Errorf("waits for builds of the tenant that run on past their timeout: %d: %w", late, ErrBusy)
		case free == nil:
			return nil
		}
		select {
		case <-free:
		case <-turn.Done():
			return fmt.Errorf("waits for its turn: %d builds may run at once, %d of a tenant, and the last place is for tenants of whom none runs: %w", maxBuilds, maxTenantBuilds, ErrBusy)
		}
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

// enter takes a place, or returns what is closed when one becomes free, or how many builds of the tenant are late.
func (b *Builders) enter(tenant string) (free <-chan struct{}, late int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	own, places := b.of[tenant], maxBuilds
	if own.running > 0 {
		places--
	}
	switch {
	case own.late > 0:
		return nil, own.late
	case b.all < places && own.running < maxTenantBuilds:
		b.add(tenant, 1, 0)
		return nil, 0
	}
	if b.waiter == nil {
		b.waiter = make(chan struct{})
	}
	return b.waiter, 0
}

// count changes how many run and are late, and has those who wait look again.
func (b *Builders) count(tenant string, running, late int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(tenant, running, late)
	if b.waiter != nil {
		close(b.waiter)
		b.waiter = nil
	}
}

func (b *Builders) add(tenant string, running, late int) {
	if b.of == nil {
		b.of = map[string]builds{}
	}
	own := b.of[tenant]
	b.all, own.running, own.late = b.all+running, own.running+running, own.late+late
	if b.of[tenant] = own; own.running == 0 {
		delete(b.of, tenant)
	}
}
