package project

import (
	"context"
	"fmt"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	rbac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/access"
	"github.com/kubeop/kubeop/delivery/apply"
)

// clusterRole is the name of the role and the binding with which the project's deployer writes cluster-scoped kinds.
func clusterRole(namespace string) string {
	return "kubeop-cluster-" + strings.TrimPrefix(namespace, "kubeop-")
}

// grantCluster lets the project's deployer write the cluster-scoped kinds that the tenant may have, and nothing where
// there are none. The API server lets the operator hand out only what it holds itself.
func (r *Reconciler) grantCluster(ctx context.Context, s *scope) error {
	if len(s.tenant.Spec.ClusterKinds) == 0 {
		return nil
	}
	name := clusterRole(s.namespace)
	role := rbac.ClusterRole(name).WithLabels(s.labels())
	var unserved, namespaced []string
	for _, kind := range s.tenant.Spec.ClusterKinds {
		mapping, err := r.clusterMapping(kind)
		switch {
		case meta.IsNoMatchError(err):
			unserved = append(unserved, kind)
			continue
		case err != nil:
			return fmt.Errorf("finding the resource of %s: %w", kind, err)
		case mapping.Scope.Name() != meta.RESTScopeNameRoot:
			namespaced = append(namespaced, kind) // Granted here, it would be everybody's.
			continue
		}
		resource := mapping.Resource
		role.WithRules(rbac.PolicyRule().WithAPIGroups(resource.Group).WithResources(resource.Resource).
			WithVerbs("get", "list", "watch", "create", "update", "patch", "delete"))
	}
	if err := s.made.Apply(ctx, role, access.Cluster(name, s.namespace, s.labels())); err != nil {
		return step.Refused(v1alpha1.ApplyFailedReason, fmt.Errorf(
			"granting spec.clusterKinds of the Tenant; a ClusterRole labelled paas.kubeop.io/aggregate-to-cluster-kinds has to give the operator what it hands out: %w", err))
	}
	if len(namespaced) > 0 {
		return step.Stop(v1alpha1.ApplyFailedReason, fmt.Errorf("spec.clusterKinds of the Tenant names kinds that live in namespaces, which every project may have anyway: %s",
			strings.Join(namespaced, ", ")))
	}
	if len(unserved) > 0 {
		return step.Wait(v1alpha1.DependencyNotReadyReason, time.Minute, "spec.clusterKinds of the Tenant names what the cluster does not serve: %s", strings.Join(unserved, ", "))
	}
	return nil
}

// clusterMapping returns the resource of a kind given as "<Kind>.<group>", and its scope.
func (r *Reconciler) clusterMapping(name string) (*meta.RESTMapping, error) {
	kind, group, _ := strings.Cut(name, ".")
	return r.Direct.RESTMapper().RESTMapping(schema.GroupKind{Group: group, Kind: kind})
}

// revokeCluster takes away what grantCluster gave.
func (r *Reconciler) revokeCluster(ctx context.Context, s *scope) error {
	var entries []v1alpha1.InventoryEntry
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding"} {
		id := apply.ObjectID{Name: clusterRole(s.namespace), Group: rbacv1.GroupName, Kind: kind}
		entries = append(entries, v1alpha1.InventoryEntry{ID: id.String(), Version: "v1"})
	}
	_, err := r.Applier.Prune(ctx, r.Direct, entries, s.labels())
	return err
}
