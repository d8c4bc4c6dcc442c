package fence

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Lock returns the resource lock that leader election must use, so that the fence sees each renewal. The lock's own requests must bypass
// the fence, or no operator could be elected. duration is written to the lease: other replicas wait that long after the last renewal, in
// whole seconds. The election's own times may be longer; it then continues to renew after that.
func (f *Fence) Lock(inner resourcelock.Interface, duration time.Duration) resourcelock.Interface {
	return &lock{Interface: inner, fence: f, duration: duration}
}

// lock is used only by the goroutine of the election.
type lock struct {
	resourcelock.Interface
	fence    *Fence
	duration time.Duration
	// holder is the holder of the lease when it was last read.
	holder string
	// unanswered is when the API server last did not answer a request, or nil.
	unanswered *Instant
}

// Get records the lease's holder. A leader that finds another holder has lost the lease.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	l.noteAnswer(err)
	if err != nil {
		return record, raw, err
	}
	l.holder = record.HolderIdentity
	if l.holder != l.Identity() && l.fence.leads() {
		l.fence.lose(fmt.Errorf("%w: %s holds the lease %s", ErrLost, named(l.holder), l.Describe()))
	}
	return record, raw, nil
}

func named(holder string) string {
	if holder == "" {
		return "nobody"
	}
	return holder
}

// noteAnswer records an error that means that the API server did not answer.
func (l *lock) noteAnswer(err error) {
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
		now := l.fence.now()
		l.unanswered = &now
		l.fence.doubt()
	}
}

// Create creates a lease. If this process had a lease before that was deleted, another operator may have held it since.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if !l.fence.admits(neverLed) {
		if l.fence.leads() {
			l.fence.lose(fmt.Errorf("%w: the lease %s is gone: it was deleted, or Kubernetes was restored from a backup without it", ErrLost, l.Describe()))
		}
		return l.refused("make the lease anew")
	}
	return l.write(ctx, record, l.Interface.Create)
}

// neverLed is not a valid count of transitions, so no term matches it.
const neverLed = -1

// Update acquires, renews or releases the lease.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity != l.Identity() {
		return l.release(ctx, record)
	}
	if !l.fence.admits(record.LeaderTransitions) {
		if l.fence.leads() {
			l.fence.lose(fmt.Errorf("%w: others held the lease %s meanwhile", ErrLost, l.Describe()))
		}
		return l.refused("take the lease a second time")
	}
	if !l.fence.leads() && l.tooSoon() {
		return l.refused("take the lease of " + named(l.holder) + ", which could not renew it while the API server did not answer")
	}
	return l.write(ctx, record, l.Interface.Update)
}

// tooSoon reports whether the holder needs more time to renew its lease. If this process got no answer, the holder probably got none
// either.
func (l *lock) tooSoon() bool {
	if l.holder == "" || l.holder == l.Identity() || l.unanswered == nil {
		return false
	}
	return l.fence.now().Running-l.unanswered.Running < l.duration
}

// release closes the fence before the lease is released. client-go reads the lease before it releases it, but does not check the holder. A
// process that slept past its renewal would release the new leader's lease.
func (l *lock) release(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.fence.end()
	if l.holder != l.Identity() {
		return l.refused("release the lease of " + named(l.holder))
	}
	return l.Interface.Update(ctx, record)
}

func (l *lock) write(ctx context.Context, record resourcelock.LeaderElectionRecord, send func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	began := l.fence.now()
	record.LeaseDurationSeconds = int(l.duration / time.Second)
	err := send(ctx, record)
	l.noteAnswer(err)
	if err != nil {
		return err
	}
	l.fence.renew(record.LeaderTransitions, began)
	return nil
}

func (l *lock) refused(act string) error {
	return fmt.Errorf("%w %s: it may not %s", ErrFenced, l.Describe(), act)
}
