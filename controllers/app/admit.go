package app

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/pod-security-admission/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/hook"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/own"
	"github.com/kubeop/kubeop/delivery/podsecurity"
	"github.com/kubeop/kubeop/delivery/policy"
)

// admitter refuses objects that an App may not have, and makes the others the App's.
type admitter struct {
	clients *kube.Clients
	tenants Tenants
	// podSecurity is the version of the Pod Security checks that the API server makes.
	podSecurity api.Version

	// retained are the StatefulSets of which an event was last sent, see volumeFacts.
	retained subject.Memory[string]
	// filled is what was filled in for Pod Security by the last action of a release, which runs beside the Reconcile.
	filled subject.Memory[atomic.Pointer[[]string]]
}

// admission is what was found out when the objects of an App were checked.
type admission struct {
	// bytes is the size of what the App delivers, as far as this process counted it.
	bytes int64
	// filled is what was filled in for Pod Security; nil: not known to this process.
	filled *[]string
}

// admit checks the objects of an App.
func (a *admitter) admit(_ context.Context, s *scope) error {
	size := budget.Size(s.objects)
	made, err := a.own(s, s.objects)
	s.volumes.retained = made.retained
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
		return step.Fail(v1alpha1.NotAllowedReason, err)
	}
	return err
}

// admitHook returns the function that checks the Job of a hook.
func (a *admitter) admitHook(s *scope) hook.Admit {
	return func(job *unstructured.Unstructured) error {
		_, err := a.own(s, []*unstructured.Unstructured{job})
		if refused(err) {
			return step.Stop(v1alpha1.NotAllowedReason, err)
		}
		return err
	}
}

// admitRendered returns the function that checks what a chart renders. An action calls it beside the Reconcile, for manifests and then for
// hooks.
func (a *admitter) admitRendered(s *scope) func([]*unstructured.Unstructured) error {
	report := a.filled.Get(s.App)
	var filled []string
	return func(objects []*unstructured.Unstructured) error {
		made, err := a.own(s, objects)
		filled = append(filled, made.filled...)
		listed := podsecurity.Listed(filled)
		report.Store(&listed)
		return err
	}
}

// stamped is how objects were changed when they became an App's.
type stamped struct {
	// retained are the StatefulSets that are changed so that they keep their claims, and filled what was filled in for Pod Security.
	retained, filled []string
}

// own checks objects, completes their pods for the Pod Security level of the namespace, and stamps them with their owner.
func (a *admitter) own(s *scope, objects []*unstructured.Unstructured) (made stamped, err error) {
	if err := s.Limits.App.Check(objects); err != nil {
		return made, err
	}
	scope := policy.WithDefinitions(objects, a.clients.Namespaced)
	if err := policy.Check(objects, a.bounds(s), scope); err != nil {
		return made, err
	}
	made.filled = podsecurity.Fill(objects, s.Fill)
	if err := (podsecurity.Judge{Level: s.PodSecurity, Version: a.podSecurity, Tenant: s.Owner.Tenant}).Check(objects); err != nil {
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

// bounds are where the App may have objects, and of which kinds.
func (a *admitter) bounds(s *scope) policy.Bounds {
	bounds := policy.Bounds{Namespace: s.Owner.Namespace, ClusterKinds: s.ClusterKinds}
	if s.Owner.Tenant == v1alpha1.PlatformTenant {
		deployers := a.clients.Deployers
		bounds.Platform = &policy.Platform{ClusterWide: deployers.PlatformApps == kube.PlatformAppsClusterAdmin, Operator: deployers.Operator}
	}
	return bounds
}

// refused reports whether only a change of the source can help. The definition of an unknown kind may be on its way.
func refused(err error) bool {
	return errors.As(err, new(*budget.Exceeded)) || errors.As(err, new(*policy.Violation)) && !policy.OnlyUnknownKinds(err)
}

// weigh returns the function that counts what the App delivers, in bytes, and refuses what is too much for the tenant; Helm calls it before it
// records a revision.
func (a *admitter) weigh(s *scope) func(int64) error {
	tenant, app, limit := s.Owner.Tenant, s.Key(), s.Limits.RenderedBytes
	return func(bytes int64) error { return a.tenants.Rendered.Admit(tenant, app, bytes, limit) }
}

// allowance changes when the Pod Security level or the tenant's limits change, or when space became free after a refusal. It is part of the
// trial's digest.
func (a *admitter) allowance(s *scope) string {
	_, woken := a.tenants.Rendered.LastAdmitted(s.Key())
	usual := &a.tenants.Limits
	if s.Limits.App == usual.App && s.Limits.RenderedBytes == usual.RenderedBytes && woken == 0 {
		return s.PodSecurity
	}
	return fmt.Sprint(s.PodSecurity, s.Limits.App, s.Limits.RenderedBytes, woken)
}

// explained adds to what the API server refused who may allow it: rights that a role grants, or that a quota is lower than the project's own
// and why.
func (a *admitter) explained(s *scope, err error) error {
	err = policy.Ungranted(err)
	if !apply.OverQuota(err) || !a.tenants.Store.Lowered(s.Owner.Tenant, s.App.Namespace) {
		return err
	}
	return fmt.Errorf("%w; this quota is lower than the project's own, because all objects of tenant %s may take %s of the API server's store, each counted as "+
		"large as it may be: remove some in any project, or ask an administrator of the cluster for more with spec.limits.%s of the Tenant",
		err, s.Owner.Tenant, budget.StoreBytes.Text(s.Limits.StoreBytes), budget.StoreBytes.Name)
}

// admission is that with which a Reconcile begins.
func (a *admitter) admission(app *v1alpha1.App) admission {
	bytes, _ := a.tenants.Rendered.LastAdmitted(client.ObjectKeyFromObject(app))
	return admission{bytes, a.filled.Get(app).Load()}
}

// volumes are the facts with which a Reconcile begins.
func (a *admitter) volumes(app *v1alpha1.App) volumeFacts {
	return volumeFacts{lastRetained: a.retained.Get(app)}
}

// Forget drops what is known of an App.
func (a *admitter) Forget(app *v1alpha1.App) {
	a.retained.Forget(app)
	a.filled.Forget(app)
}
