package offline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/layout"
	"github.com/kubeop/kubeop/gitops/tree"
)

// terms are what the platform repository says about the tenant whose own repository is checked.
type terms struct {
	// tenant is nil if nothing is known.
	tenant *v1alpha1.Tenant
	// policies are those that the tenant is under, and ruled says that they are known.
	policies []v1alpha1.Policy
	ruled    bool
	// placement has the clusters that the platform repository declares, and those of the tenant; none if that is not known.
	placement tree.Placement
}

// termsOf reads what the flags --tenant-file and --policies name, for the repository of a scope.
func (v *validate) termsOf(ctx context.Context, scope tree.Scope) (*terms, error) {
	s := &terms{ruled: v.policies != ""}
	if v.tenantFile != "" {
		text, err := os.ReadFile(v.tenantFile)
		if err != nil {
			return nil, err
		}
		s.tenant = &v1alpha1.Tenant{}
		if err := yaml.UnmarshalStrict(text, s.tenant); err != nil {
			return nil, fmt.Errorf("%s is no tenant.yaml: %w", v.tenantFile, err)
		}
	}
	if !s.ruled {
		return s, nil
	}
	if scope.Tenant == "" {
		return nil, errors.New("--policies is for the repository of a tenant: the platform's is checked by its own policies")
	}
	platform, err := v.platform(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the policies in %s: %w", v.policies, err)
	}
	if s.tenant == nil {
		if s.tenant, err = declaredTenant(platform, scope.Tenant); err != nil {
			return nil, fmt.Errorf("reading the tenant in %s: %w", v.policies, err)
		}
	}
	under, missing := guardrails.Select(s.tenant, platform.DeclaredPolicies())
	if len(missing) > 0 {
		return nil, fmt.Errorf("spec.policies of the tenant names what %s does not have: %s", v.policies, strings.Join(missing, ", "))
	}
	s.policies, s.placement = under, tree.Placement{Rules: platform.Rules(), Tenant: s.tenant.Spec.Clusters}
	return s, nil
}

// platform reads the platform repository in or around the folder of the flag --policies.
func (v *validate) platform(ctx context.Context) (*tree.Tree, error) {
	root, err := topFolder(v.policies)
	if err != nil {
		return nil, err
	}
	files, err := openWorktree(ctx, root)
	if err != nil {
		return nil, err
	}
	if !hasFolder(files, layout.PoliciesFolder) && !hasFolder(files, layout.TenantsFolder) {
		return nil, fmt.Errorf("it is in no platform repository: %s has neither a folder %s nor %s", root, layout.PoliciesFolder, layout.TenantsFolder)
	}
	t := v.reader.Read(files, tree.Scope{Repository: v1alpha1.PlatformRepository}, nil)
	wrong := t.Problems
	for _, policy := range t.Policies {
		wrong = append(wrong, policy.Problems()...)
	}
	if len(wrong) > 0 { // Rules that are not known may be those that refuse.
		return nil, errors.New(wrong[0].String())
	}
	if file, err := t.Unread(); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return t, nil
}

// declaredTenant returns the tenant of a platform repository.
func declaredTenant(platform *tree.Tree, name string) (*v1alpha1.Tenant, error) {
	ref := identity.Ref{Tenant: name}
	tenant, declared := platform.Declared(ref).(*v1alpha1.Tenant)
	if declared {
		return tenant, nil
	}
	if node, there := platform.Find(ref); there && len(node.Problems()) > 0 {
		return nil, errors.New(node.Problems()[0].String())
	}
	return nil, fmt.Errorf("it has no tenants/%s/tenant.yaml; name the tenant with --tenant, or its file with --tenant-file", name)
}
