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

// leaseName is the name of the lease in the operator's namespace. Messages about the election use it too.
const leaseName = "kubeop-operator"

// elect sets the manager up for leader election with a fenced lease, and puts the fence in front of every write of its clients.
func elect(c *config.Operator, connection *rest.Config, events *leaseEvents, o *ctrl.Options) error {
	name, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("naming this operator: %w", err)
	}
	// The last sixth of the lease is for requests that are in flight when the fence closes.
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
	// The lock writes its own duration to the lease. The election's duration is how long the leader may stay without an answer.
	withoutAnswer := 2 * c.RenewDeadline
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = &withoutAnswer, &c.RenewDeadline, &c.RetryPeriod
	return nil
}

// Exit codes of an operator that must end: wentBack if Kubernetes was restored from a backup, failure for any other reason.
const (
	failure  = 1
	wentBack = 3
)

// exit ends this process at once. It must not write any more, and its state is outdated. The next process continues the work.
func exit(why error) {
	fmt.Fprintln(os.Stderr, "kubeop:", why)
	if errors.Is(why, fence.ErrWentBack) {
		os.Exit(wentBack)
	}
	os.Exit(failure)
}

// leaseEvents records events on the lease about the leader. The recorder is the manager's, which is created after the lock.
type leaseEvents struct{ recorder recorder.EventRecorder }

// Eventf implements resourcelock.EventRecorder.
func (l *leaseEvents) Eventf(lease runtime.Object, kind, reason, message string, args ...any) {
	l.recorder.Eventf(lease, nil, kind, reason, "Elect", message, args...)
}
