// Package dependency waits until the dependencies of Apps (spec.dependsOn) are ready, and knows which Apps depend on an object.
package dependency

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/references"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/expr"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/kube"
)

// maxNamed is how many dependencies a message names.
const maxNamed = 3

// byExpression marks references to Apps and Projects whose readiness is decided by an expression.
const byExpression = " by expression"

// Checker checks whether dependencies are ready.
type Checker struct {
	Client  client.Reader
	Clients *kube.Clients
	Watch   *kube.Watch

	// dependents indexes the Apps that depend on an object, by group and kind.
	dependents references.Index
	compiled   subject.Memory[compiled]
}

// compiled holds the compiled readyExprs of one generation of an App, by their text, and their last results for objects other than Apps and
// Projects.
type compiled struct {
	generation  int64
	expressions map[string]*expr.Expr
	answers     map[string]answer
}

// readiness says whether one dependency is ready.
type readiness struct {
	// lacks says why the dependency is not ready, as text to append to its name; "" if it is ready.
	lacks string
	// watched: a watch wakes the App when the dependency changes.
	watched bool
}

// Await waits for the App's dependencies. The objects that the App delivered before do not change meanwhile.
func (c *Checker) Await(ctx context.Context, s *subject.Subject) error {
	on := s.App.Spec.DependsOn
	c.dependents.Set(s.Key(), dependenciesOf(s.App, s.Owner.Tenant, s.Owner.Project))
	if err := c.compile(s.App); err != nil {
		return step.Stop(v1alpha1.InvalidExpressionReason, err)
	}
	var waits []string
	look := step.LastLook // Events wake the App when a dependency becomes ready; this only refreshes the message.
	for i := range on {
		now, err := c.check(ctx, s, &on[i])
		if err != nil {
			return fmt.Errorf("dependsOn[%d]: %w", i, err)
		}
		if now.lacks == "" {
			continue
		}
		waits = append(waits, nameOf(s, &on[i])+now.lacks)
		if !now.watched {
			look = step.NextLook(s.Waited("dependencies"))
		}
	}
	if len(waits) == 0 {
		return nil
	}
	return step.Wait(v1alpha1.DependencyNotReadyReason, look, "waits for %s", strings.Join(few.Of(waits, maxNamed), "; "))
}

// Forget drops the state of an App.
func (c *Checker) Forget(app *v1alpha1.App) {
	c.dependents.Set(client.ObjectKeyFromObject(app), nil)
	c.compiled.Forget(app)
}

// Dependents returns the Apps that depend on an object, sorted.
func (c *Checker) Dependents(o client.Object, kind schema.GroupKind) []types.NamespacedName {
	return c.dependents.Users(references.Object{Namespace: o.GetNamespace(), Kind: kind.String(), Name: o.GetName()})
}

// Changed passes an update of an App or Project that changes its readiness. An expression may use any field, so every update passes if an
// expression decides about the object.
func (c *Checker) Changed(kind string) predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			if summaryOf(e.ObjectOld) != summaryOf(e.ObjectNew) {
				return true
			}
			return len(c.dependents.Users(references.Object{Namespace: e.ObjectNew.GetNamespace(), Kind: kind + byExpression, Name: e.ObjectNew.GetName()})) > 0
		},
	}
}

// compile compiles the expressions of an App once for each generation.
func (c *Checker) compile(app *v1alpha1.App) error {
	known := c.compiled.Get(app)
	if known.generation == app.Generation {
		return nil
	}
	expressions := map[string]*expr.Expr{}
	for i, d := range app.Spec.DependsOn {
		if d.ReadyExpr == "" {
			continue
		}
		ready, err := expr.Compile(d.ReadyExpr, expr.Dependency...)
		if err != nil {
			return fmt.Errorf("dependsOn[%d].readyExpr: %w", i, err)
		}
		expressions[d.ReadyExpr] = ready
	}
	*known = compiled{generation: app.Generation, expressions: expressions}
	return nil
}

