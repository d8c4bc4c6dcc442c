package release

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/digest"
	"github.com/kubeop/kubeop/delivery/release/charts"
	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/fence"
)

// Request is a release as it should be. The Engine keeps it until the action it starts has ended; it must not be changed.
type Request struct {
	// App is the object the release belongs to; Notify gets it. No two apps share a release.
	App types.NamespacedName
	// Tenant whose share of the workers and of evaluations its actions take, in whatever namespace. Empty: the
	// App's namespace has a share of its own.
	Tenant string
	// Name and Namespace of the release. Its records are Secrets of that namespace.
	Name, Namespace string
	// User is impersonated for everything, such as "system:serviceaccount:team:kubeop-deployer".
	User string

	// Input is what is released. Another input makes another revision.
	Input Input
	// Actions say how it is installed, upgraded, tested, remediated and uninstalled. A change of them alone makes no revision,
	// but an input that failed or is held is tried again when its install, upgrade or tests are to be done otherwise.
	Actions v1alpha1.HelmActions
	// Timeout of the action's hooks, each, where Actions name none. Default 5 minutes.
	Timeout time.Duration
	// Ignore names fields that others may change: a change of theirs is no drift.
	Ignore []v1alpha1.IgnoreRule
	// Policy decides what the release may hold and what may be deleted.
	Policy Policy
	// Recorded is what the caller knows of the deployed revision.
	Recorded Recorded
	// Manual is what a person requests.
	Manual Manual
	// Sensitive strings, such as values taken from Secrets, are masked in every error.
	Sensitive []string

	// fence goes round every request of an action, seal is that of the Options.
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
	// PostRenderers change what was rendered, hooks included, in order; CommonMetadata is then put on it; then Policy.Admit sees it.
	PostRenderers  []v1alpha1.PostRenderer
	CommonMetadata *v1alpha1.CommonMetadata
}

// Policy is what decides about a release outside Helm. Its functions are called while an action runs, after Reconcile has returned.
type Policy struct {
	// Admit checks the rendered objects and stamps them in place: first all manifests, then all hooks, Lists flattened. Its
	// error stops the action before anything is written and comes back in a *NotAllowed.
	Admit func([]*unstructured.Unstructured) error
	// Refused reports that an error of Admit is a refusal, for which only another input helps. After any other error the
	// attempt is made again. Nil: all are refusals but those of the network and of an API server that is away.
	Refused func(error) bool
	// Weigh is called before a revision is recorded, but for one of a rollback, with the size of its manifests and of as many records as are
	// kept, in bytes. Its error is a refusal, as one of Admit is. Nil: all sizes are allowed.
	Weigh func(bytes int64) error
	// Allowance identifies what Admit and Weigh allow, where that is up to more than the input: what failed is tried again with another one.
	Allowance string
	// Retry is the pause after so many failed attempts (1 or more) at this very input. Nil: it is not tried again.
	Retry func(attempts int) time.Duration
	// Owned names, for each object of the namespace that owns claims with data, those claims, as they are now. Kubernetes would delete
	// them with the object, so no action deletes it. When a person has confirmed their deletion, it names none.
	Owned func(context.Context) (map[types.UID][]string, error)
}

// Recorded is what the caller has recorded of the deployed revision; zero for nothing.
type Recorded struct {
	// Revision whose objects are recorded, and Content the Deployed.Content it came with, without which the number may be
	// that of another installation.
	Revision int
	Content  string
	// Proven: the revision was seen healthy and, where tests are run, they succeeded. A rollback returns only to a revision that was
	// reported proven before the next one was deployed.
	Proven bool
	// Unmoved reports that the live object is for certain as the engine last left it. Nil: nothing is known.
	Unmoved func(*unstructured.Unstructured) bool
}

// Manual is what a person requests by annotations.
type Manual struct {
	// Force upgrades a release that is settled or held. Reset counts the failures of this input as none and lifts its hold.
	// Set them until Outcome.Accepted.
	Force, Reset bool
	// ID identifies the request; it is required with Force and Reset. What was accepted once is not done again, also not by
	// another process.
	ID string
}

func (r *Request) key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}

// tenant is the one whose share of the workers and of evaluations the release's actions take.
func (r *Request) tenant() string { return cmp.Or(r.Tenant, r.App.Namespace) }

// knows is whether the caller has recorded this very revision.
func (r *Request) knows(v *decide.Revision) bool {
	return v.Number == r.Recorded.Revision && r.seal.Of(v.Content) == r.Recorded.Content
}

// proven is whether the caller saw this very revision to be good.
func (r *Request) proven(v *decide.Revision) bool { return r.Recorded.Proven && r.knows(v) }

func (r *Request) timeout() time.Duration {
	if r.Timeout <= 0 {
		return cluster.DefaultTimeout
	}
	return r.Timeout
}

// longest is the longest that an action may take between two signs of life.
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

// check holds what would else fail dangerously: without a user the operator itself would act.
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
	case (r.Manual.Force || r.Manual.Reset) && r.Manual.ID == "":
		return errors.New("the release is to be forced or reset, and Manual.ID does not say for which request")
	}
	return nil
}

// renderVersion is part of every digest. Raise it when the same input makes other objects than before.
const renderVersion = 2

// digests name the input of a release, of which equal ones need no action, and the trial: the input and how it is to be
// installed, upgraded and tested, and what is let through, of which one that failed is worth no second look.
func (r *Request) digests() (digest, trial string, err error) {
	if r.Input.Chart.Digest == "" {
		return "", "", errors.New("the chart has no digest")
	}
	values := r.Input.Values
	if values == nil {
		values = map[string]any{}
	}
	input, err := json.Marshal(struct {
		Render      int
		Chart, Name string
		Values      map[string]any
		Files       []string                 `json:",omitempty"`
		Renderers   []v1alpha1.PostRenderer  `json:",omitempty"`
		Common      *v1alpha1.CommonMetadata `json:",omitempty"`
	}{renderVersion, r.Input.Chart.Digest, r.Name, values, r.Input.ValuesFiles, r.Input.PostRenderers, r.Input.CommonMetadata})
	if err != nil {
		return "", "", fault.Render(fmt.Errorf("reading the values: %w", err))
	}
	digest = decide.Digest(input)
	how, err := json.Marshal(v1alpha1.HelmActions{
		Wait: r.Actions.Wait, Install: r.Actions.Install, Upgrade: r.Actions.Upgrade, Test: r.Actions.Test,
	})
	if err != nil {
		return "", "", fmt.Errorf("reading the actions: %w", err)
	}
	return digest, decide.Digest(append([]byte(digest+r.Policy.Allowance), how...)), nil
}
