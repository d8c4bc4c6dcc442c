package main

import (
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
	// A renewal that hangs must leave time for another within the deadline.
	own := rest.AddUserAgent(rest.CopyConfig(connection), "leader-election")
	own.Timeout = max(time.Second, c.RenewDeadline/2)
	leases, err := coordinationv1client.NewForConfig(own)
	if err != nil {
		return fmt.Errorf("connecting for the election: %w", err)
	}
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: c.Namespace, Name: leaseName},
		Client:     leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: name + "_" + uuid.NewString(), EventRecorder: events},
	}
	// Who runs gives up by the deadline, before the fence closes; the rest of the lease is for what is still on its way.
	margin := (c.LeaseDuration - c.RenewDeadline) / 2
	f := fence.New(lock.Describe(), c.LeaseDuration-margin, fence.SystemClock())
	connection.Wrap(f.Transport)
	o.LeaderElection, o.LeaderElectionID = true, leaseName
	o.LeaderElectionReleaseOnCancel = true
	o.LeaderElectionResourceLockInterface = f.Lock(lock)
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = &c.LeaseDuration, &c.RenewDeadline, &c.RetryPeriod
	return nil
}

// leaseEvents says on the lease who leads. The recorder is the manager's, which is made after the lock.
type leaseEvents struct{ recorder recorder.EventRecorder }

// Eventf implements resourcelock.EventRecorder.
func (l *leaseEvents) Eventf(lease runtime.Object, kind, reason, message string, args ...any) {
	l.recorder.Eventf(lease, nil, kind, reason, "Elect", message, args...)
}
