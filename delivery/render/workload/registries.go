package workload

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fieldmanager"
)

var jobs = schema.GroupKind{Group: "batch", Kind: "Job"}

// podPaths are the paths of the pod specs in the kinds that an Image app is rendered to.
var podPaths = map[schema.GroupKind][]string{
	{Group: "apps", Kind: "Deployment"}: {"spec", "template", "spec"},
	{Group: "batch", Kind: "CronJob"}:   {"spec", "jobTemplate", "spec", "template", "spec"},
	jobs:                                {"spec", "template", "spec"},
}

// PodPath returns the path of the pod spec in an object of an Image app, with the fields below it; nil if the object makes no pods.
func PodPath(o *unstructured.Unstructured, below ...string) []string {
	path, ok := podPaths[o.GroupVersionKind().GroupKind()]
	if !ok {
		return nil
	}
	return slices.Concat(path, below)
}

const pullSecrets = "imagePullSecrets"

// WithoutRegistries returns the objects of an app without the names of the Registries' Secrets that kubeop added to the pods of an Image app. A
// Registry comes and goes without a change of the app, so what runs once for each change of the app does not run for a Registry.
func WithoutRegistries(app *v1alpha1.App, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	out := slices.Clone(objects)
	for i, o := range objects {
		if own, added := secretsOf(app, o); len(added) > 0 {
			out[i] = withSecrets(o, own)
		}
	}
	return out
}

// KeepSecrets returns a function that gives the Job of an Image app the names of Registries' Secrets with which the live Job was made: a Job
// cannot be changed, and must not run again for a Registry. Other objects are returned unchanged. The names of Registries' Secrets are sorted when a Job is made.
func KeepSecrets(app *v1alpha1.App) func(o *unstructured.Unstructured, live metav1.Object) *unstructured.Unstructured {
	return func(o *unstructured.Unstructured, live metav1.Object) *unstructured.Unstructured {
		if app.Spec.Image == nil || o.GroupVersionKind().GroupKind() != jobs {
			return o
		}
		own, added := secretsOf(app, o)
		made := fieldmanager.ItemNames(live, PodPath(o, pullSecrets))
		made = slices.DeleteFunc(made, func(name string) bool { return !ofRegistry(app, name) })
		slices.Sort(made)
		if slices.Equal(made, added) {
			return o
		}
		for _, name := range made {
			own = append(own, map[string]any{"name": name})
		}
		return withSecrets(o, own)
	}
}

// secretsOf returns the pull Secrets that the pods of an object name because the app says so, and the names of those that kubeop added.
func secretsOf(app *v1alpha1.App, o *unstructured.Unstructured) (own []any, added []string) {
	path := PodPath(o, pullSecrets)
	if path == nil || app.Spec.Image == nil {
		return nil, nil
	}
	all, _, _ := unstructured.NestedSlice(o.Object, path...)
	for _, ref := range all {
		fields, _ := ref.(map[string]any)
		if name, _ := fields["name"].(string); ofRegistry(app, name) {
			added = append(added, name)
			continue
		}
		own = append(own, ref)
	}
	return own, added
}

// ofRegistry reports whether a pull Secret is one of a Registry that the app does not name itself.
func ofRegistry(app *v1alpha1.App, name string) bool {
	return strings.HasPrefix(name, v1alpha1.PullSecretPrefix) && !slices.ContainsFunc(app.Spec.Image.PullSecrets, func(s v1alpha1.LocalSecretReference) bool { return s.Name == name })
}

// withSecrets returns a copy of an object whose pods name these pull Secrets.
func withSecrets(o *unstructured.Unstructured, secrets []any) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: maps.Clone(o.Object)}
	at := out.Object
	for _, name := range PodPath(o) {
		inner, ok := at[name].(map[string]any)
		if !ok {
			return o
		}
		inner = maps.Clone(inner)
		at[name], at = inner, inner
	}
	if at[pullSecrets] = secrets; len(secrets) == 0 {
		delete(at, pullSecrets)
	}
	return out
}
