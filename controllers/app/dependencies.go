package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/expr"
	"github.com/kubeop/kubeop/delivery/health"
	"github.com/kubeop/kubeop/delivery/kube"
)

const (
	// maxTold is how many dependencies a message names, maxQuoted how many characters of what one says of itself.
	maxTold   = 3
	maxQuoted = 200
)

// standing is how it is with one dependency.
type standing struct {
	// lacks is what keeps it from being ready, in words that follow its name; "" when it is ready.
	lacks string
	// seen: a watch tells when it changes.
	seen bool
}

// awaitDependencies waits for what the app depends on. What it delivered before stays as it is meanwhile.
func (r *Reconciler) awaitDependencies(ctx context.Context, s *scope) error {
	on := s.app.Spec.DependsOn
	r.dependents.set(client.ObjectKeyFromObject(s.app), dependenciesOf(s.app, s.owner.Tenant, s.owner.Project))
	var waits []string
	look := lastLook // Events bring what matters; this is for the words of the message.
	for i := range on {
		now, err := r.standing(ctx, s, &on[i])
		if err != nil {
			return fmt.Errorf("dependsOn[%d]: %w", i, err)
		}
		if now.lacks == "" {
			continue
		}
		waits = append(waits, nameOf(s, &on[i])+now.lacks)
		if !now.seen {
			look = nextLook(r.Clock.Now().Sub(s.memory.began(waitingPhase, r.Clock.Now())))
		}
	}
	if len(waits) == 0 {
		return nil
	}
	if more := len(waits) - maxTold; more > 0 {
		waits = append(waits[:maxTold:maxTold], fmt.Sprintf("and %d more", more))
	}
	return step.Wait(v1alpha1.DependencyNotReadyReason, look, "waits for %s", strings.Join(waits, "; "))
}

const waitingPhase = "dependencies"

// byExpression marks references to Apps and Projects that an expression judges.
const byExpression = " by expression"

// dependenciesOf lists what an app depends on.
func dependenciesOf(app *v1alpha1.App, tenant, project string) []reference {
	var refs []reference
	for i := range app.Spec.DependsOn {
		d := &app.Spec.DependsOn[i]
		kind, namespace := d.GroupVersionKind(), d.Namespace(tenant, project)
		refs = append(refs, reference{namespace, kind.GroupKind().String(), d.Name})
		if d.ReadyExpr != "" && kind.GroupVersion() == v1alpha1.GroupVersion {
			refs = append(refs, reference{namespace, kind.Kind + byExpression, d.Name})
		}
	}
	return refs
}

// nameOf names a dependency as "App shop/database".
func nameOf(s *scope, d *v1alpha1.Dependency) string {
	kind := d.GroupVersionKind()
	if kind == v1alpha1.GroupVersion.WithKind(v1alpha1.ProjectKind) {
		return "Project " + d.Name
	}
	project := d.Project
	if project == "" {
		project = s.owner.Project
	}
	return kind.Kind + " " + project + "/" + d.Name
}

func (r *Reconciler) standing(ctx context.Context, s *scope, d *v1alpha1.Dependency) (standing, error) {
	kind := d.GroupVersionKind()
	key := client.ObjectKey{Namespace: d.Namespace(s.owner.Tenant, s.owner.Project), Name: d.Name}
	ready := s.memory.compiled[d.ReadyExpr]
	switch kind {
	case v1alpha1.GroupVersion.WithKind(v1alpha1.AppKind):
		return r.declared(ctx, s, key, &v1alpha1.App{}, ready)
	case v1alpha1.GroupVersion.WithKind(v1alpha1.ProjectKind):
		return r.declared(ctx, s, key, &v1alpha1.Project{}, ready)
	}
	if err := r.dependable(kind); err != nil {
		return standing{}, err
	}
	home, err := r.Watch.Namespace(ctx, key.Namespace)
	if err != nil {
		return standing{}, err
	}
	if home == nil || home.GetLabels()[v1alpha1.TenantLabel] != s.owner.Tenant {
		return standing{lacks: ": the tenant has no such project"}, nil
	}
	return r.other(ctx, s, question{kind: kind, key: key, ready: ready, text: d.ReadyExpr})
}

