package preview

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/reference"
)

// Object is the Project of a preview: with the limits of its parent and the quota of previews. It is deleted with its apps, and has no
// previews itself.
func Object(parent *v1alpha1.Project, name string) *v1alpha1.Project {
	return &v1alpha1.Project{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ProjectKind},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ProjectSpec{
			Quota: parent.Spec.Previews.Quota, Limits: parent.Spec.Limits, Pace: parent.Spec.Pace,
			Network:        v1alpha1.ProjectNetwork{Policies: parent.Spec.Network.Policies},
			DeletionPolicy: v1alpha1.DeletionDelete, ClaimDeletionPolicy: parent.Spec.ClaimDeletionPolicy,
		},
	}
}

// Adapt changes an app of a branch for its preview: its hosts follow the pattern, or are left out without one, and its dependencies on apps
// of the parent become those on apps of the preview. An image that a policy would write to Git is that of the branch's file, if the file has
// one; nothing is written to the branch that the Repository follows.
func Adapt(app *v1alpha1.App, parent, preview, pattern string) {
	spec := &app.Spec
	for i := range spec.DependsOn {
		if on := &spec.DependsOn[i]; on.Project == parent && !on.Platform {
			on.Project = ""
		}
	}
	if i := spec.Image; i != nil && i.Policy != nil && i.Policy.Write != "" {
		i.Policy.Write = ""
		if reference.Name(i.Reference) != i.Reference {
			i.Policy = nil // The file says which one.
		}
	}
	if pattern == "" {
		spec.Host, spec.Hosts, spec.Ingress = "", nil, nil
		return
	}
	rewrite := func(host string) string {
		return strings.NewReplacer("{branch}", strings.TrimPrefix(preview, parent+infix), "{host}", host).Replace(pattern)
	}
	if spec.Host != "" {
		spec.Host = rewrite(spec.Host)
	}
	for i := range spec.Hosts {
		spec.Hosts[i].Host = rewrite(spec.Hosts[i].Host)
	}
}
