// Package own labels objects as an app's. Apart from filled-in security contexts, this is the only change between rendering and applying.
package own

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Owner is the app that objects belong to.
type Owner struct {
	// Tenant, Project and App are the names in the labels.
	Tenant, Project, App string
	// Namespace is the project's namespace. Every object of a tenant's app is in it.
	Namespace string
}

// Stamp puts the objects into the owner's namespace and sets the owner labels, which are those of tenant, project and app. Pods made from
// a template in the objects get the labels too, so that `kubectl get pods -l paas.kubeop.io/app=shop` finds them.
//
// An app of the platform itself may have objects in other namespaces, which keep their namespace.
//
// Objects are changed in place; stamping twice changes nothing. Check the objects with delivery/policy first: Stamp overwrites a foreign
// namespace or owner, and sets a namespace also on cluster-scoped objects.
func (o Owner) Stamp(objects []*unstructured.Unstructured) {
	for _, object := range objects {
		if o.Tenant != v1alpha1.PlatformTenant || object.GetNamespace() == "" {
			object.SetNamespace(o.Namespace)
		}
		o.label(object.Object)
		if template := podTemplate(object); template != nil {
			o.label(template)
		}
	}
}

// WithoutPodLabels returns the object without the owner's labels in its pod template; the object itself if it has none there. A change of
// these labels alone must not restart pods, for example when an app takes over workloads that run already.
func WithoutPodLabels(object *unstructured.Unstructured) *unstructured.Unstructured {
	if len(podLabels(object)) == 0 {
		return object
	}
	object = object.DeepCopy()
	labels, _, _ := unstructured.NestedFieldNoCopy(podTemplate(object), "metadata", "labels")
	for _, label := range ofApps {
		delete(labels.(map[string]any), label)
	}
	return object
}

// WithPodsOf returns the object with another app of the project in the labels of its pod template, and marked with it; the object itself if
// the template has no such label.
func WithPodsOf(object *unstructured.Unstructured, app string) *unstructured.Unstructured {
	if _, ok := podLabels(object)[v1alpha1.AppLabel]; !ok {
		return object
	}
	object = object.DeepCopy()
	labels, _, _ := unstructured.NestedFieldNoCopy(podTemplate(object), "metadata", "labels")
	labels.(map[string]any)[v1alpha1.AppLabel] = app
	mark := object.GetLabels()
	if mark == nil {
		mark = map[string]string{}
	}
	mark[v1alpha1.PodsOfLabel] = app
	object.SetLabels(mark)
	return object
}

// PodsOf returns the other app that the pod template of a live object names, if the object is marked with it; "" otherwise.
func PodsOf(live *unstructured.Unstructured) string {
	if app := live.GetLabels()[v1alpha1.PodsOfLabel]; app != "" && podLabels(live)[v1alpha1.AppLabel] == app {
		return app
	}
	return ""
}

// AddPodLabels adds the owner's labels in the object's pod template to a patch of the object that changes the template anyway. It reports
// whether it changed the patch.
func AddPodLabels(patch map[string]any, object *unstructured.Unstructured) bool {
	labels := podLabels(object)
	found, _, _ := unstructured.NestedFieldNoCopy(patch, templates[object.GroupVersionKind().GroupKind()]...)
	template, changes := found.(map[string]any)
	if len(labels) == 0 || !changes {
		return false
	}
	metadata, ok := child(template, "metadata")
	if !ok {
		return false
	}
	into, ok := child(metadata, "labels")
	if ok {
		maps.Copy(into, labels)
	}
	return ok
}

// PodsLabelled reports whether the pod template of a live object has labels of an owner.
func PodsLabelled(live *unstructured.Unstructured) bool { return len(podLabels(live)) > 0 }

// PodLabelPath returns the path of the app's label in the pod template of an object; nil for a kind without one.
func PodLabelPath(object *unstructured.Unstructured) []string {
	path, ok := templates[object.GroupVersionKind().GroupKind()]
	if !ok {
		return nil
	}
	return slices.Concat(path, []string{"metadata", "labels", v1alpha1.AppLabel})
}

// ofApps is the set of owner labels of an app's objects.
var ofApps = []string{v1alpha1.TenantLabel, v1alpha1.ProjectLabel, v1alpha1.AppLabel}

// podLabels returns the owner's labels in the pod template of an object.
func podLabels(object *unstructured.Unstructured) map[string]any {
	found, _, _ := unstructured.NestedFieldNoCopy(podTemplate(object), "metadata", "labels")
	labels, _ := found.(map[string]any)
	ours := map[string]any{}
	for _, label := range ofApps {
		if value, ok := labels[label]; ok {
			ours[label] = value
		}
	}
	return ours
}

// templates are the paths of the pod templates of kinds, if the templates can be changed. A Job's template cannot: labels on the Jobs of an
// adopted release would make its next upgrade fail for good. The selector does not select by the template's new labels.
var templates = map[schema.GroupKind][]string{
	{Group: "apps", Kind: "DaemonSet"}:   {"spec", "template"},
	{Group: "apps", Kind: "Deployment"}:  {"spec", "template"},
	{Group: "apps", Kind: "ReplicaSet"}:  {"spec", "template"},
	{Group: "apps", Kind: "StatefulSet"}: {"spec", "template"},
	{Group: "batch", Kind: "CronJob"}:    {"spec", "jobTemplate", "spec", "template"},
}

// podTemplate returns the pod template of a workload, or nil.
func podTemplate(object *unstructured.Unstructured) map[string]any {
	path, ok := templates[object.GroupVersionKind().GroupKind()]
	if !ok {
		return nil
	}
	found, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
	template, _ := found.(map[string]any)
	return template
}

// label adds the owner's labels to the metadata of an object or a template. Invalid labels are left as they are; the API server refuses
// them.
func (o Owner) label(object map[string]any) {
	metadata, ok := child(object, "metadata")
	if !ok {
		return
	}
	labels, ok := child(metadata, "labels")
	if !ok {
		return
	}
	maps.Copy(labels, map[string]any{
		v1alpha1.TenantLabel:  o.Tenant,
		v1alpha1.ProjectLabel: o.Project,
		v1alpha1.AppLabel:     o.App,
	})
}

// child returns the mapping at a key, and creates it if there is none; false if the key has another value.
func child(parent map[string]any, key string) (map[string]any, bool) {
	if parent[key] == nil {
		parent[key] = map[string]any{}
	}
	found, ok := parent[key].(map[string]any)
	return found, ok
}
