package project

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	rbac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/access"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// clusterRole is the name of the role and the binding with which the project's deployer writes cluster-scoped kinds.
func clusterRole(namespace string) string {
	return "kubeop-cluster-" + strings.TrimPrefix(namespace, "kubeop-")
}

// grantCluster grants the project's deployer the rights to the cluster-scoped kinds that the tenant may have. Without any, it grants
// nothing. The API server lets the operator grant only rights that the operator has itself. If one kind is refused, the others are still
// granted, and removed ones are still revoked.
func (r *Reconciler) grantCluster(ctx context.Context, s *scope) error {
	rules, problem, err := r.clusterRules(s.tenant.Spec.ClusterKinds)
	if err != nil {
		return err // While the kinds are unknown, revoke nothing.
	}
	err = r.applyCluster(ctx, s, rules)
	if notGranted(err) {
		granted, failed := r.grantable(ctx, s, rules)
		if failed == nil {
			failed = r.applyCluster(ctx, s, granted)
		}
		err = errors.Join(err, failed)
	}
	if err != nil {
		return step.Refused(v1alpha1.ApplyFailedReason, fmt.Errorf(
			"granting spec.clusterKinds of the Tenant; a ClusterRole labelled paas.kubeop.io/aggregate-to-cluster-kinds has to give the operator the rights that it grants: %w", err), apply.ErrForeign)
	}
	return problem
}

type rule = rbac.PolicyRuleApplyConfiguration

// clusterRules returns a rule for each kind, and the problem of the kinds for which there is no rule.
func (r *Reconciler) clusterRules(kinds []string) (rules []*rule, problem, err error) {
	var unserved, namespaced []string
	for _, kind := range kinds {
		mapping, err := r.clusterMapping(kind)
		switch {
		case meta.IsNoMatchError(err):
			unserved = append(unserved, kind)
		case err != nil:
			return nil, nil, fmt.Errorf("finding the resource of %s: %w", kind, err)
		case mapping.Scope.Name() != meta.RESTScopeNameRoot:
			namespaced = append(namespaced, kind) // A ClusterRole would grant a namespaced kind in every namespace.
		default:
			rules = append(rules, rbac.PolicyRule().WithAPIGroups(mapping.Resource.Group).WithResources(mapping.Resource.Resource).
				WithVerbs("get", "list", "watch", "create", "update", "patch", "delete"))
		}
	}
	switch {
	case len(namespaced) > 0:
		problem = step.Stop(v1alpha1.ApplyFailedReason, fmt.Errorf("spec.clusterKinds of the Tenant names kinds that live in namespaces, which every project may have anyway: %s",
			strings.Join(namespaced, ", ")))
	case len(unserved) > 0:
		problem = step.Wait(v1alpha1.DependencyNotReadyReason, time.Minute, "spec.clusterKinds of the Tenant names what the cluster does not serve: %s", strings.Join(unserved, ", "))
	}
	return rules, problem, nil
}

// applyCluster sets the cluster-wide rights of the deployer to exactly these rules.
func (r *Reconciler) applyCluster(ctx context.Context, s *scope, rules []*rule) error {
	if len(rules) == 0 && !s.hadCluster() {
		return nil
	}
	if len(rules) == 0 {
		return r.revokeCluster(ctx, s)
	}
	return s.made.Apply(ctx, roleOf(s, rules...), access.Cluster(clusterRole(s.namespace), s.namespace, s.labels()))
}

func roleOf(s *scope, rules ...*rule) *rbac.ClusterRoleApplyConfiguration {
	return rbac.ClusterRole(clusterRole(s.namespace)).WithLabels(s.labels()).WithRules(rules...)
}

// notGranted reports whether the API server refused rights: those that the operator lacks, or that a policy forbids.
func notGranted(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) }

// grantable returns the rules that the API server allows the operator to grant. It tests each with a dry-run.
func (r *Reconciler) grantable(ctx context.Context, s *scope, rules []*rule) ([]*rule, error) {
	var granted []*rule
	for _, each := range rules {
		err := r.Direct.Apply(ctx, roleOf(s, each), client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership, client.DryRunAll)
		if err != nil && !notGranted(err) {
			return nil, err
		}
		if err == nil {
			granted = append(granted, each)
		}
	}
	return granted, nil
}

// clusterMapping returns the resource of a kind given as "<Kind>.<group>", and its scope.
func (r *Reconciler) clusterMapping(name string) (*meta.RESTMapping, error) {
	kind, group, _ := strings.Cut(name, ".")
	return r.Direct.RESTMapper().RESTMapping(schema.GroupKind{Group: group, Kind: kind})
}

// revokeCluster revokes the rights that grantCluster granted. Of a project without a record of any, only what the watch shows is deleted.
func (r *Reconciler) revokeCluster(ctx context.Context, s *scope) error {
	if !s.hadCluster() {
		return s.made.Withdraw(ctx, s.labels(), roleOf(s), access.Cluster(clusterRole(s.namespace), s.namespace, s.labels()))
	}
	var entries []v1alpha1.InventoryEntry
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding"} {
		entries = append(entries, v1alpha1.InventoryEntry{ID: s.clusterID(kind), Version: "v1"})
	}
	return s.made.Remove(ctx, s.labels(), entries...)
}

// hadCluster reports whether the deployer may already have cluster-wide rights.
func (s *scope) hadCluster() bool {
	return slices.ContainsFunc(s.project.Status.Inventory.Entries, func(e v1alpha1.InventoryEntry) bool { return e.ID == s.clusterID("ClusterRole") })
}

func (s *scope) clusterID(kind string) string {
	return inventory.ObjectID{Name: clusterRole(s.namespace), Group: rbacv1.GroupName, Kind: kind}.String()
}
