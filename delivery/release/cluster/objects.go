package cluster

import (
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/kube"
	helm "helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/kubeop/kubeop/delivery/finalizer"
	"github.com/kubeop/kubeop/delivery/release/manifest"
)

// Metadata by which Helm knows the objects of a release.
const (
	ManagedByLabel      = "app.kubernetes.io/managed-by"
	ManagedByHelm       = "Helm"
	NameAnnotation      = "meta.helm.sh/release-name"
	NamespaceAnnotation = "meta.helm.sh/release-namespace"
)

// Objects are the objects of a release in the cluster.
type Objects struct {
	Client  *Client
	Release types.NamespacedName
	// App is the value of its app's label.
	App string
}

// Identify returns the identity of an object of a manifest of the release.
func (o Objects) Identify(u *unstructured.Unstructured) manifest.Identity {
	return manifest.Identify(u, o.Release.Namespace)
}

// RemoveLeftovers deletes the objects of the revisions that no manifest of keep has.
func (o Objects) RemoveLeftovers(revisions []*helm.Release, keep []string) error {
	goes, err := o.without(revisions, keep)
	if err != nil {
		return err
	}
	for _, u := range goes {
		if err := o.Remove(u); err != nil {
			return fmt.Errorf("removing %s/%s, which a failed attempt left: %w", u.GetKind(), u.GetName(), err)
		}
	}
	return nil
}

// without returns the objects of the revisions that no manifest of keep has.
func (o Objects) without(revisions []*helm.Release, keep []string) ([]*unstructured.Unstructured, error) {
	seen := map[manifest.Identity]bool{}
	for _, text := range keep {
		docs, err := manifest.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("reading what the release keeps: %w", err)
		}
		for _, u := range manifest.Objects(docs) {
			seen[o.Identify(u)] = true
		}
	}
	all, err := o.of(revisions)
	return slices.DeleteFunc(all, func(u *unstructured.Unstructured) bool { return seen[o.Identify(u)] }), err
}

// Remove deletes an object of the release, unless the chart wants it kept or it holds data. What is somebody else's by now stays.
func (o Objects) Remove(u *unstructured.Unstructured) error {
	info, err := o.live(u)
	if info == nil || err != nil || kept(info.Object) {
		return err
	}
	if info.Namespace == "" {
		return o.Client.deleteShared(info, metav1.DeletePropagationBackground, kept)
	}
	live, err := unstructuredOf(info.Object)
	if err != nil {
		return err
	}
	return o.Client.deleteLive(info, live, metav1.DeletePropagationBackground)
}

// Remaining returns those of the objects that are still there, except those that have a resource policy, and claims that hold data,
// which no action deletes; and of each what holds it.
func (o Objects) Remaining(all []*unstructured.Unstructured) (left []*unstructured.Unstructured, holds []string, err error) {
	for _, u := range all {
		info, err := o.live(u)
		if err != nil {
			return nil, nil, fmt.Errorf("looking for %s/%s: %w", u.GetKind(), u.GetName(), err)
		}
		// Helm's uninstall leaves an object whose manifest has a policy, be it one that Helm does not know.
		_, policy := u.GetAnnotations()[kube.ResourcePolicyAnno]
		if info != nil && !kept(info.Object) && !policy && !stays(info.Object) {
			live, err := meta.Accessor(info.Object)
			if err != nil {
				return nil, nil, fmt.Errorf("looking for %s/%s: %w", u.GetKind(), u.GetName(), err)
			}
			left, holds = append(left, u), append(holds, finalizer.Holds(u.GetKind(), live))
		}
	}
	return left, holds, nil
}

// of returns the objects of the revisions, each once, as the newest revision has it.
func (o Objects) of(revisions []*helm.Release) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	seen := map[manifest.Identity]bool{}
	for i := len(revisions) - 1; i >= 0; i-- {
		docs, err := manifest.Parse(revisions[i].Manifest)
		if err != nil {
			return nil, fmt.Errorf("reading revision %d: %w", revisions[i].Version, err)
		}
		for _, u := range manifest.Objects(docs) {
			if id := o.Identify(u); !seen[id] {
				seen[id] = true
				out = append(out, u)
			}
		}
	}
	return out, nil
}

// live returns the object as the cluster has it; nil when it is not there, not the release's, of another namespace, or of a
// kind that is gone.
func (o Objects) live(u *unstructured.Unstructured) (*resource.Info, error) {
	list, err := build(o.Client, []manifest.Document{{Objects: []*unstructured.Unstructured{u}}})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	info := list[0]
	if info.Namespace == "" {
		return o.liveShared(info)
	}
	if info.Namespace != o.Release.Namespace {
		return nil, nil
	}
	// The info's own Get would ask for the namespace too when the object is gone.
	info.Object, err = resource.NewHelper(info.Client, info.Mapping).Get(info.Namespace, info.Name)
	if apierrors.IsNotFound(err) || err == nil && !o.owns(info.Object) {
		return nil, nil
	}
	return info, err
}

func (o Objects) owns(object any) bool {
	m, err := meta.Accessor(object)
	if err != nil {
		return false
	}
	return m.GetAnnotations()[NameAnnotation] == o.Release.Name &&
		m.GetAnnotations()[NamespaceAnnotation] == o.Release.Namespace
}

// Claim marks an object as Helm does when it applies it.
func (o Objects) Claim(u *unstructured.Unstructured) {
	labels, annotations := u.GetLabels(), u.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[ManagedByLabel] = ManagedByHelm
	annotations[NameAnnotation], annotations[NamespaceAnnotation] = o.Release.Name, o.Release.Namespace
	u.SetLabels(labels)
	u.SetAnnotations(annotations)
}

// kept is whether a chart wants the object to outlive its release.
func kept(object any) bool {
	m, err := meta.Accessor(object)
	if err != nil {
		return false
	}
	return strings.EqualFold(strings.TrimSpace(m.GetAnnotations()[kube.ResourcePolicyAnno]), kube.KeepPolicy)
}

// Applied is an object of a revision: its name, for many are held until somebody asks.
type Applied struct {
	Ref
	// Live is what the API server answered when the action that made the revision wrote it: UID, resourceVersion and
	// managedFields. Else nil.
	Live metav1.Object
}

// AppliedAs tells of an object what the API server answered, which may be nothing.
func AppliedAs(u, live *unstructured.Unstructured) Applied {
	a := Applied{Ref: Ref{u.GroupVersionKind(), u.GetNamespace(), u.GetName()}}
	if live != nil {
		a.Live = &metav1.ObjectMeta{UID: live.GetUID(), ResourceVersion: live.GetResourceVersion(), ManagedFields: live.GetManagedFields()}
	}
	return a
}
