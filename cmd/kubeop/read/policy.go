package read

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// policy shows the rules of a policy and, to those who may list tenants, the tenants that are under it.
func (d *describe) policy(ctx context.Context, reader client.Client, policy *v1alpha1.Policy) error {
	d.page.Field("Declared in", policy.Annotations[v1alpha1.FolderAnnotation])
	if policy.Spec.Default {
		d.page.Field("Default", "yes: it holds for tenants that name no policy")
	}
	d.page.Title("Rules")
	if of := policy.Spec.Images; of != nil {
		d.rule("images", of.Action, "allow", of.Allow, "deny", of.Deny, "", when(of.RequireDigest, "only by digest"))
	}
	if of := policy.Spec.Services; of != nil {
		d.rule("services", of.Action, "types", of.Types, "load balancers", of.LoadBalancerClasses)
	}
	if of := policy.Spec.Hostnames; of != nil {
		d.rule("hostnames", of.Action, "in", of.Suffixes, "", when(of.Wildcards, "also with wildcards"))
	}
	if of := policy.Spec.Classes; of != nil {
		d.rule("classes", of.Action, "storage", of.Storage, "ingress", of.Ingress, "runtime", of.Runtime)
	}
	tenants := &v1alpha1.TenantList{}
	err := reader.List(ctx, tenants)
	switch {
	case apierrors.IsForbidden(err): // Only administrators may list tenants.
		d.list("Tenants that are under it", []string{"Your role does not show them."})
		return nil
	case err != nil:
		return fmt.Errorf("listing the tenants that are under policy %s: %w", policy.Name, err)
	}
	var under []string
	for i := range tenants.Items {
		if names := tenants.Items[i].Spec.Policies; slices.Contains(names, policy.Name) || len(names) == 0 && policy.Spec.Default {
			under = append(under, tenants.Items[i].Name)
		}
	}
	d.list("Tenants that are under it", under)
	return nil
}

// rule shows the rules about one subject, as pairs of what they limit and its values.
func (d *describe) rule(of string, action v1alpha1.PolicyAction, pairs ...any) {
	cells := []string{of, string(action)}
	for i := 0; i < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		if values, _ := pairs[i+1].([]string); len(values) > 0 {
			cells = append(cells, strings.TrimSpace(name+" "+strings.Join(values, ", ")))
		}
	}
	d.page.Line(cells...)
}

// when returns words if they are true.
func when(is bool, words string) []string {
	if is {
		return []string{words}
	}
	return nil
}
