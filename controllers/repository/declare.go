package repository

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fieldmanager"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/tree"
)

// state compares an object in the cluster with the declared one.
type state int

const (
	// other must be applied.
	other state = iota
	// same equals the declared object.
	same
	// blocked cannot be applied yet, see applicable.
	blocked
)

// compare builds the object that a folder declares and compares it with the one in the cache.
func (r *Reconciler) compare(ctx context.Context, s *scope, n tree.Node) (client.Object, state, error) {
	o := s.progress.tree.Object(n, s.commit.Revision)
	nameAuthor(o, s.commit.Author)
	live := o.DeepCopyObject().(client.Object)
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(o), live)
	switch {
	case apierrors.IsNotFound(err):
		live = nil
	case err != nil:
		return nil, other, fmt.Errorf("reading %s: %w", n.Ref(), err)
	default:
		keepRevision(o, live)
	}
	equal, err := asDeclared(o, live)
	if equal || err != nil {
		return o, same, err
	}
	applicable, err := r.applicable(ctx, n.Ref(), live)
	if !applicable {
		return o, blocked, err
	}
	return o, other, err
}

// keepRevision keeps the revision of an app if its folder did not change, so that a commit writes only the apps that it changes.
func keepRevision(o, live client.Object) {
	was := live.GetAnnotations()[v1alpha1.RevisionAnnotation]
	annotations := o.GetAnnotations()
	if annotations[v1alpha1.RevisionAnnotation] != "" && was != "" && live.GetAnnotations()[v1alpha1.TreeAnnotation] == annotations[v1alpha1.TreeAnnotation] {
		annotations[v1alpha1.RevisionAnnotation] = was
		nameAuthor(o, live.GetAnnotations()[v1alpha1.AuthorAnnotation])
	}
}

// nameAuthor names the author of the revision on an app.
func nameAuthor(o client.Object, author string) {
	annotations := o.GetAnnotations()
	delete(annotations, v1alpha1.AuthorAnnotation)
	if annotations[v1alpha1.RevisionAnnotation] != "" && author != "" {
		annotations[v1alpha1.AuthorAnnotation] = author
	}
}

// asDeclared reports whether applying the declared object would change nothing in the live one: kubeop applied it, it has all declared
// fields and the same digest of the file, and no person changed it. If fields were removed from the file, the digest differs.
func asDeclared(o, live client.Object) (bool, error) {
	if live == nil || live.GetDeletionTimestamp() != nil || !fieldmanager.Applied(live) || fieldmanager.ChangedByHand(live) {
		return false, nil
	}
	want, err := declared(o)
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

// applicable reports whether an object can be applied: its namespace exists, and neither the namespace nor its project or tenant, nor an object
// of its own name, is being deleted. While one is, the object waits and is created again afterwards.
func (r *Reconciler) applicable(ctx context.Context, ref identity.Ref, live client.Object) (bool, error) {
	if live != nil && live.GetDeletionTimestamp() != nil {
		return false, nil
	}
	var home client.Object = &v1alpha1.Tenant{}
	switch {
	case ref.App != "":
		home = &v1alpha1.Project{}
	case ref.Project == "":
		return true, nil
	}
	if err := r.Client.Get(ctx, ref.Parent().Key(), home); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading %s: %w", ref.Parent(), err)
	}
	if home.GetDeletionTimestamp() != nil {
		return false, nil
	}
	namespace, err := r.Watch.Namespace(ctx, ref.Key().Namespace)
	return err == nil && namespace != nil && namespace.GetDeletionTimestamp() == nil, err
}

// declared converts a declared object to the object to apply. It has only the fields of the file, so that the API server sets the defaults.
func declared(o client.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", o.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	// Otherwise its controller would need another request to add it.
	u.SetFinalizers([]string{v1alpha1.Finalizer})
	return u, nil
}

// recorded returns whether kubeop applied an existing object. It depends on the managed fields only, because labels may have been changed.
func (r *Reconciler) recorded(ctx context.Context, o client.Object) []v1alpha1.InventoryEntry {
	live, _, err := r.Watch.Live(ctx, o.GetObjectKind().GroupVersionKind(), client.ObjectKeyFromObject(o))
	if err != nil || live == nil || !fieldmanager.Applied(live) {
		return nil
	}
	return []v1alpha1.InventoryEntry{{ID: inventory.IDOf(o).String(), Version: v1alpha1.GroupVersion.Version, Digest: "applied"}}
}

// pathOf returns the path in the form of fs.FS.
func pathOf(path string) string {
	if path == "" {
		return "."
	}
	return path
}

// placeOf returns the URL and path of a repository's files, for status.appliedSource.
func placeOf(repository *v1alpha1.Repository) string {
	return strings.TrimSuffix(repository.Spec.URL, "/") + "#" + repository.Spec.Path
}
