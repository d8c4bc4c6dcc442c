package project

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// peers returns the namespaces of other projects of the tenant whose pods may connect to those of this one, and to whose pods these may connect. Both
// sides' policies have to allow a connection. Summary reports names without a project.
func (r *Reconciler) peers(ctx context.Context, s *scope) (from, to []string, err error) {
	projects, err := r.siblings(ctx, s.project.Namespace)
	if err != nil {
		return nil, nil, err
	}
	s.network.absent = slices.Clone(s.project.Spec.Network.AllowFrom)
	for i := range projects {
		other := &projects[i]
		namespace := v1alpha1.ProjectNamespace(tenantOf(s.project), other.Name)
		if slices.Contains(s.network.absent, other.Name) {
			from = append(from, namespace)
			s.network.absent = slices.DeleteFunc(s.network.absent, func(name string) bool { return name == other.Name })
		}
		if slices.Contains(other.Spec.Network.AllowFrom, s.project.Name) {
			to = append(to, namespace)
		}
	}
	slices.Sort(from)
	slices.Sort(to)
	return from, to, nil
}

// siblings returns the projects in a home namespace. Nobody may change them.
func (r *Reconciler) siblings(ctx context.Context, namespace string) ([]v1alpha1.Project, error) {
	projects := &v1alpha1.ProjectList{}
	if err := r.Client.List(ctx, projects, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the projects in namespace %s: %w", namespace, err)
	}
	return projects.Items, nil
}

// connected maps a project to the others of its tenant that have connections with it by spec.network. If listing them fails, the error is logged, and
// the projects are reconciled at their interval.
func (r *Reconciler) connected(ctx context.Context, o client.Object) (requests []reconcile.Request) {
	project := o.(*v1alpha1.Project)
	projects, err := r.siblings(ctx, project.Namespace)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Finding the projects that have connections with one that changed; they are reconciled at their interval", "project", project.Name)
		return nil
	}
	for i := range projects {
		other := &projects[i]
		if slices.Contains(project.Spec.Network.AllowFrom, other.Name) || slices.Contains(other.Spec.Network.AllowFrom, project.Name) {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: other.Namespace, Name: other.Name}})
		}
	}
	return requests
}