// dependenciesOf returns the references of an App to its dependencies.
func dependenciesOf(app *v1alpha1.App, tenant, project string) []references.Object {
	var on []references.Object
	for i := range app.Spec.DependsOn {
		d := &app.Spec.DependsOn[i]
		kind, namespace := d.GroupVersionKind(), namespaceOf(d, tenant, project)
		on = append(on, references.Object{Namespace: namespace, Kind: kind.GroupKind().String(), Name: d.Name})
		if d.ReadyExpr != "" && kind.GroupVersion() == v1alpha1.GroupVersion {
			on = append(on, references.Object{Namespace: namespace, Kind: kind.Kind + byExpression, Name: d.Name})
		}
	}
	return on
}

// namespaceOf returns the namespace of a dependency's object, for an App of the given project. The object belongs to the same tenant or, if
// it is an App, to the platform itself.
func namespaceOf(d *v1alpha1.Dependency, tenant, project string) string {
	if d.Platform {
		return v1alpha1.ProjectNamespace(v1alpha1.PlatformTenant, d.Project)
	}
	if d.GroupVersionKind() == v1alpha1.GroupVersion.WithKind(v1alpha1.ProjectKind) {
		return v1alpha1.HomeNamespace(tenant)
	}
	return v1alpha1.ProjectNamespace(tenant, cmp.Or(d.Project, project))
}

// nameOf returns the name of a dependency for messages, such as "App shop/database".
func nameOf(s *subject.Subject, d *v1alpha1.Dependency) string {
	kind := d.GroupVersionKind()
	if kind == v1alpha1.GroupVersion.WithKind(v1alpha1.ProjectKind) {
		return "Project " + d.Name
	}
	name := kind.Kind + " " + cmp.Or(d.Project, s.Owner.Project) + "/" + d.Name
	if d.Platform {
		return name + " of the platform"
	}
	return name
}

func (c *Checker) check(ctx context.Context, s *subject.Subject, d *v1alpha1.Dependency) (readiness, error) {
	kind := d.GroupVersionKind()
	key := client.ObjectKey{Namespace: namespaceOf(d, s.Owner.Tenant, s.Owner.Project), Name: d.Name}
	ready := c.compiled.Get(s.App).expressions[d.ReadyExpr]
	switch kind {
	case v1alpha1.GroupVersion.WithKind(v1alpha1.AppKind):
		if d.Platform && s.Owner.Tenant != v1alpha1.PlatformTenant {
			return c.checkPlatform(ctx, s, key)
		}
		return c.checkOwn(ctx, s, key, &v1alpha1.App{}, ready)
	case v1alpha1.GroupVersion.WithKind(v1alpha1.ProjectKind):
		return c.checkOwn(ctx, s, key, &v1alpha1.Project{}, ready)
	}
	if err := c.allowed(kind); err != nil {
		return readiness{}, err
	}
	home, err := c.Watch.Namespace(ctx, key.Namespace)
	if err != nil {
		return readiness{}, err
	}
	if home == nil || home.GetLabels()[v1alpha1.TenantLabel] != s.Owner.Tenant {
		return readiness{lacks: ": the tenant has no such project"}, nil
	}
	return c.checkOther(ctx, s, question{kind: kind, key: key, ready: ready, text: d.ReadyExpr})
}

// allowed refuses kinds on which no App may depend, and waits for kinds that the API server does not serve yet.
func (c *Checker) allowed(kind schema.GroupVersionKind) error {
	if expr.IsSecret(kind.GroupKind()) {
		return step.Stop(v1alpha1.InvalidExpressionReason, errors.New("no app may depend on a Secret"))
	}
	namespaced, err := c.Clients.Namespaced(kind)
	var misspelled *kube.MisspelledKindError
	switch {
	case errors.As(err, &misspelled):
		return step.Stop(v1alpha1.InvalidExpressionReason, fmt.Errorf("the cluster knows no kind %s %s; did you mean %s?", kind.GroupVersion(), kind.Kind, misspelled.Meant))
	case errors.As(err, new(*kube.UnkeptKindError)):
		return step.Stop(v1alpha1.InvalidExpressionReason, fmt.Errorf("no app may depend on it: %w", err))
	case meta.IsNoMatchError(err):
		return step.Wait(v1alpha1.DependencyNotReadyReason, step.LastLook, "waits for the cluster to know the kind %s %s", kind.GroupVersion(), kind.Kind)
	case err != nil:
		return fmt.Errorf("finding the scope of %s: %w", kind.Kind, err)
	case !namespaced:
		return step.Stop(v1alpha1.InvalidExpressionReason, fmt.Errorf("%s is cluster-scoped; an app may only depend on objects of its tenant", kind.Kind))
	}
	return nil
}

