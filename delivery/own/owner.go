package own

import (
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// HelmReleaseAnnotation names the release on every object that Helm installs, since Helm 3.2.
const HelmReleaseAnnotation = "meta.helm.sh/release-name"

// SameProject reports whether the owner labels of two objects name the same project, or none.
func SameProject(theirs, ours map[string]string) bool {
	return theirs[v1alpha1.TenantLabel] == ours[v1alpha1.TenantLabel] && theirs[v1alpha1.ProjectLabel] == ours[v1alpha1.ProjectLabel]
}

// SameApp reports whether the owner labels of two objects name the same app of the same project, or none.
func SameApp(theirs, ours map[string]string) bool {
	return SameProject(theirs, ours) && theirs[v1alpha1.AppLabel] == ours[v1alpha1.AppLabel]
}

// HomeOf returns the namespace of the project that the owner labels name.
func HomeOf(labels map[string]string) string {
	return v1alpha1.ProjectNamespace(labels[v1alpha1.TenantLabel], labels[v1alpha1.ProjectLabel])
}

// NotAdopted says why takeOwnership does not adopt a cluster-scoped object. Messages add how administrators hand it over.
const NotAdopted = "it is cluster-scoped and so the administrators', and takeOwnership does not take it over; to hand it over, "

// Describe names the owner in labels, such as "app web of project shop of tenant acme"; project and tenant only if they differ from ours.
func Describe(theirs, ours map[string]string) string {
	var owner []string
	for _, of := range []struct{ label, name string }{
		{v1alpha1.AppLabel, "app"}, {v1alpha1.ProjectLabel, "project"}, {v1alpha1.TenantLabel, "tenant"}, {v1alpha1.RepositoryLabel, "repository"},
	} {
		innermost := len(owner) == 0 && of.label == v1alpha1.AppLabel
		if theirs[of.label] != "" && (innermost || theirs[of.label] != ours[of.label]) {
			owner = append(owner, of.name+" "+theirs[of.label])
		}
	}
	return strings.Join(owner, " of ")
}
