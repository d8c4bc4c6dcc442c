package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/fence"
)

// leaseName is the lease in the operator's namespace; it names the election to people as well.
const leaseName = "kubeop-operator"

// elect has the manager be elected by a lease that a fence watches, and puts the fence before every write of its clients.
// The connection must not have been used before.
func elect(c *config.Operator, connection *rest.Config, events *leaseEvents, o *ctrl.Options) error {
	name, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("naming this operator: %w", err)
	}
	// The last sixth of the lease is for what is still on its way when the fence closes.
	valid := c.LeaseDuration * 5 / 6
	// A renewal that hangs must leave time for another.
	own := rest.AddUserAgent(rest.CopyConfig(connection), "leader-election")
	own.Timeout = max(time.Second, valid/3)
	leases, err := coordinationv1client.NewForConfig(own)
	if err != nil {
		return fmt.Errorf("connecting for the election: %w", err)
	}
	f := fence.New(c.Namespace+"/"+leaseName, valid, fence.SystemClock(), exit)
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: c.Namespace, Name: leaseName},
		Client:     f.Leases(leases),
		LockConfig: resourcelock.ResourceLockConfig{Identity: name + "_" + uuid.NewString(), EventRecorder: events},
	}
	connection.Wrap(f.Transport)
	o.LeaderElection, o.LeaderElectionID = true, leaseName
	o.LeaderElectionReleaseOnCancel = true
	o.LeaderElectionResourceLockInterface = f.Lock(lock, c.LeaseDuration)
	// What the lease records is the lock's. To the election itself the lease is as long as the leader may stay without an answer.
	withoutAnswer := 2 * c.RenewDeadline
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = &withoutAnswer, &c.RenewDeadline, &c.RetryPeriod
	return nil
}

// Exit codes of an operator that has to end: wentBack where Kubernetes was restored from a backup, failure for anything else.
const (
	failure  = 1
	wentBack = 3
)

// exit ends this process at once: it may write nothing any more, and what it knows is of no use. The next one goes on with its work.
func exit(why error) {
	fmt.Fprintln(os.Stderr, "kubeop:", why)
	if errors.Is(why, fence.ErrWentBack) {
		os.Exit(wentBack)
	}
	os.Exit(failure)
}

// leaseEvents says on the lease who leads. The recorder is the manager's, which is made after the lock.
type leaseEvents struct{ recorder recorder.EventRecorder }

// Eventf implements resourcelock.EventRecorder.
func (l *leaseEvents) Eventf(lease runtime.Object, kind, reason, message string, args ...any) {
	l.recorder.Eventf(lease, nil, kind, reason, "Elect", message, args...)
}
