package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/pod-security-admission/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/hook"
	"github.com/kubeop/kubeop/controllers/app/notice"
	"github.com/kubeop/kubeop/controllers/app/source"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/hostclaims"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/own"
	"github.com/kubeop/kubeop/delivery/podsecurity"
	"github.com/kubeop/kubeop/delivery/policy"
	"github.com/kubeop/kubeop/delivery/targetnamespace"
)

// admitter refuses objects that an App may not have, and stamps the other objects with the App as their owner.
type admitter struct {
	clients *kube.Clients
	tenants Tenants
	sources *source.Fetcher
	// podSecurity is the Kubernetes version of the Pod Security checks that the API server enforces.
	podSecurity api.Version

	// retained names the StatefulSets that the last event about retained claims listed, see notice.Volumes.
	retained subject.Memory[string]
	// rendered is what the check of the last rendered chart found. Actions run beside the Reconcile.
	rendered subject.Memory[atomic.Pointer[findings]]
	noticed  notice.Counter
}

// admission is the result of checking the objects of an App.
type admission struct {
	// bytes is the size of the objects that the App delivers; 0 if this process has not counted them.
	bytes int64
	// filled is what was filled in for Pod Security. broken are the rules of policies that objects break. Each is nil if this process does not
	// know.
	filled *[]string
	broken *[]policy.Notice
}

// findings are what the check of a rendered chart found, as in admission.
type findings struct {
	filled []string
	broken []policy.Notice
}

// admit checks the objects of an App.
func (a *admitter) admit(ctx context.Context, s *scope) error {
	objects, err := a.retarget(s, s.objects)
	if err != nil {
		return err
	}
	s.objects = objects
	if err := a.sources.Verify(ctx, s.Subject, s.objects); err != nil {
		return err
	}
	size := budget.Size(s.objects)
	made, err := a.own(s, s.objects)
	err = policy.Located(err, s.found.PlacesFor(s.App))
	s.volumes.Retained = made.retained
	made.broken = slices.Concat(s.found.Broken, made.broken)
	s.admitted.broken = &made.broken
	a.noticed.Count(s.App, made.broken)
	if err == nil {
		filled := podsecurity.Listed(made.filled)
		s.admitted.filled = &filled
		if err = a.weigh(s)(size); err == nil {
			s.admitted.bytes = size
		}
	}
	switch {
	case errors.As(err, new(*budget.Exceeded)):
		return step.Stop(v1alpha1.TooLargeReason, err)
	case refused(err):
		return step.Stop(v1alpha1.NotAllowedReason, err)
	case policy.OnlyUnknownKinds(err):
		a.sources.Queue.AwaitKinds(s.Key())
		return step.Fail(v1alpha1.NotAllowedReason, err)
	}
	return err
}

// claim claims the host names of the App's objects.
func (a *admitter) claim(ctx context.Context, s *scope) error {
	return hostclaims.Ended(a.tenants.Hosts.Claim(ctx, s.Owner, s.objects), s.Waited)
}

// admitHook returns the function that checks the Job of a hook.
func (a *admitter) admitHook(ctx context.Context, s *scope) hook.Admit {
	return func(job *unstructured.Unstructured) error {
		err := a.sources.Verify(ctx, s.Subject, append([]*unstructured.Unstructured{job}, s.objects...))
		if err != nil {
			return err
		}
		_, err = a.own(s, []*unstructured.Unstructured{job})
		if refused(err) {
			return step.Stop(v1alpha1.NotAllowedReason, err)
		}
		return err
	}
}

// admitRendered returns the function that checks what a chart renders. A Helm action, which runs beside the Reconcile, calls it for the
// manifests and then for the hooks.
func (a *admitter) admitRendered(ctx context.Context, s *scope) func([]*unstructured.Unstructured) error {
	report := a.rendered.Get(s.App)
	found := stamped{broken: slices.Clip(s.found.Broken)}
	beside := *s
	beside.Subject = s.Apart()
	s = &beside
	var all []*unstructured.Unstructured
	return func(objects []*unstructured.Unstructured) error {
		all = append(all, objects...)
		if err := a.sources.AwaitVerified(ctx, s.Subject, all); err != nil {
			return err
		}
		// A Namespace object cannot be left out here. It is refused.
		if _, err := a.retarget(s, objects); err != nil {
			return err
		}
		made, err := a.own(s, objects)
		found.filled, found.broken = append(found.filled, made.filled...), append(found.broken, made.broken...)
		report.Store(&findings{podsecurity.Listed(found.filled), slices.Clone(found.broken)})
		return err
	}
}

// retarget moves the objects into the App's targetNamespace. It returns them without the namespaces that they replace.
func (a *admitter) retarget(s *scope, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if s.App.Spec.TargetNamespace == "" {
		return objects, nil
	}
	return targetnamespace.Set(objects, s.App.Spec.TargetNamespace, policy.WithDefinitions(objects, a.clients.Namespaced))
}

// stamped is how own changed the objects.
type stamped struct {
	// retained names the StatefulSets that were changed to keep their claims. filled is what was filled in for Pod Security.
	retained, filled []string
	// broken are the rules of policies that objects break, whatever their action.
	broken []policy.Notice
}

