package usage

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/delivery/quota"
	"github.com/kubeop/kubeop/gitops/plan"
)

// Budgets reads how much of their budgets tenants use.
type Budgets struct {
	// Reader may be a cache. Listed objects are not copied, so they must not be changed.
	Reader client.Reader
	// Kinds returns the kinds whose objects quotas count.
	Kinds func(ctx context.Context) ([]schema.GroupResource, error)
}

// Budget is the budget of a tenant, with the projects in the cluster and what a commit makes of them.
type Budget struct {
	plan.Budget
	terms  quota.Terms
	shares *quota.Shares
	// at is the index of each project in Shares, and quotas what the projects in the cluster request.
	at     map[string]int
	quotas map[string]corev1.ResourceList
}

// Of returns the budget of a tenant with its projects in the cluster; nil if neither the Tenant has a budget nor one of its policies says anything
// about quotas. A project counts until it is gone.
func (b *Budgets) Of(ctx context.Context, tenant *v1alpha1.Tenant) (*Budget, error) {
	policies := &v1alpha1.PolicyList{}
	err := b.Reader.List(ctx, policies, client.UnsafeDisableDeepCopy)
	if err != nil && !apierrors.IsForbidden(err) && !meta.IsNoMatchError(err) { // Who plans a commit may not see policies; an older cluster has none.
		return nil, fmt.Errorf("listing the policies: %w", err)
	}
	under, _ := guardrails.Select(tenant, policies.Items)
	if len(tenant.Spec.Budget) == 0 && !limited(under) {
		return nil, nil
	}
	projects := &v1alpha1.ProjectList{}
	if err := b.Reader.List(ctx, projects, client.InNamespace(v1alpha1.HomeNamespace(tenant.Name)), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the projects of %s: %w", tenant.Name, err)
	}
	kinds, err := b.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	of := NewBudget(tenant, under, kinds)
	for i := range projects.Items {
		of.has(&projects.Items[i])
	}
	return of, nil
}

// limited reports whether a policy says anything about quotas.
func limited(policies []v1alpha1.Policy) bool {
	return slices.ContainsFunc(policies, func(p v1alpha1.Policy) bool { return p.Spec.Quota != nil })
}

// NewBudget returns the budget of a tenant under policies, without projects.
func NewBudget(tenant *v1alpha1.Tenant, policies []v1alpha1.Policy, kinds []schema.GroupResource) *Budget {
	terms := quota.TermsOf(tenant, policies)
	return &Budget{
		Budget: plan.Budget{Tenant: tenant.Name, Limit: tenant.Spec.Budget}, terms: terms, shares: quota.SharesOf(tenant.Spec.Budget, terms, kinds),
		at: map[string]int{}, quotas: map[string]corev1.ResourceList{},
	}
}

// has counts a project in the cluster.
func (b *Budget) has(project *v1alpha1.Project) {
	s := b.share(project)
	s.Has, s.Leaving = b.shares.Of(project.Spec.Quota), project.DeletionTimestamp != nil
	b.quotas[project.Name] = project.Spec.Quota
}

// Declare counts what a commit makes of a project. A project whose quota stays the same wants nothing.
func (b *Budget) Declare(project *v1alpha1.Project) {
	if is, there := b.quotas[project.Name]; there && equality.Semantic.DeepEqual(is, project.Spec.Quota) {
		return
	}
	s := b.share(project)
	s.Wants, s.Requested = b.shares.Of(project.Spec.Quota), project.Spec.Quota
	s.Excess = b.terms.Grown(project.Spec.Quota, b.quotas[project.Name])
}

// Remove counts a project as gone.
func (b *Budget) Remove(project string) {
	if i, there := b.at[project]; there {
		b.Shares[i].Wants = corev1.ResourceList{}
	}
}

func (b *Budget) share(project *v1alpha1.Project) *plan.Share {
	i, there := b.at[project.Name]
	if !there {
		i = len(b.Shares)
		b.at[project.Name] = i
		b.Shares = append(b.Shares, plan.Share{Project: project.Name, Preview: project.Annotations[v1alpha1.PreviewOfAnnotation] != ""})
	}
	return &b.Shares[i]
}
