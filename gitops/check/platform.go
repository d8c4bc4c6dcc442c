package check

import (
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/identity"
)

// isPlatformProject reports whether an object is a Project of the platform itself. Such a Project has the name of its namespace.
func isPlatformProject(at identity.Ref) bool {
	return at.Tenant == v1alpha1.PlatformTenant && at.Kind() == v1alpha1.ProjectKind
}

// reservedNamespace returns why a project of the platform cannot have its name; "" if it can. Namespaces that start with "kubeop-" are for
// tenants and for kubeop itself.
func reservedNamespace(at identity.Ref) string {
	if isPlatformProject(at) && strings.HasPrefix(at.Project, v1alpha1.HomeNamespace("")) {
		return "name must not start with kubeop-, because a project of the platform has the name of its namespace, and those names are kubeop's own"
	}
	return ""
}

// checkPlatform refuses fields that only projects of the platform may set in a tenant's project, and fields that only a tenant's project
// may set in one of the platform.
func (d *Result) checkPlatform(at identity.Ref) {
	if at.Kind() != v1alpha1.ProjectKind {
		return
	}
	spec, _ := d.Value["spec"].(map[string]any)
	if !isPlatformProject(at) {
		if _, set := spec["namespace"]; set {
			d.AddAt(code.WrongScope, "spec.namespace", "spec.namespace: only projects of the platform itself, in platform/<project>/ of the platform repository, may set it; remove it")
		}
		return
	}
	if _, set := spec["network"]; set {
		d.AddAt(code.WrongScope, "spec.network", "spec.network: a project of the platform itself has no network policy; remove it")
	}
	for _, field := range []string{"quota", "limits"} {
		if _, set := spec[field]; set {
			d.AddAt(code.WrongScope, "spec."+field, "spec.%s: a project of the platform itself has no quota and no limits; remove it", field)
		}
	}
}
