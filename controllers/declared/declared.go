// Package declared compares what a commit declares with what is in the cluster: which objects a commit changes, and what the deletion of others
// would lose. It writes nothing.
package declared

import (
	"fmt"
	"path"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fieldmanager"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/layout"
	"github.com/kubeop/kubeop/gitops/placement"
)

// FromGit reports whether an object was declared from a folder or a file: either kubeop's field manager applied it, or it was restored from a backup,
// which keeps the annotations and may drop the managed fields. If the name differs from that of the folder, or of the
// file of a kind that has a file for each object, a person made a copy.
func FromGit(o client.Object) bool {
	name := path.Base(o.GetAnnotations()[v1alpha1.FolderAnnotation])
	if ref, _ := identity.Of(o); ref.OneFile() {
		name = layout.NameOf(name)
	}
	return fieldmanager.Applied(o) || name == o.GetName()
}

// KeepRevision keeps the revision of an app or a price list if what declares it did not change, so that a commit writes only what it changes.
func KeepRevision(o, live client.Object) {
	was := live.GetAnnotations()[v1alpha1.RevisionAnnotation]
	annotations := o.GetAnnotations()
	if annotations[v1alpha1.RevisionAnnotation] != "" && was != "" && live.GetAnnotations()[v1alpha1.TreeAnnotation] == annotations[v1alpha1.TreeAnnotation] {
		annotations[v1alpha1.RevisionAnnotation] = was
		NameAuthor(o, live.GetAnnotations()[v1alpha1.AuthorAnnotation])
	}
}

// NameAuthor names the author of the revision on an app or a price list.
func NameAuthor(o client.Object, author string) {
	annotations := o.GetAnnotations()
	delete(annotations, v1alpha1.AuthorAnnotation)
	if annotations[v1alpha1.RevisionAnnotation] != "" && author != "" {
		annotations[v1alpha1.AuthorAnnotation] = author
	}
}

// Same reports whether applying the declared object would change nothing in the live one: kubeop applied it, it has all declared
// fields and the same digest of the file, and no person changed it. If fields were removed from the file, the digest differs.
func Same(o, live client.Object) (bool, error) {
	if live == nil || live.GetDeletionTimestamp() != nil || !fieldmanager.Applied(live) || fieldmanager.ChangedByHand(live) {
		return false, nil
	}
	want, err := Manifest(o)
	if err != nil {
		return false, err
	}
	is, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return false, fmt.Errorf("encoding %s: %w", live.GetName(), err)
	}
	for field, value := range want.Object {
		if field != "kind" && field != "apiVersion" && !holds(is[field], value) {
			return false, nil
		}
	}
	return true, nil
}

// holds reports whether a value contains all wanted fields. It may have more, because of defaults, also in the items of lists.
func holds(is, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		is, ok := is.(map[string]any)
		for key, value := range want {
			if !ok || !holds(is[key], value) {
				return false
			}
		}
		return ok || len(want) == 0
	case []any:
		is, _ := is.([]any)
		if len(is) != len(want) {
			return false
		}
		for i := range want {
			if !holds(is[i], want[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(is, want)
}

// Manifest converts a declared object to the object to apply. It has only the fields of the file, so that the API server sets the defaults.
func Manifest(o client.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", o.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	switch o.(type) {
	case *v1alpha1.Policy, *v1alpha1.PriceList, *v1alpha1.Cluster: // Nothing is to be done before they go, so nobody would remove their finalizer.
	default: // Otherwise its controller would need another request to add it.
		u.SetFinalizers([]string{v1alpha1.Finalizer})
	}
	return u, nil
}

// Empty returns an empty object of the kind of a Ref.
func Empty(ref identity.Ref) client.Object {
	return map[string]client.Object{
		v1alpha1.PolicyKind: &v1alpha1.Policy{}, v1alpha1.RegistryKind: &v1alpha1.Registry{}, v1alpha1.PriceListKind: &v1alpha1.PriceList{}, v1alpha1.ClusterKind: &v1alpha1.Cluster{},
		v1alpha1.TenantKind: &v1alpha1.Tenant{}, v1alpha1.ProjectKind: &v1alpha1.Project{}, v1alpha1.AppKind: &v1alpha1.App{},
	}[ref.Kind()]
}

// Clusters returns the rules of placement that Clusters make. While a commit that moves the default is applied, several may be the default, and none counts.
func Clusters(all []v1alpha1.Cluster) (r placement.Rules) {
	defaults := 0
	for i := range all {
		r.Clusters = append(r.Clusters, all[i].Name)
		if all[i].Spec.Default {
			r.Default = all[i].Name
			defaults++
		}
	}
	if defaults > 1 {
		r.Default = ""
	}
	slices.Sort(r.Clusters)
	return r
}
