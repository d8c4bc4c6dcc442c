package release

import (
	"cmp"
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/digest"
	"github.com/kubeop/kubeop/delivery/release/charts"
	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fence"
)

// Request is the desired release. The Engine keeps it until the action that it starts has ended; do not change it.
type Request struct {
	// App is the object the release belongs to; Notify gets it. No two apps share a release.
	App types.NamespacedName
	// Tenant is the tenant whose share of workers and evaluations the actions use, in any namespace. Empty: the App's namespace has its own
	// share.
	Tenant string
	// Name and Namespace of the release. Its records are Secrets of that namespace.
	Name, Namespace string
	// User is impersonated for everything, such as "system:serviceaccount:team:kubeop-deployer".
	User string

	// Input is what is released. Another input makes another revision.
	Input Input
	// Actions say how to install, upgrade, test, remediate and uninstall. Changing them alone makes no revision, but an input that failed
	// or is held is tried again when its install, upgrade or tests change.
	Actions v1alpha1.HelmActions
	// Timeout of each hook, where Actions set none. Default 5 minutes.
	Timeout time.Duration
	// Ignore names fields that others may change; such a change is not drift.
	Ignore []v1alpha1.IgnoreRule
	// Policy decides what the release may hold and what may be deleted.
	Policy Policy
	// Recorded is what the caller knows of the deployed revision.
	Recorded Recorded
	// Manual is what a person requested.
	Manual Manual
	// Sensitive strings, such as values taken from Secrets, are masked in every error.
	Sensitive []string

	// fence wraps every request of an action; seal is Options.Seal.
	fence *fence.Fence
	seal  digest.Seal
}

// Input is what is released.
type Input struct {
	// Chart and Values to release. Values are merged over those of ValuesFiles, and these over the chart's own.
	Chart  charts.Chart
	Values map[string]any
	// ValuesFiles are files of the chart, merged in order.
	ValuesFiles []string
	// PostRenderers change what was rendered, hooks included, in order. Then CommonMetadata is added, then Policy.Admit is called.
	PostRenderers  []v1alpha1.PostRenderer
	CommonMetadata *v1alpha1.CommonMetadata
	Admission      string // Identifies how Policy.Admit changes objects, if not as usual.
}

// Policy is what kubeop decides about a release. Its functions are called while an action runs, after Reconcile has returned.
type Policy struct {
	// Admit checks the rendered objects and adds kubeop's labels in place: first all manifests, then all hooks, Lists flattened. Its error
	// stops the action before anything is written and is returned in a *NotAllowed.
	Admit func([]*unstructured.Unstructured) error
	// Refused reports whether an error of Admit is a refusal, so that only another input helps. After any other error the attempt is
	// repeated.
	Refused func(error) bool
	// Weigh is called before a revision is recorded, except by a rollback, with the size in bytes of its manifests and of as many records
	// as are kept. Its error is a refusal like one of Admit. Nil: all sizes are allowed.
	Weigh func(bytes int64) error
	// Allowance identifies what Admit and Weigh allow, if that depends on more than the input. When it changes, a failed input is tried
	// again.
	Allowance string
	// Mended ends the pause after a failure before it, because what was missing is there. Zero ends none.
	Mended time.Time
	// Retry returns the pause after that many failed attempts (1 or more) at the same input. Nil: no retry.
	Retry func(attempts int) time.Duration
	// Owned lists the claims with data that objects of the namespace own now, by the UID of the owner. Kubernetes would delete these claims
	// with their owner, so no action deletes the owner. It lists none once a person has confirmed their deletion.
	Owned func(context.Context) (map[types.UID][]string, error)
}

// Recorded is what the caller has recorded of the deployed revision; zero for nothing.
type Recorded struct {
	// Revision is the revision whose objects are recorded, and Content its Deployed.Content. Without Content the number may be of another
	// installation.
	Revision int
	Content  string
	// Proven: the revision was seen healthy and, if there are tests, they succeeded. A rollback returns only to a revision that was
	// reported proven before the next one was deployed.
	Proven bool
	// Unmoved reports that the live object has certainly not changed since the engine wrote it. Nil: unknown.
	Unmoved func(*unstructured.Unstructured) bool
}

// Manual is what a person requested by annotations.
type Manual struct {
	// Force upgrades a release that is settled or held. Reset sets the failure count of this input to zero and ends its hold. Set them
	// until Outcome.Accepted.
	Force, Reset bool
	// ID identifies the request; it is required with Force and Reset. A request that was accepted is not carried out again, not even by
	// another process.
	ID string
}

func (r *Request) key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}

// platform reports whether the release is of an app of the platform itself.
func (r *Request) platform() bool { return r.Tenant == v1alpha1.PlatformTenant }

// tenant returns the tenant whose share of workers and evaluations the release's actions use.
func (r *Request) tenant() string { return cmp.Or(r.Tenant, r.App.Namespace) }

// knows reports whether the caller has recorded this very revision.
func (r *Request) knows(v *decide.Revision) bool {
	return v.Number == r.Recorded.Revision && r.seal.Of(v.Content) == r.Recorded.Content
}

// proven reports whether the caller saw this very revision healthy.
func (r *Request) proven(v *decide.Revision) bool { return r.Recorded.Proven && r.knows(v) }

func (r *Request) timeout() time.Duration {
	if r.Timeout <= 0 {
		return cluster.DefaultTimeout
	}
	return r.Timeout
}

// longest returns the longest time between two writes of an action to its record.
func (r *Request) longest() time.Duration {
	longest := r.timeout()
	a := r.Actions
	for _, own := range []*metav1.Duration{a.Install.Timeout, a.Upgrade.Timeout, a.Uninstall.Timeout, a.Test.Timeout} {
		if own != nil {
			longest = max(longest, own.Duration)
		}
	}
	return longest
}

// check refuses a request that would be dangerous: without a user, for example, the operator itself would act.
func (r *Request) check() error {
	switch {
	case r.Name == "" || r.Namespace == "":
		return errors.New("the release has no name or namespace")
	case r.User == "":
		return errors.New("the release has no user to impersonate")
	case r.Policy.Owned == nil:
		return errors.New("the release does not know what owns claims")
	case r.Policy.Admit == nil:
		return errors.New("the release has no admission")
	case r.Policy.Refused == nil:
		return errors.New("the release does not know which errors of admission are refusals")
	case (r.Manual.Force || r.Manual.Reset) && r.Manual.ID == "":
		return errors.New("the release is to be forced or reset, and Manual.ID does not say for which request")
	}
	return nil
}

// renderVersion is part of every digest. Raise it when the same input makes other objects than before.
const renderVersion = 2
