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

// state is how an object in the cluster compares with what is declared.
type state int

const (
	// other has to be applied.
	other state = iota
	// same is as declared.
	same
	// homeless has no namespace yet that could hold it.
	homeless
)

// compare makes the object that a folder declares and compares it with the one in the cluster, by the cache.
func (r *Reconciler) compare(ctx context.Context, s *scope, n tree.Node) (client.Object, state, error) {
	o := s.progress.tree.Object(n, s.commit.Revision)
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
	housed, err := r.housed(ctx, n.Ref(), live)
	if !housed {
		return o, homeless, err
	}
	return o, other, err
}

// keepRevision keeps the revision of an app if its folder did not change, so that a commit writes only the apps that it changes.
func keepRevision(o, live client.Object) {
	was := live.GetAnnotations()[v1alpha1.RevisionAnnotation]
	annotations := o.GetAnnotations()
	if annotations[v1alpha1.RevisionAnnotation] != "" && was != "" && live.GetAnnotations()[v1alpha1.TreeAnnotation] == annotations[v1alpha1.TreeAnnotation] {
		annotations[v1alpha1.RevisionAnnotation] = was
	}
}

// asDeclared reports whether the live object is what an apply of the declared one would leave: kubeop applied it, it has all of
// that, was made from the same file, and no person added to it. Fields that left the file came with another hash of it.
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

// holds reports whether a value has all that is wanted of it. Defaults may be added to it, also in the items of lists.
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

// housed reports whether an object can be applied: its namespace is there, and neither that nor the project or tenant it
// belongs to, nor an object of its own name, is being deleted. What is declared then comes back when they are gone.
func (r *Reconciler) housed(ctx context.Context, ref identity.Ref, live client.Object) (bool, error) {
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

// declared turns a declared object into what is applied: nothing the file does not say, so that defaults stay the API
// server's.
func declared(o client.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", o.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	// Its controller would add it before anything else, in a request of its own.
	u.SetFinalizers([]string{v1alpha1.Finalizer})
	return u, nil
}

// recorded says of an object that is there whether kubeop applied it: that is what its fields' owners say, whatever became of
// its labels.
func (r *Reconciler) recorded(ctx context.Context, o client.Object) []v1alpha1.InventoryEntry {
	live, _, err := r.Watch.Live(ctx, o.GetObjectKind().GroupVersionKind(), client.ObjectKeyFromObject(o))
	if err != nil || live == nil || !fieldmanager.Applied(live) {
		return nil
	}
	return []v1alpha1.InventoryEntry{{ID: inventory.IDOf(o).String(), Version: v1alpha1.GroupVersion.Version, Digest: "applied"}}
}

// pathOf returns the path as the file system names it.
func pathOf(path string) string {
	if path == "" {
		return "."
	}
	return path
}

// placeOf says where a repository's files are, for status.appliedSource.
func placeOf(repository *v1alpha1.Repository) string {
	return strings.TrimSuffix(repository.Spec.URL, "/") + "#" + repository.Spec.Path
}
