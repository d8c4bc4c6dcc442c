package repository

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/apply"
)

// keepRevision leaves the revision of an app whose folder did not change as it was, so that a commit writes only the apps
// it is about.
func (r *Reconciler) keepRevision(ctx context.Context, o client.Object) error {
	app, ok := o.(*v1alpha1.App)
	if !ok {
		return nil
	}
	live := &v1alpha1.App{}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(app), live)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading app %s/%s: %w", app.Namespace, app.Name, err)
	}
	was := live.Annotations[v1alpha1.RevisionAnnotation]
	if was != "" && live.Annotations[v1alpha1.TreeAnnotation] == app.Annotations[v1alpha1.TreeAnnotation] {
		app.Annotations[v1alpha1.RevisionAnnotation] = was
	}
	return nil
}

// housed reports whether an object can be applied: its namespace is there, and neither that nor the project or tenant it
// belongs to, nor an object of its own name, is being deleted. What is declared then comes back when they are gone.
func (r *Reconciler) housed(ctx context.Context, o client.Object) (bool, error) {
	var home client.Object
	tenant := o.GetLabels()[v1alpha1.TenantLabel]
	switch o.(type) {
	case *v1alpha1.App:
		home = &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.HomeNamespace(tenant), Name: o.GetLabels()[v1alpha1.ProjectLabel]}}
	case *v1alpha1.Project:
		home = &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: tenant}}
	default:
		return true, nil
	}
	same := o.DeepCopyObject().(client.Object)
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(o), same); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading %s: %w", o.GetName(), err)
	}
	if same.GetDeletionTimestamp() != nil {
		return false, nil
	}
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(home), home); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading %s: %w", home.GetName(), err)
	}
	if home.GetDeletionTimestamp() != nil {
		return false, nil
	}
	live, err := r.Watch.Namespace(ctx, o.GetNamespace())
	return err == nil && live != nil && live.GetDeletionTimestamp() == nil, err
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

// entriesOf returns what is recorded of an object.
func entriesOf(recorded []v1alpha1.InventoryEntry, o client.Object) []v1alpha1.InventoryEntry {
	id := apply.IDOf(o).String()
	for _, e := range recorded {
		if e.ID == id {
			return []v1alpha1.InventoryEntry{e}
		}
	}
	return nil
}

// heldName is how a person finds a recorded object: "<kind> <namespace>/<name>".
func heldName(e v1alpha1.InventoryEntry) string {
	id, err := apply.ParseObjectID(e.ID)
	if err != nil {
		return e.ID
	}
	return fmt.Sprintf("%s %s", id.Kind, strings.TrimPrefix(id.Namespace+"/"+id.Name, "/"))
}

// fileOf returns the file that declares an object.
func fileOf(unit []client.Object, id apply.ObjectID) string {
	for _, o := range unit {
		if apply.IDOf(o) != id {
			continue
		}
		if folder := o.GetAnnotations()[v1alpha1.FolderAnnotation]; folder != "" {
			return folder + "/" + map[string]string{"App": "app.yaml", "Project": "project.yaml", "Tenant": "tenant.yaml"}[id.Kind]
		}
	}
	return id.Kind + "/" + id.Name
}

// pathOf returns the path as the file system names it.
func pathOf(path string) string {
	if path == "" {
		return "."
	}
	return path
}