// own checks objects, completes their pods for the Pod Security level of the namespace, and stamps them with their owner.
func (a *admitter) own(s *scope, objects []*unstructured.Unstructured) (made stamped, err error) {
	if err := s.Limits.App.Check(objects); err != nil {
		return made, err
	}
	scope := policy.WithDefinitions(objects, a.clients.Namespaced)
	err = policy.Check(objects, a.bounds(s), scope)
	if err != nil && !errors.As(err, new(*policy.Violation)) {
		return made, err
	}
	guardrails.Default(objects, s.Guardrails)
	guardrails.Mark(objects, s.Guardrails)
	judge := podsecurity.Judge{Level: s.PodSecurity, Version: a.podSecurity, Tenant: s.Owner.Tenant}.Under(s.Guardrails)
	made.broken = append(policy.Judge(objects, s.Guardrails, a.sources.Unsigned(s.App), s.Usual), judge.Notices(objects, s.Guardrails, s.App.Spec.PodSecurity.Fill)...)
	err = policy.Join(err, policy.Refusal(made.broken))
	made.filled = podsecurity.Fill(objects, s.Fill)
	// One refusal lists all faults, so that one push can correct them.
	if err := policy.Join(err, judge.Check(objects)); err != nil && a.tenants.Hosts.Judges(s.Owner.Tenant) {
		return made, err
	}
	s.Owner.Stamp(objects)
	made.retained = own.Retain(objects, s.App)
	for _, o := range objects {
		if namespaced, err := scope(o.GroupVersionKind()); err == nil && !namespaced {
			o.SetNamespace("")
		}
	}
	return made, nil
}

// bounds are the namespaces and kinds in which the App may have objects.
func (a *admitter) bounds(s *scope) policy.Bounds {
	bounds := policy.Bounds{
		Namespace: s.Owner.Namespace, ClusterKinds: s.ClusterKinds, Taints: s.Taints, IngressAnnotations: s.IngressAnnotations, CSIDrivers: s.CSIDrivers,
		PriorityClasses: s.PriorityClasses, GracePeriod: s.GracePeriod, NetworkPolicies: guardrails.OwnNetworkPolicies(s.Guardrails), ExternalNames: guardrails.ExternalNames(s.Guardrails), ExternalIPs: guardrails.ExternalIPs(s.Guardrails),
	}
	if s.OfPlatform() {
		deployers := a.clients.Deployers
		bounds.Platform = &policy.Platform{ClusterWide: deployers.PlatformApps == kube.PlatformAppsClusterAdmin, Operator: deployers.Operator}
	}
	return bounds
}

// refused reports whether only a change of the source can help. An unknown kind does not count: its CustomResourceDefinition may be created
// later.
func refused(err error) bool {
	return errors.As(err, new(*budget.Exceeded)) || errors.As(err, new(*policy.Violation)) && !policy.OnlyUnknownKinds(err)
}

// weigh returns the function that counts the size of what the App delivers, in bytes, and refuses what exceeds the tenant's limit. Helm
// calls it before it records a revision.
func (a *admitter) weigh(s *scope) func(int64) error {
	tenant, app, limit := s.Owner.Tenant, s.Key(), s.Limits.RenderedBytes
	return func(bytes int64) error { return a.tenants.Rendered.Admit(tenant, app, bytes, limit) }
}

// allowance is a text that changes with the Pod Security level, the tenant's limits, its cluster kinds, what its pods and Ingresses may have, the policies, and when
// space or a host name became free or an image was signed after a refusal. It is part of the trial's digest, so that a refused input is tried again.
func (a *admitter) allowance(ctx context.Context, s *scope) string {
	_, woken := a.tenants.Rendered.LastAdmitted(s.Key())
	return fmt.Sprint(s.PodSecurity, s.Limits.App, s.Limits.RenderedBytes, woken, s.ClusterKinds, s.Exceptions, guardrails.ExternalNames(s.Guardrails), guardrails.ExternalIPs(s.Guardrails), notice.Denied(s.Guardrails), a.tenants.Hosts.Freed(s.Key()), a.sources.SignedLater(ctx, s.Subject))
}

// explained adds to a refusal by the API server who can help: who grants the missing right, or why the quota is lower than the project's
// own.
func (a *admitter) explained(s *scope, err error) error {
	err = policy.Ungranted(err)
	if !apply.OverQuota(err) || !a.tenants.Store.Lowered(s.Owner.Tenant, s.App.Namespace) {
		return err
	}
	return fmt.Errorf("%w; this quota is lower than the project's own, because all objects of tenant %s may take %s of the API server's store, each counted as "+
		"large as it may be: remove some in any project, or ask an administrator of the cluster for more with %s",
		err, s.Owner.Tenant, budget.StoreBytes.Text(s.Limits.StoreBytes), command.OfTenant("spec.limits."+budget.StoreBytes.Name))
}

// admission returns what earlier Reconciles of this process found out.
func (a *admitter) admission(app *v1alpha1.App) admission {
	bytes, _ := a.tenants.Rendered.LastAdmitted(client.ObjectKeyFromObject(app))
	found := a.rendered.Get(app).Load()
	if found == nil {
		return admission{bytes: bytes}
	}
	a.noticed.Count(app, found.broken)
	return admission{bytes, &found.filled, &found.broken}
}

// volumes returns what earlier Reconciles of this process found out.
func (a *admitter) volumes(app *v1alpha1.App) notice.Volumes {
	return notice.Volumes{LastRetained: a.retained.Get(app)}
}

// Forget drops the state of an App.
func (a *admitter) Forget(app *v1alpha1.App) {
	a.retained.Forget(app)
	a.rendered.Forget(app)
	a.noticed.Forget(app)
}
