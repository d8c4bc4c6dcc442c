// Package registry gives projects the credentials of the Registries that their tenants may use, and reports the state of each Registry.
package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/credentials"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/few"
)

// Reconciler reconciles Registries. It writes only their status: the projects themselves have the copies, see Provider.
type Reconciler struct {
	Client  client.Client
	Secrets *Secrets
	Steps   *step.Runner
}

// byRegistry is the cache's index of Projects by the Registries whose credentials they have.
const byRegistry = "registry"

// countPause collects the changes of many projects, so that a Registry that all tenants get is not written once for each.
const countPause = 500 * time.Millisecond

// SetupWithManager adds the controller. A Registry is reconciled when it changes, when its Secret changes (in secrets), and when a project
// gets or loses its credentials.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, secrets cache.Cache, options controller.Options) error {
	ctx, indexer := context.Background(), mgr.GetFieldIndexer()
	err := indexer.IndexField(ctx, &v1alpha1.Registry{}, bySecret, func(o client.Object) []string {
		return []string{o.(*v1alpha1.Registry).Spec.SecretRef.Name}
	})
	if err != nil {
		return fmt.Errorf("indexing registries by their Secrets: %w", err)
	}
	err = indexer.IndexField(ctx, &v1alpha1.Project{}, byRegistry, func(o client.Object) []string { return registriesOf(o) })
	if err != nil {
		return fmt.Errorf("indexing projects by their registries: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Registry{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&v1alpha1.Project{}, counted).
		WatchesRawSource(source.Kind(secrets, credentials.MetadataOnly(), handler.TypedEnqueueRequestsFromMapFunc(
			func(ctx context.Context, secret *metav1.PartialObjectMetadata) []reconcile.Request {
				return r.Secrets.changed(ctx, secret)
			}))).
		WithOptions(options).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// registriesOf returns the Registries whose credentials a project has.
func registriesOf(project client.Object) (names []string) {
	for _, secret := range project.(*v1alpha1.Project).Status.PullSecrets {
		names = append(names, secret.Registry)
	}
	return names
}

// counted wakes the Registries whose credentials a project got or lost.
var counted = handler.Funcs{
	CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { count(q, registriesOf(e.Object), nil) },
	DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { count(q, registriesOf(e.Object), nil) },
	UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
		count(q, registriesOf(e.ObjectOld), registriesOf(e.ObjectNew))
	},
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// count wakes the Registries that are in one of two lists only.
func count(q queue, was, is []string) {
	for _, name := range slices.Concat(was, is) {
		if slices.Contains(was, name) != slices.Contains(is, name) {
			q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}, countPause)
		}
	}
}

// Reconcile reports whether the credentials of a Registry can be used, and how many projects have them. A Registry that is deleted goes when
// no project has them any more.
func (r *Reconciler) Reconcile(ctx context.Context, registry *v1alpha1.Registry) (ctrl.Result, error) {
	s := &scope{registry: registry}
	if !registry.DeletionTimestamp.IsZero() {
		return r.Steps.Finalize(ctx, registry, s, step.Of(v1alpha1.CredentialsRemovedCondition, s, r.awaitRemoval))
	}
	return r.Steps.Run(ctx, registry, s, step.Of(v1alpha1.SecretReadyCondition, s, r.readSecret))
}

// scope holds the facts of one Reconcile.
type scope struct {
	registry *v1alpha1.Registry
	// projects are those that have its credentials, as <tenant>/<project>, sorted.
	projects []string
}

// Record writes the facts into the status.
func (s *scope) Record() { s.registry.Status.Projects = len(s.projects) }

// Summary is the message of the condition Ready.
func (s *scope) Summary() string {
	spec := s.registry.Spec
	if len(spec.Tenants)+len(spec.Policies) == 0 {
		return "Nobody may use it: an administrator names tenants or policies in spec.tenants or spec.policies in Git"
	}
	return "Credentials for " + spec.Host + " are in " + few.Count(len(s.projects), "project")
}

// readSecret reads the Secret, and counts the projects.
func (r *Reconciler) readSecret(ctx context.Context, s *scope) error {
	if err := r.count(ctx, s); err != nil {
		return err
	}
	_, err := r.Secrets.Content(ctx, s.registry)
	return err
}

func (r *Reconciler) count(ctx context.Context, s *scope) error {
	projects := &v1alpha1.ProjectList{}
	if err := r.Client.List(ctx, projects, client.MatchingFields{byRegistry: s.registry.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("counting the projects with credentials of registry %s: %w", s.registry.Name, err)
	}
	for i := range projects.Items {
		at := &projects.Items[i]
		s.projects = append(s.projects, strings.TrimPrefix(at.Namespace, v1alpha1.HomeNamespace(""))+"/"+at.Name)
	}
	slices.Sort(s.projects)
	return nil
}

// awaitRemoval waits until the projects have removed their copies.
func (r *Reconciler) awaitRemoval(ctx context.Context, s *scope) error {
	if err := r.count(ctx, s); err != nil {
		return err
	}
	if n := len(s.projects); n > 0 {
		return step.Wait(v1alpha1.ProgressingReason, 10*time.Second, "waits until %s no longer %s its credentials: %s", few.Count(n, "project"),
			map[bool]string{true: "has", false: "have"}[n == 1], step.Few(s.projects))
	}
	return nil
}
