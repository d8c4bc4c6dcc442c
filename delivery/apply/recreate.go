package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/garbage"
	"github.com/kubeop/kubeop/delivery/metadata"
)

const (
	// goneWithin is how long a pass waits until a deleted object is gone. After that, a later pass creates it anew.
	goneWithin = 2 * time.Second
	// lookEvery is the time between two reads while waiting until an object exists or is gone.
	lookEvery = 100 * time.Millisecond
)

// workloads are kinds that are deleted in the foreground: their pods are gone before the new ones are created.
var workloads = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}: true, {Group: "apps", Kind: "StatefulSet"}: true, {Group: "apps", Kind: "DaemonSet"}: true,
	{Group: "apps", Kind: "ReplicaSet"}: true, {Group: "batch", Kind: "Job"}: true, {Group: "batch", Kind: "CronJob"}: true,
}

// immutable is a change that the API server refuses because the object exists.
type immutable struct {
	remedy string
	err    error
}

func (e *immutable) Error() string {
	return fmt.Sprintf("%s: %s", complaint(e.err), e.remedy)
}
func (e *immutable) Unwrap() error { return e.err }

// complaint returns the fields that an answer rejects, and its message about the last one, without their values: the API server repeats
// whole pod templates, including all values of environment variables.
func complaint(err error) string {
	var status apierrors.APIStatus
	var fields []string
	why := ""
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			if cause.Field != "" && !slices.Contains(fields, cause.Field) {
				fields = append(fields, cause.Field)
			}
			why = cause.Message
		}
	}
	if strings.HasPrefix(why, "Invalid value: ") {
		why = why[strings.LastIndex(why, ": ")+2:]
	}
	why, _, _ = strings.Cut(strings.TrimPrefix(why, "Forbidden: "), "\n")
	return fmt.Sprintf("%s cannot be changed (%s)", strings.Join(fields, ", "), why)
}

// takesClaims returns why deleting an object would delete claims, or "" if it would not. It would if claims with data name it as their
// owner, or if the live retention policy of a StatefulSet deletes them.
func (t *target) takesClaims(ctx context.Context) (string, error) {
	if !garbage.MayOwnClaims(t.kind().GroupKind()) {
		return "", nil
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(t.kind())
	if err := t.set.Client.Get(ctx, t.key(), live); err != nil {
		if metadata.Missing(err) {
			return "", nil
		}
		return "", fmt.Errorf("looking for claims that would go with it: %w", err)
	}
	if t.kind().GroupKind() == (schema.GroupKind{Group: "apps", Kind: "StatefulSet"}) {
		when, _, err := unstructured.NestedString(live.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
		if when == "Delete" || err != nil {
			return "its persistentVolumeClaimRetentionPolicy deletes its claims with it: set whenDeleted to Retain first, by itself, in Git", err
		}
	}
	owned, err := garbage.ClaimsByOwner(ctx, t.set.Client, t.key().Namespace)
	if names := owned[live.GetUID()]; len(names) > 0 {
		return fmt.Sprintf("it owns claims that hold data and would go with it: %s; %s", strings.Join(names, ", "), command.Disown(t.key().Namespace, names)), nil
	}
	return "", err
}

// recreate deletes an object that refuses a change and creates it anew, if the set says so and garbage.Recreatable allows it.
//
// A Helm release does the same in delivery/release/cluster, by the same decision, and differs where it must: Helm has its own force option
// per action, and also creates the object if it was deleted meanwhile; here, the next pass does that.
func (t *target) recreate(ctx context.Context, refused error) (metav1.Object, error) {
	err := t.set.Client.Create(ctx, t.object.DeepCopy(), client.DryRunAll)
	switch immutableFields, loss := garbage.Recreatable(t.kind().GroupKind(), err); {
	case !immutableFields || err == nil:
		return nil, refused
	case loss != "":
		return nil, &immutable{"force does not delete a " + t.object.GetKind() + ", because " + loss, refused}
	}
	switch takes, err := t.takesClaims(ctx); {
	case err != nil:
		return nil, err
	case takes != "":
		return nil, &immutable{"force does not delete a " + t.object.GetKind() + ", because " + takes, refused}
	}
	if !t.set.Force {
		return nil, &immutable{"set force: true to have it deleted and made anew, or give it another name, both in Git", refused}
	}
	if err := t.delete(ctx); err != nil {
		return nil, fmt.Errorf("%s, so it is made anew: %w", complaint(refused), err)
	}
	t.live = nil
	return t.patch(ctx, mustNotExist)
}

// delete deletes exactly this live object and waits up to goneWithin until it is gone.
func (t *target) delete(ctx context.Context) error {
	live, err := metadata.Read(ctx, t.set.Client, t.kind(), t.key())
	if live == nil || err != nil {
		return err
	}
	t.live = live
	if err := t.claim(); err != nil {
		return err
	}
	uid, policy := live.GetUID(), metav1.DeletePropagationBackground
	if workloads[t.kind().GroupKind()] {
		policy = metav1.DeletePropagationForeground
	}
	err = t.set.Client.Delete(ctx, t.reference(), client.Preconditions{UID: &uid}, client.PropagationPolicy(policy))
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, lookEvery, goneWithin, true, func(ctx context.Context) (bool, error) {
		now, err := metadata.Read(ctx, t.set.Client, t.kind(), t.key())
		return now == nil || now.GetUID() != uid, err
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("the old one is not gone yet: %w", ErrPending)
	}
	return err
}
