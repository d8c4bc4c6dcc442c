package cluster

import (
	"fmt"
	"strings"

	"helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/delivery/own"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/manifest"
)

// Metadata by which Helm knows the objects of a release.
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
	// App is the value of its app's label.
	App string
	// Platform: the release is of an app of the platform itself, which may have objects in other namespaces.
	Platform bool
}

// shares reports whether the release shares what is in a namespace with others: cluster-scoped objects and, of a release of the platform itself,
// objects in other namespaces. Only the labels of its app prove that such an object is the release's.
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

// ownsShared reports whether a shared object is this release's: it carries the release's annotations and the labels of its
// app. One without such labels is the administrators', also where they put it in the place of the release's.
func (o Objects) ownsShared(live *unstructured.Unstructured) bool {
	labels := live.GetLabels()
	home := own.HomeOf(labels)
	return o.owns(live) && labels[decide.AppLabel] == o.App && home == o.Release.Namespace
}

// mayTake is whether this action may change an object that is there. What the whole cluster shares is another tenant's or the
// administrators', so only an app of the platform itself takes it over with takeOwnership.
func (c *Client) mayTake(live *unstructured.Unstructured) bool {
	if c.anotherApp(live) != "" {
		return false
	}
	return c.Release.owns(live) || c.Terms.TakeOwnership && (live.GetNamespace() != "" || c.Release.Platform)
}

// anotherApp names the app that kubeop has marked an object as, if it is not this one. Only kubeop sets that mark; no
// takeOwnership and no hook's deletion goes past it. Of what is not in the release's namespace an app of the same name may
// be another project's.
func (c *Client) anotherApp(live *unstructured.Unstructured) string {
	labels := live.GetLabels()
	home := own.HomeOf(labels)
	if labels[decide.AppLabel] == c.Terms.App && (live.GetNamespace() == c.Release.Release.Namespace || home == c.Release.Release.Namespace) {
		return ""
	}
	return labels[decide.AppLabel]
}

// hookLeft is whether an object is what a hook of an earlier revision left: Helm does not mark it, but kubeop labels it.
func (c *Client) hookLeft(live *unstructured.Unstructured) bool {
	unmarked := live.GetAnnotations()[NameAnnotation] == ""
	return unmarked && c.Terms.Ran[c.Release.Identify(live)] && live.GetLabels()[decide.AppLabel] == c.Terms.App && c.anotherApp(live) == ""
}

// foreign is an object that exists and is not the release's, or another app's.
type foreign struct {
	object, phase, app string
	// shared: it is in no namespace.
	shared bool
	err    error
}

// notTaken is what there is to say of a cluster-scoped object that this release did not make.
const notTaken = own.NotAdopted + ", or to annotate it as this release's"

func (e *foreign) Error() string {
	if e.app != "" {
		return fmt.Sprintf("%s exists and belongs to app %s; delete it, or take the label %s off if there is no such app", e.object, e.app, decide.AppLabel)
	}
	if e.shared {
		return fmt.Sprintf("%s exists and does not belong to this release; %s", e.object, notTaken)
	}
	return fmt.Sprintf("%s exists and does not belong to this release; delete it, or set %s.takeOwnership", e.object, e.phase)
}
func (e *foreign) Unwrap() error { return e.err }

func isKind(u *unstructured.Unstructured, group, kind string) bool {
	gk := u.GroupVersionKind().GroupKind()
	return gk.Group == group && gk.Kind == kind
}

func isClaim(u *unstructured.Unstructured) bool {
	kind := u.GroupVersionKind()
	return kind.Group == "" && kind.Kind == "PersistentVolumeClaim"
}

// Applied is an object of a revision. It has only its name, because many of them are kept.
type Applied struct {
	Ref
	// Live is what the API server answered when the action that made the revision wrote it: UID, resourceVersion and
	// managedFields. Else nil.
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