// dependable refuses kinds that no app may depend on, and waits for those that are not served yet.
func (r *Reconciler) dependable(kind schema.GroupVersionKind) error {
	if expr.IsSecret(kind.GroupKind()) {
		return step.Stop(v1alpha1.InvalidExpressionReason, errors.New("no app may depend on a Secret"))
	}
	namespaced, err := r.Clients.Namespaced(kind)
	var misspelled *kube.MisspelledKindError
	switch {
	case errors.As(err, &misspelled):
		return step.Stop(v1alpha1.InvalidExpressionReason, fmt.Errorf("the cluster knows no kind %s %s; did you mean %s?", kind.GroupVersion(), kind.Kind, misspelled.Meant))
	case errors.As(err, new(*kube.UnkeptKindError)):
		return step.Stop(v1alpha1.InvalidExpressionReason, fmt.Errorf("no app may depend on it: %w", err))
	case meta.IsNoMatchError(err):
		return step.Wait(v1alpha1.DependencyNotReadyReason, lastLook, "waits for the cluster to know the kind %s %s", kind.GroupVersion(), kind.Kind)
	case err != nil:
		return fmt.Errorf("finding the scope of %s: %w", kind.Kind, err)
	case !namespaced:
		return step.Stop(v1alpha1.InvalidExpressionReason, fmt.Errorf("%s is cluster-scoped; an app may only depend on objects of its tenant", kind.Kind))
	}
	return nil
}

// declared judges an App or a Project, which the operator's own cache holds.
func (r *Reconciler) declared(ctx context.Context, s *scope, key client.ObjectKey, on step.Object, ready *expr.Expr) (standing, error) {
	err := r.Client.Get(ctx, key, on)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return standing{}, fmt.Errorf("reading %s: %w", key, err)
	case err != nil:
		return standing{lacks: ", which does not exist", seen: true}, nil
	case on.GetDeletionTimestamp() != nil:
		return standing{lacks: ", which is being deleted", seen: true}, nil
	case ready == nil:
		return standing{lacks: s.quoted(unready(on)), seen: true}, nil
	}
	object, err := unstructuredOf(on)
	if err != nil {
		return standing{}, err
	}
	now, err := r.judge(ctx, s, ready, object)
	now.seen = true
	return now, err
}

// unready says why an App or Project is not ready with what it is declared to be now: its spec and, of an App, its folder.
// The Repository declares the Apps of a commit after those they depend on, so that is at least what this app's commit says.
func unready(on step.Object) string {
	now := conditions.Get(on, v1alpha1.ReadyCondition)
	app, _ := on.(*v1alpha1.App)
	switch {
	case now == nil:
		return ", which was not looked at yet"
	case now.Status != metav1.ConditionTrue && now.Reason == v1alpha1.DependencyNotReadyReason:
		return ", which waits for what it depends on itself" // Quoting it in turn would have a ring of apps talk for ever.
	case now.Status != metav1.ConditionTrue:
		return ": " + now.Message
	case now.ObservedGeneration != on.GetGeneration(),
		app != nil && app.Status.ObservedTree != app.Annotations[v1alpha1.TreeAnnotation]:
		if on.GetSchedule().Suspend {
			return ", which is suspended before its last change"
		}
		return ", which is not done with its last change"
	}
	return ""
}

// quoted returns the beginning of what others wrote. It is masked before it is cut: half a secret is not recognized.
func (s *scope) quoted(message string) string {
	message = s.Mask(message)
	characters := []rune(message)
	if len(characters) > maxQuoted {
		return string(characters[:maxQuoted-1]) + "…"
	}
	return message
}

// standsAs is what makes a change of an App or Project worth a look of those that depend on it; its messages change more
// often.
func standsAs(o client.Object) string {
	on := o.(step.Object)
	ready := conditions.IsReady(on) && unready(on) == ""
	return fmt.Sprintf("%t %t %s", ready, on.GetDeletionTimestamp() != nil, conditions.GetReason(on, v1alpha1.ReadyCondition))
}

// compile compiles the expressions of an app once for each generation.
func compile(s *scope) error {
	if s.memory.compiledFor == s.app.Generation {
		return nil
	}
	compiled, spec := map[string]*expr.Expr{}, &s.app.Spec
	for i, d := range spec.DependsOn {
		if d.ReadyExpr == "" {
			continue
		}
		ready, err := expr.Compile(d.ReadyExpr, expr.Dependency...)
		if err != nil {
			return fmt.Errorf("dependsOn[%d].readyExpr: %w", i, err)
		}
		compiled[d.ReadyExpr] = ready
	}
	var checks *health.Checks
	if len(spec.HealthCheckExprs) > 0 {
		var err error
		if checks, err = health.NewChecks(spec.HealthCheckExprs); err != nil {
			return err
		}
	}
	s.memory.compiledFor, s.memory.compiled, s.memory.checks, s.memory.answers = s.app.Generation, compiled, checks, nil
	return nil
}

// dependentsOf returns the apps that depend on an object.
func (r *Reconciler) dependentsOf(o client.Object, kind schema.GroupKind) []client.ObjectKey {
	users := r.dependents.users(reference{namespace: o.GetNamespace(), kind: kind.String(), name: o.GetName()})
	slices.SortFunc(users, func(a, b client.ObjectKey) int { return strings.Compare(a.String(), b.String()) })
	return users
}
