// Package app delivers Apps: it finds the source, renders it, checks it, applies it as the project's deployer, and says
// whether it works.
package app

import (
	"context"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/refusal"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/build"
	"github.com/kubeop/kubeop/delivery/build/scheduler"
	"github.com/kubeop/kubeop/delivery/digest"
	"github.com/kubeop/kubeop/delivery/fetch/artifact"
	"github.com/kubeop/kubeop/delivery/fetch/chart"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/image"
	"github.com/kubeop/kubeop/delivery/health"
	"github.com/kubeop/kubeop/delivery/journal"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/release"
	"github.com/kubeop/kubeop/delivery/render/workload"
)

// Reconciler reconciles Apps.
type Reconciler struct {
	Client client.Client
	// Direct reads past the cache.
	Direct  client.Reader
	Clients *kube.Clients
	Watch   *kube.Watch
	// Version returns the resourceVersion of a ConfigMap, Secret or Flux source as its namespace's deployer last saw it, "" when there is
	// none; OnChange has a function called when one of them, a record of a release among them, changes.
	Version  func(ctx context.Context, namespace, kind, name string) (string, error)
	OnChange func(func(namespace, kind, name string, labels map[string]string))
	// OnServed has a function called when the API server may serve other kinds than before.
	OnServed func(func())
	// Explainer says as a namespace's deployer what ails objects, through a mask that hides what its Secrets hold.
	Explainer func(namespace string, mask func(string) string) (health.Explainer, error)
	Applier   *apply.Applier
	Journal   *journal.Journal
	Releases  *release.Engine
	// Builder makes the objects of Git and Raw apps.
	Builder *build.Builder
	Steps   *step.Runner
	Clock   clock.PassiveClock
	// Weight returns how many turns a tenant has for one of another's where builds wait; nil: one.
	Weight func(tenant string) int
	// Seal has digests told so that nobody can tell by them what they are of; it is that of Applier and Releases, too.
	Seal digest.Seal
	// Limits are those of tenants whose Tenant sets none.
	Limits budget.Limits
	// Store knows which quotas are lower than their projects' own because of what all projects of a tenant have.
	Store *usage.Store
	// Rendered is what all apps of a tenant deliver.
	Rendered *usage.Rendered
	// Refusals says whether a newer version of an app is refused.
	Refusals *refusal.Registry

	// Folder returns the app's folder in the repository that declares it.
	Folder func(ctx context.Context, app *v1alpha1.App) (*folder.Folder, error)
	Git    *git.Store
	Charts *chart.Store
	// Artifacts are those of OCI registries and of Flux's sources.
	Artifacts *artifact.Store
	*Sources
	// Tags lists the tags of image repositories for image policies.
	Tags *image.Store
	// Gateway serves the hosts of Image apps; the zero value leaves them to an Ingress.
	Gateway workload.Gateway

	builders   scheduler.Builders[made]
	memory     memory
	claims     claims
	references references
	// dependents knows which apps depend on which objects; of those, kind is group and kind.
	dependents references
	contents   contents
	pushes     pushes
	// queue is the controller's.
	queue atomic.Pointer[workqueue.TypedRateLimitingInterface[reconcile.Request]]
	// reads are what Git apps, and charts in Git, are made from in a commit, while no other build is under way.
	reads sync.Map
	// unserved are the apps whose Flux source is of a kind that is not served.
	unserved sync.Map
}

// Reconcile delivers one app, or removes what it delivered.
func (r *Reconciler) Reconcile(ctx context.Context, app *v1alpha1.App) (ctrl.Result, error) {
	s := newScope(app, &r.memory, r.Seal)
	s.current = r.Refusals.Notes(v1alpha1.AppKind, app)
	s.rendered, _ = r.Rendered.Asked(client.ObjectKeyFromObject(app))
	unknown := r.recall(ctx, s)
	if !app.DeletionTimestamp.IsZero() {
		return r.finalize(ctx, s, step.Of(v1alpha1.RemovedCondition, s, unless(unknown, r.remove)))
	}
	if unknown != nil {
		return r.Steps.Run(ctx, app, s, step.Of(v1alpha1.AppliedCondition, s, unless(unknown, r.apply)))
	}
	defer r.said(s)
	defer r.keep(s)
	return r.Steps.Run(ctx, app, s, r.steps(s)...)
}

// finalize lets the app go after a step. It may also go without one.
func (r *Reconciler) finalize(ctx context.Context, s *scope, remove step.Step) (ctrl.Result, error) {
	result, err := r.Steps.Finalize(ctx, s.app, s, remove)
	if err == nil && !controllerutil.ContainsFinalizer(s.app, v1alpha1.Finalizer) {
		r.forget(s)
	}
	return result, err
}

// unless returns what is done where it is known what is recorded. Nothing is made or deleted without that.
func unless(unknown error, do func(context.Context, *scope) error) func(context.Context, *scope) error {
	if unknown == nil {
		return do
	}
	return func(context.Context, *scope) error { return step.Fail(v1alpha1.ApplyFailedReason, unknown) }
}

// steps lists what delivers an app.
func (r *Reconciler) steps(s *scope) []step.Step {
	type act struct {
		condition string
		do        func(context.Context, *scope) error
	}
	acts := []act{
		{v1alpha1.DependenciesReadyCondition, r.resolve},
		{v1alpha1.SourceReadyCondition, r.fetch},
		{v1alpha1.RenderedCondition, r.render},
	}
	deliver := act{v1alpha1.ReleasedCondition, r.release}
	if s.app.Spec.Type != v1alpha1.AppHelm {
		acts = append(acts, act{v1alpha1.AllowedCondition, r.admit})
		deliver = act{v1alpha1.AppliedCondition, r.apply}
	}
	if hooked(s.app) {
		acts = append(acts, act{v1alpha1.HooksSucceededCondition, r.preHooks})
	}
	acts = append(acts, deliver, act{v1alpha1.HealthyCondition, r.health})
	if tested(&s.app.Spec) {
		acts = append(acts, act{v1alpha1.TestSuccessCondition, r.test})
	}
	if len(s.app.Spec.Hooks.Post) > 0 {
		acts = append(acts, act{v1alpha1.HooksSucceededCondition, r.postHooks})
	}
	if s.app.Spec.Type == v1alpha1.AppHelm {
		acts = append(acts, act{v1alpha1.ReleasedCondition, r.pruneShared})
	}
	var steps []step.Step
	for i, a := range acts {
		steps = append(steps, step.Of(a.condition, s, func(ctx context.Context, s *scope) error {
			if s.kept && a.condition != v1alpha1.HealthyCondition {
				return step.Skip()
			}
			err := a.do(ctx, s)
			s.done = err == nil && i == len(acts)-1 && !s.kept
			return err
		}))
	}
	return steps
}