// missing is why an App or Project that does not exist is not ready.
const missing = ", which does not exist: add it, or correct dependsOn in app.yaml"

// checkOwn checks an App or a Project, which is in the operator's own cache.
func (c *Checker) checkOwn(ctx context.Context, s *subject.Subject, key client.ObjectKey, on step.Object, ready *expr.Expr) (readiness, error) {
	err := c.Client.Get(ctx, key, on)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return readiness{}, fmt.Errorf("reading %s: %w", key, err)
	case err != nil:
		return readiness{lacks: missing, watched: true}, nil
	case on.GetDeletionTimestamp() != nil:
		return readiness{lacks: ", which is being deleted", watched: true}, nil
	case ready == nil:
		return readiness{lacks: s.Quote(notReady(on)), watched: true}, nil
	}
	object, err := unstructuredOf(on)
	if err != nil {
		return readiness{}, err
	}
	now, err := evaluate(ctx, s, ready, object)
	now.watched = true
	return now, err
}

// checkPlatform checks an App of the platform itself for a tenant's App. It does not quote the platform App's messages, which are for
// administrators.
func (c *Checker) checkPlatform(ctx context.Context, s *subject.Subject, key client.ObjectKey) (readiness, error) {
	if v1alpha1.TenantOf(key.Namespace) != v1alpha1.PlatformTenant { // A tenant must not learn whether another tenant's App exists.
		return readiness{lacks: missing, watched: true}, nil
	}
	now, err := c.checkOwn(ctx, s, key, &v1alpha1.App{}, nil)
	if now.lacks != "" && now.lacks != missing {
		now.lacks = ", which is not ready; " + command.Describe("app", &metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name})
	}
	return now, err
}

// notReady returns why an App or Project is not ready with its present spec and, for an App, its present folder; "" if it is ready. The
// Repository applies an App after its dependencies, so their specs are at least as new as the commit of this App.
func notReady(on step.Object) string {
	now := conditions.Get(on, v1alpha1.ReadyCondition)
	app, _ := on.(*v1alpha1.App)
	switch {
	case now == nil:
		return ", which was not looked at yet"
	case now.Status != metav1.ConditionTrue && conditions.Has(on, v1alpha1.DependenciesReadyCondition) && !conditions.IsTrue(on, v1alpha1.DependenciesReadyCondition):
		return ", which waits for what it depends on itself" // Apps on a dependency cycle would quote each other for ever.
	case now.Status != metav1.ConditionTrue:
		return ": " + now.Message
	case now.ObservedGeneration != on.GetGeneration(),
		app != nil && app.Status.ObservedTree != app.Annotations[v1alpha1.TreeAnnotation]:
		if on.GetSchedule().Suspend || conditions.IsTrue(on, v1alpha1.SuspendedCondition) {
			return ", which is suspended before its last change"
		}
		return ", which is not done with its last change"
	}
	return ""
}

// summaryOf returns the part of an App's or Project's state that matters to its dependents. The messages are not part of it, because they
// change more often.
func summaryOf(o client.Object) string {
	on := o.(step.Object)
	ready := conditions.IsReady(on) && notReady(on) == ""
	return fmt.Sprintf("%t %t %s", ready, on.GetDeletionTimestamp() != nil, conditions.GetReason(on, v1alpha1.ReadyCondition))
}
