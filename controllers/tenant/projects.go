package tenant

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/home"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/garbage"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// removeProjects deletes the tenant's projects, waits for them, and then revokes the owners' access. The administrators decide with the
// tenant's policy whether the running objects stay; the policies of the projects, which the tenant sets, do not count.
func (r *Reconciler) removeProjects(ctx context.Context, s *scope) error {
	projects := &v1alpha1.ProjectList{}
	if err := r.Client.List(ctx, projects, client.InNamespace(s.home)); err != nil {
		return fmt.Errorf("listing the projects of %s: %w", s.tenant.Name, err)
	}
	var left []string
	for i := range projects.Items {
		project := &projects.Items[i]
		left = append(left, project.Name)
		if err := r.removeProject(ctx, s, project); err != nil {
			return fmt.Errorf("deleting project %s: %w", project.Name, err)
		}
	}
	if len(left) > 0 {
		slices.Sort(left)
		return step.Wait(v1alpha1.DeletingReason, time.Second, "waits for projects %s; kubectl get projects -n %s says what holds them",
			strings.Join(left, ", "), s.home)
	}
	return r.revoke(ctx, s)
}

func (r *Reconciler) removeProject(ctx context.Context, s *scope, project *v1alpha1.Project) error {
	return home.DeleteChild(ctx, r.Client, s.tenant, project, func() bool {
		had := project.Spec.DeletionPolicy
		project.Spec.DeletionPolicy = policyOf(s.tenant)
		return had != project.Spec.DeletionPolicy
	})
}

func policyOf(tenant *v1alpha1.Tenant) v1alpha1.DeletionPolicy {
	if tenant.Spec.DeletionPolicy == "" {
		return v1alpha1.DeletionDelete
	}
	return tenant.Spec.DeletionPolicy
}

// revoke deletes the objects outside of the namespace: the cluster-wide roles and their bindings, and the FlowSchemas. Under the policy Orphan,
// they stay, so that the owners can still read their objects.
func (r *Reconciler) revoke(ctx context.Context, s *scope) error {
	if s.tenant.Spec.DeletionPolicy == v1alpha1.DeletionOrphan {
		return nil
	}
	var entries []v1alpha1.InventoryEntry
	for _, g := range r.grants(s.tenant) {
		for _, kind := range []string{"ClusterRole", "ClusterRoleBinding"} {
			id := inventory.ObjectID{Name: g.name, Group: rbacv1.GroupName, Kind: kind}
			entries = append(entries, v1alpha1.InventoryEntry{ID: id.String(), Version: "v1"})
		}
	}
	for _, e := range s.tenant.Status.Inventory.Entries {
		if id, err := inventory.ParseObjectID(e.ID); err == nil && id.Group == flowcontrolv1.GroupName {
			entries = append(entries, e)
		}
	}
	left, err := garbage.Delete(ctx, r.Direct, r.Applier.Live, entries, s.labels())
	if err == nil && len(left) > 0 {
		return step.Wait(v1alpha1.DeletingReason, time.Second, "waits for %s to be gone", inventory.Names(left))
	}
	return err
}
