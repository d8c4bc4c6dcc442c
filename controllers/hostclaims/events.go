package hostclaims

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/own"
	"github.com/kubeop/kubeop/delivery/policy"
)

// Decided passes deletions of claims, claims that people made, and those of the platform, which has no Guardrails whose change would wake the app.
var Decided = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool {
		claim := e.Object.(*v1alpha1.HostnameClaim)
		return byHand(claim) || claim.Spec.Tenant == v1alpha1.PlatformTenant
	},
	UpdateFunc: func(event.UpdateEvent) bool { return false },
}

// RulesChanged passes changes of Guardrails, except those of host names, which Listed is about, and of signed images, for which an app looks itself.
var RulesChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.(*v1alpha1.Guardrails).Spec, e.ObjectNew.(*v1alpha1.Guardrails).Spec
		was.Hostnames, is.Hostnames, was.Signed, is.Signed = nil, nil, nil, nil
		return !equality.Semantic.DeepEqual(was, is)
	},
}

// OnDecided maps a claim that Decided passed to the apps that wait for its name, and to those that ask for it. One that a person made is also
// mapped to the apps of its project that wait for any name: it may allow theirs, below a wildcard of another tenant.
func (c *Claims) OnDecided(_ context.Context, o client.Object) (requests []reconcile.Request) {
	claim := o.(*v1alpha1.HostnameClaim)
	namespace := v1alpha1.ProjectNamespace(claim.Spec.Tenant, claim.Spec.Project)
	c.mu.Lock()
	defer c.mu.Unlock()
	for app, a := range c.apps {
		waits := slices.Contains(a.waits, claim.Name) || byHand(claim) && app.Namespace == namespace && len(a.waits) > 0
		if waits {
			a.freed++
		}
		if waits || slices.Contains(a.names, claim.Spec.Hostname) {
			requests = append(requests, reconcile.Request{NamespacedName: app})
		}
	}
	return requests
}

// OnListed maps Guardrails to the apps that wait until these have their host names.
func (c *Claims) OnListed(_ context.Context, rules client.Object) (requests []reconcile.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for app, a := range c.apps {
		if a.listing && app.Namespace == rules.GetNamespace() {
			requests = append(requests, reconcile.Request{NamespacedName: app})
		}
	}
	return requests
}

// Listed reports whether the Guardrails of a claim's project have its name, or cannot be read.
func (c *Claims) Listed(ctx context.Context, claim *v1alpha1.HostnameClaim) bool {
	rules := &v1alpha1.Guardrails{}
	namespace := v1alpha1.ProjectNamespace(claim.Spec.Tenant, claim.Spec.Project)
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1alpha1.GuardrailsName}, rules); err != nil {
		return !apierrors.IsNotFound(err)
	}
	return rules.Spec.Hostnames != nil && slices.Contains(rules.Spec.Hostnames.Names, claim.Spec.Hostname)
}

// ProjectOf maps a claim to its project.
func ProjectOf(_ context.Context, claim client.Object) []reconcile.Request {
	of := claim.(*v1alpha1.HostnameClaim).Spec
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: v1alpha1.HomeNamespace(of.Tenant), Name: of.Project}}}
}

// patience is how long a Helm action waits for the Guardrails, which mostly takes milliseconds. Then it fails, and is tried again.
const patience = 10 * time.Second

// Admit returns admit for a Helm action, which runs beside the Reconcile: with the objects that it accepts, it also claims their host names, and waits for
// the Guardrails. It is called for the manifests and then for the hooks of a chart.
func (c *Claims) Admit(ctx context.Context, owner own.Owner, admit func([]*unstructured.Unstructured) error) func([]*unstructured.Unstructured) error {
	ctx = context.WithoutCancel(ctx)
	var all []*unstructured.Unstructured
	return func(objects []*unstructured.Unstructured) error {
		if err := admit(objects); err != nil {
			return err
		}
		all = append(all, objects...)
		var err error
		_ = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
			err = c.Claim(ctx, owner, all)
			return !errors.As(err, new(*Pending)), nil
		})
		return err
	}
}

// Ended returns how a step ends in which Claim returned err. waited returns for how long the App has been waiting in a phase.
func Ended(err error, waited func(phase string) time.Duration) error {
	switch {
	case errors.As(err, new(*Pending)):
		return step.WaitQuietly(waited("host names"), step.Quiet, step.LastLook, err)
	case errors.As(err, new(*policy.Violation)):
		return step.Stop(v1alpha1.NotAllowedReason, err)
	}
	return err
}
