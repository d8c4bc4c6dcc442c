package tree

import (
	"encoding/json"
	"maps"
	"path"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/layout"
)

// decode decodes the object that the node stores as JSON.
func decode[T client.Object](n *node, object T) T {
	if err := json.Unmarshal(n.object, object); err != nil {
		panic(err) // node.take encoded it from the same type.
	}
	return object
}

// Object returns the object that a folder declares. The path and the repository decide its kind, its namespace, and kubeop's labels and
// annotations; everything else is from the file. The API server adds the defaults. revision is the commit of the tree, as
// "branch@sha1:<commit>".
func (t *Tree) Object(n Node, revision string) client.Object {
	self := n.self()
	ref := self.ref
	labels := map[string]string{v1alpha1.RepositoryLabel: t.Scope.Repository}
	if ref.Tenant != "" {
		labels[v1alpha1.TenantLabel] = ref.Tenant
	}
	annotations := map[string]string{v1alpha1.FolderAnnotation: path.Join(t.Scope.Path, self.dir), v1alpha1.TreeAnnotation: self.file}
	if from := t.OriginOf(ref); from != nil {
		annotations[v1alpha1.PreviewOfAnnotation], annotations[v1alpha1.BranchAnnotation] = from.Of, few.Printable(from.Branch)
		revision = from.Revision
	}
	var object client.Object
	switch {
	case ref.Policy != "":
		object = decode(self, &v1alpha1.Policy{})
	case ref.Registry != "":
		object = decode(self, &v1alpha1.Registry{})
		annotations[v1alpha1.SecretRefAnnotation] = self.field.In(annotations[v1alpha1.FolderAnnotation])
	case ref.PriceList != "":
		object = decode(self, &v1alpha1.PriceList{})
		annotations[v1alpha1.RevisionAnnotation] = revision
	case ref.Cluster != "":
		object = decode(self, &v1alpha1.Cluster{})
	case ref.App != "":
		object = decode(self, &v1alpha1.App{})
		labels[v1alpha1.ProjectLabel], labels[v1alpha1.AppLabel] = ref.Project, ref.App
		annotations[v1alpha1.RevisionAnnotation] = revision
	case ref.Project != "":
		object = decode(self, &v1alpha1.Project{})
		labels[v1alpha1.ProjectLabel] = ref.Project
	default:
		tenant := decode(self, &v1alpha1.Tenant{})
		if len(tenant.Spec.Budget) > 0 {
			annotations[v1alpha1.BudgetAnnotation] = self.field.In(layout.Join(annotations[v1alpha1.FolderAnnotation], layout.TenantFile))
		}
		object = tenant
	}
	object.SetNamespace(ref.Key().Namespace)
	object.SetLabels(merged(object.GetLabels(), labels))
	object.SetAnnotations(merged(object.GetAnnotations(), annotations))
	return object
}

// Declared returns the object that the commit declares for a Ref, nil for none.
func (t *Tree) Declared(ref identity.Ref) client.Object {
	if n, there := t.Find(ref); there && n.Declared() {
		return t.Object(n, "")
	}
	return nil
}

// ProjectsOf returns the projects of a tenant, with previews, sorted by name.
func (t *Tree) ProjectsOf(tenant string) []*Project {
	if found := find(t.Tenants, tenant); found != nil {
		return found.Projects
	}
	return nil
}

// DeclaredPolicies returns the Policies that the commit declares, sorted by name.
func (t *Tree) DeclaredPolicies() []v1alpha1.Policy {
	var all []v1alpha1.Policy
	for _, n := range t.Policies {
		if n.Declared() {
			policy := decode(&n.node, &v1alpha1.Policy{})
			policy.Name = n.ref.Policy
			all = append(all, *policy)
		}
	}
	return all
}

// File returns the path of the file that declares an object, from the root of the repository.
func (t *Tree) File(n Node) string {
	if ref := n.Ref(); ref.OneFile() {
		return path.Join(t.Scope.Path, ref.File(true))
	}
	name := map[string]string{v1alpha1.AppKind: layout.AppFile, v1alpha1.ProjectKind: layout.ProjectFile, v1alpha1.TenantKind: layout.TenantFile}[n.Ref().Kind()]
	return path.Join(t.Scope.Path, n.self().dir, name)
}

func merged(written, stamped map[string]string) map[string]string {
	all := make(map[string]string, len(written)+len(stamped))
	maps.Copy(all, written)
	maps.Copy(all, stamped)
	return all
}
