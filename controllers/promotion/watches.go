package promotion

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/declared"
)

// pause collects the changes of a project's apps, of which a delivery makes many.
const pause = time.Second

// SetupWithManager sets up the controller. Its triggers are Projects, and the apps of those that promote and are promoted from.
func (p *Promoter) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("promotion").
		For(&v1alpha1.Project{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&v1alpha1.App{}, declared.Later(pause, p.concerned)).
		WithOptions(options).
		Complete(p)
}

// concerned returns the Projects of the same tenant that promote from or to the project of an App.
func (p *Promoter) concerned(ctx context.Context, app client.Object) (keys []types.NamespacedName) {
	namespace := app.GetNamespace()
	tenant := v1alpha1.TenantOf(namespace)
	projects := &v1alpha1.ProjectList{}
	if p.Reader.List(ctx, projects, client.InNamespace(v1alpha1.HomeNamespace(tenant)), client.UnsafeDisableDeepCopy) != nil {
		return nil // The cache is not filled yet: every Project comes with its first list.
	}
	for i := range projects.Items {
		project := &projects.Items[i]
		if to := project.Spec.Promotion; to != nil && (v1alpha1.ProjectNamespace(tenant, to.From) == namespace || v1alpha1.ProjectNamespace(tenant, project.Name) == namespace) {
			keys = append(keys, client.ObjectKeyFromObject(project))
		}
	}
	return keys
}
