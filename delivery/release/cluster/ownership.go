package cluster

import (
	"strings"

	"helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/own"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/manifest"
)

// The metadata by which Helm recognizes the objects of a release.
const (
	ManagedByLabel      = "app.kubernetes.io/managed-by"
	ManagedByHelm       = "Helm"
	NameAnnotation      = own.HelmReleaseAnnotation
	NamespaceAnnotation = "meta.helm.sh/release-namespace"
)

// Objects are the objects of a release in the cluster.
type Objects struct {
	Client  *Client
	Release types.NamespacedName
	// App is the label value of the release's app.
	App string
	// Platform: the release is of an app of the platform itself, which may have objects in other namespaces.
	Platform bool
}

// shares reports whether objects in the namespace may belong to others: cluster-scoped objects ("") and, for a release of the platform
// itself, objects in other namespaces. Only the labels of its app prove that such an object belongs to the release.
func (o Objects) shares(namespace string) bool {
	return namespace == "" || o.Platform && namespace != o.Release.Namespace
}

// Identify returns the identity of an object of a manifest of the release.
func (o Objects) Identify(u *unstructured.Unstructured) manifest.Identity {
	return manifest.Identify(u, o.Release.Namespace)
}

func (o Objects) owns(object any) bool {
	m, err := meta.Accessor(object)
	if err != nil {
		return false
	}
	return m.GetAnnotations()[NameAnnotation] == o.Release.Name &&
		m.GetAnnotations()[NamespaceAnnotation] == o.Release.Namespace
}

// Claim adds the labels and annotations with which Helm applies an object.
func (o Objects) Claim(u *unstructured.Unstructured) {
	u.SetLabels(labels.Merge(u.GetLabels(), labels.Set{ManagedByLabel: ManagedByHelm}))
	u.SetAnnotations(labels.Merge(u.GetAnnotations(), labels.Set{NameAnnotation: o.Release.Name, NamespaceAnnotation: o.Release.Namespace}))
}

// kept reports whether the chart has an object kept after the release is uninstalled.
func kept(object any) bool {
	m, err := meta.Accessor(object)
	if err != nil {
		return false
	}
	return strings.EqualFold(strings.TrimSpace(m.GetAnnotations()[kube.ResourcePolicyAnno]), kube.KeepPolicy)
}

// ownsShared reports whether a shared object belongs to this release: it has the release's annotations and the labels of its app. An object
// without these labels belongs to the administrators, also if they replaced the release's object by it.
func (o Objects) ownsShared(live *unstructured.Unstructured) bool {
	labels := live.GetLabels()
	home := own.HomeOf(labels)
	return o.owns(live) && labels[decide.AppLabel] == o.App && home == o.Release.Namespace
}

// mayTake reports whether this action may change an existing object. A cluster-scoped object belongs to another tenant or to the
// administrators, so only an app of the platform itself adopts it with takeOwnership.
func (c *Client) mayTake(live *unstructured.Unstructured) bool {
	if c.anotherApp(live) != "" {
		return false
	}
	return c.Release.owns(live) || c.Terms.TakeOwnership && (live.GetNamespace() != "" || c.Release.Platform)
}

// anotherApp returns the app in an object's label, if it is not this release's app. Only kubeop sets that label, so neither takeOwnership
// nor the deletion of a hook ignores it. Outside of the release's namespace, an app with the same name may belong to another project.
func (c *Client) anotherApp(live *unstructured.Unstructured) string {
	labels := live.GetLabels()
	home := own.HomeOf(labels)
	if labels[decide.AppLabel] == c.Terms.App && (live.GetNamespace() == c.Release.Release.Namespace || home == c.Release.Release.Namespace) {
		return ""
	}
	return labels[decide.AppLabel]
}

// hookLeft reports whether a hook of an earlier revision left the object: Helm does not annotate it, but kubeop labels it.
func (c *Client) hookLeft(live *unstructured.Unstructured) bool {
	unmarked := live.GetAnnotations()[NameAnnotation] == ""
	return unmarked && c.Terms.Ran[c.Release.Identify(live)] && live.GetLabels()[decide.AppLabel] == c.Terms.App && c.anotherApp(live) == ""
}

// foreign is the error for an existing object that does not belong to the release, or that belongs to another app.
type foreign struct {
	live       *unstructured.Unstructured
	phase, app string
	release    types.NamespacedName
	// shared: the object is cluster-scoped.
	shared bool
	err    error
}

func (e *foreign) Error() string {
	exists, resource := e.live.GetKind()+"/"+e.live.GetName()+" exists and ", command.Resource(e.live.GroupVersionKind().GroupKind())
	if e.app != "" {
		return exists + "belongs to app " + e.app + "; remove it there first, or, if there is no such app, " + command.Label(resource, e.live, decide.AppLabel+"-")
	}
	if e.shared {
		return exists + "does not belong to this release; " + handOver(e.live, e.release)
	}
	return exists + "does not belong to this release; set spec.helm." + e.phase + ".takeOwnership in app.yaml or, if nobody needs it, " +
		command.Delete(command.Administrator, resource, e.live)
}
func (e *foreign) Unwrap() error { return e.err }

// handOver says how administrators give a cluster-scoped object to a release.
func handOver(live *unstructured.Unstructured, release types.NamespacedName) string {
	kind := command.Resource(live.GroupVersionKind().GroupKind())
	return own.NotAdopted + command.Annotate(command.Administrator, kind, live, NameAnnotation, release.Name) + " " + NamespaceAnnotation + "=" + release.Namespace
}

func isKind(u *unstructured.Unstructured, group, kind string) bool {
	gk := u.GroupVersionKind().GroupKind()
	return gk.Group == group && gk.Kind == kind
}

func isClaim(u *unstructured.Unstructured) bool {
	kind := u.GroupVersionKind()
	return kind.Group == "" && kind.Kind == "PersistentVolumeClaim"
}

// Applied is an object of a revision. It has only the object's name, because many of them are kept in memory.
type Applied struct {
	Ref
	// Live is the API server's answer to the write of the action that made the revision, with UID, resourceVersion and managedFields;
	// otherwise nil.
	Live metav1.Object
}

// AppliedAs returns the Applied of an object and the API server's answer, which may be nil.
func AppliedAs(u, live *unstructured.Unstructured) Applied {
	a := Applied{Ref: Ref{u.GroupVersionKind(), u.GetNamespace(), u.GetName()}}
	if live != nil {
		a.Live = &metav1.ObjectMeta{UID: live.GetUID(), ResourceVersion: live.GetResourceVersion(), ManagedFields: live.GetManagedFields()}
	}
	return a
}
