package fence

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Lock returns the lock that the election has to work with for the fence to know of it. Its own requests must not pass
// the fence, or nobody could ever be elected.
func (f *Fence) Lock(inner resourcelock.Interface) resourcelock.Interface {
	return &lock{Interface: inner, fence: f}
}

// lock is used by the one goroutine that runs the election.
type lock struct {
	resourcelock.Interface
	fence *Fence
	// holder is who had the lease when it was last read.
	holder string
}

// Get remembers who holds the lease.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.holder = record.HolderIdentity
	}
	return record, raw, err
}

// Create takes a lease that nobody ever had. One that this process had and somebody deleted may have been another's since.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if !l.fence.admits(neverLed) {
		return l.refused("make the lease anew")
	}
	return l.write(ctx, record, l.Interface.Create)
}

// neverLed is no count of transitions, and so no term that could go on.
const neverLed = -1

// Update takes, renews or gives up the lease.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity != l.Identity() {
		return l.release(ctx, record)
	}
	if !l.fence.admits(record.LeaderTransitions) {
		return l.refused("take the lease a second time")
	}
	return l.write(ctx, record, l.Interface.Update)
}

// release closes the fence before the lease is free. client-go reads the lease right before it releases it, but does not
// look whose it is by then: a process that slept past its renewal would wipe out the new leader's.
func (l *lock) release(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.fence.end()
	if l.holder != l.Identity() {
		return l.refused("release the lease of " + l.holder)
	}
	return l.Interface.Update(ctx, record)
}

func (l *lock) write(ctx context.Context, record resourcelock.LeaderElectionRecord, send func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	began := l.fence.now()
	if err := send(ctx, record); err != nil {
		return err
	}
	l.fence.renew(record.LeaderTransitions, began)
	return nil
}

func (l *lock) refused(act string) error {
	return fmt.Errorf("%w %s: it may not %s", ErrFenced, l.Describe(), act)
}
