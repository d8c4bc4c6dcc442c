package controllers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// deliver pushes an app of the shop with these manifests, and returns the revision.
func (n *team) deliver(name string, manifests ...string) string {
	n.t.Helper()
	return n.push(n.shop(name, manifests...))
}

// shop returns the files of an app of the shop with these manifests.
func (n *team) shop(name string, manifests ...string) map[string]string {
	files := shopFiles("shop")
	files["projects/shop/apps/"+name+"/app.yaml"] = strings.Replace(rawApp(manifests...)["app.yaml"], "name: bad", "name: "+name, 1)
	return files
}

// applied waits until the app is ready at a revision.
func (n *team) applied(name, revision string) *v1alpha1.App {
	n.t.Helper()
	app := n.app("shop", name)
	n.eventually(func() error {
		if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(app), app); err != nil {
			return err
		}
		if app.Status.LastAppliedRevision != revision || !conditions.IsReady(app) || app.Status.ObservedGeneration != app.Generation {
			return fmt.Errorf("app %s is at %s, want %s: %+v", name, app.Status.LastAppliedRevision, revision, app.Status.Conditions)
		}
		return nil
	})
	return app
}

// plain returns a ConfigMap with annotations.
func plain(name string, marks ...string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, annotations: {%s}}, data: {a: b}}", name, strings.Join(marks, ", "))
}

const claim = `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], storageClassName: "", resources: {requests: {storage: 1Mi}}}}`

// volume makes the volume that the claim binds.
func (n *team) volume() {
	n.t.Helper()
	n.create(&corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: n.name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")},
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			ClaimRef:               &corev1.ObjectReference{Namespace: n.namespace(), Name: "data"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"}},
		},
	})
}

func (n *team) claimOf() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "data"}}
}

// there checks that objects exist and are not being deleted.
func (n *team) there(objects ...client.Object) {
	n.t.Helper()
	for _, o := range objects {
		if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			n.t.Fatal(err)
		}
		if o.GetDeletionTimestamp() != nil {
			n.t.Fatalf("%T %s is being deleted", o, o.GetName())
		}
	}
}

func TestObjectsWithDataWaitForConfirmation(t *testing.T) {
	n := newTeam(t, "confirming")
	n.volume()
	held, stays := n.configMapOf("shop", "held"), n.configMapOf("shop", "stays")
	all := []string{claim, plain("held", "paas.kubeop.io/prune: confirm"), plain("stays", "paas.kubeop.io/prune: disabled"), plain("plain"), plain("last")}
	first := n.deliver("web", all...)
	n.applied("web", first)

	second := n.deliver("web", plain("last"))
	app := n.applied("web", second)
	n.gone(n.configMapOf("shop", "plain"))
	want := []string{"PersistentVolumeClaim data: holds data, and claimDeletionPolicy is Retain: nothing deletes it before that is Delete", "ConfigMap held: is annotated paas.kubeop.io/prune: confirm"}
	if diff := cmp.Diff(want, app.Status.Held); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
	if summary := conditions.GetMessage(app, v1alpha1.ReadyCondition); !strings.Contains(summary, "1 object, healthy; 2 more") || !strings.Contains(summary, "kubectl annotate app web -n "+n.namespace()+" --overwrite "+v1alpha1.ConfirmAnnotation+"="+app.Status.HeldToken) {
		t.Errorf("the message does not name the annotation to set: %s", summary)
	}
	// Events are sent in the background.
	n.eventually(func() error {
		if events := n.events(app, v1alpha1.KeptReason); len(events) != 1 || !strings.Contains(events[0], "ConfigMap/stays") {
			return fmt.Errorf("the events about the kept object are %q", events)
		}
		return nil
	})

	n.annotate(app, v1alpha1.ConfirmAnnotation, first)
	n.reconcile(app)
	n.there(n.claimOf(), held, stays)

	// An object that is in the source again is no longer held.
	third := n.deliver("web", plain("last"), claim)
	app = n.applied("web", third)
	if diff := cmp.Diff(want[1:], app.Status.Held); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}

	n.annotate(app, v1alpha1.ConfirmAnnotation, app.Status.HeldToken)
	n.gone(held)
	n.reconcile(app)
	if len(app.Status.Held) != 0 || len(app.Status.Inventory.Entries) != 2 {
		t.Errorf("status.held is %q, the inventory %v", app.Status.Held, app.Status.Inventory.Entries)
	}
	n.there(n.claimOf(), stays)
}

// events returns what the events of a reason say about an object.
func (n *team) events(o client.Object, reason string) []string {
	n.t.Helper()
	list := &corev1.EventList{}
	if err := n.admin.List(n.t.Context(), list, client.InNamespace(o.GetNamespace())); err != nil {
		n.t.Fatal(err)
	}
	var out []string
	for _, e := range list.Items {
		if e.InvolvedObject.Name == o.GetName() && e.Reason == reason {
			out = append(out, e.Message)
		}
	}
	return out
}

// TestAnAnnotationOfTheLiveObjectProtectsIt annotates live objects; the manifests have no annotation.
func TestAnAnnotationOfTheLiveObjectProtectsIt(t *testing.T) {
	n := newTeam(t, "handson")
	n.applied("web", n.deliver("web", plain("one"), plain("two"), plain("last"), "{apiVersion: v1, kind: Secret, metadata: {name: key}}"))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "key"}}
	for o, value := range map[client.Object]string{n.configMapOf("shop", "one"): "confirm", n.configMapOf("shop", "two"): "disabled", secret: "confirm"} {
		n.there(o)
		before := o.DeepCopyObject().(client.Object)
		o.SetAnnotations(map[string]string{v1alpha1.PruneAnnotation: value})
		if err := n.admin.Patch(t.Context(), o, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	app := n.applied("web", n.deliver("web", plain("last")))
	if len(app.Status.Held) != 2 {
		t.Errorf("status.held is %q", app.Status.Held)
	}
	n.there(n.configMapOf("shop", "one"), n.configMapOf("shop", "two"), secret)
}

func TestARemovedAppKeepsObjectsWithData(t *testing.T) {
	for name, c := range map[string]struct{ confirmed, policy string }{
		"leavesdata": {}, "retainsdata": {confirmed: "all"}, "takesdata": {"all", "Delete"}, "keepsdata": {"", "Delete"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newTeam(t, name)
			n.volume()
			files := n.shop("web", claim, plain("held", "paas.kubeop.io/prune: confirm"), plain("stays", "paas.kubeop.io/prune: disabled"), plain("plain"))
			files["projects/shop/apps/api/app.yaml"] = fmt.Sprintf(rawFile, "api", "api", "hello")
			if c.policy != "" {
				files["projects/shop/apps/web/app.yaml"] += "  claimDeletionPolicy: " + c.policy + "\n"
			}
			app := n.applied("web", n.push(files))
			if c.confirmed != "" {
				n.annotate(app, v1alpha1.ConfirmAnnotation, c.confirmed)
			}
			n.push(map[string]string{"projects/shop/apps/web": "-"})
			n.gone(app, n.configMapOf("shop", "plain"))
			n.there(n.configMapOf("shop", "stays"))
			if c.confirmed != "" && c.policy == "" {
				n.gone(n.configMapOf("shop", "held"))
				n.there(n.claimOf())
				return
			}
			if c.confirmed == "" {
				n.there(n.claimOf(), n.configMapOf("shop", "held"))
				n.eventually(func() error {
					events := strings.Join(n.events(app, v1alpha1.KeptReason), "\n")
					if !strings.Contains(events, "PersistentVolumeClaim/data") || !strings.Contains(events, "ConfigMap/held") || !strings.Contains(events, "ConfigMap/stays") {
						return fmt.Errorf("the events about the kept objects are %s", events)
					}
					return nil
				})
				// A new app of that name owns the objects again.
				n.applied("web", n.deliver("web", claim))
				return
			}
			n.gone(n.claimOf(), n.configMapOf("shop", "held"))
		})
	}
}

// TestAStuckDeletionNamesTheFinalizer: an object that left the source has a finalizer that no controller removes.
func TestAStuckDeletionNamesTheFinalizer(t *testing.T) {
	n := newTeam(t, "hanging")
	n.applied("web", n.deliver("web", plain("one"), plain("two")))
	one := n.configMap("shop", "one")
	before := one.DeepCopy()
	one.Finalizers = []string{"example.com/held"}
	if err := n.admin.Patch(t.Context(), one, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	revision := n.deliver("web", plain("two"))
	app := n.app("shop", "web")
	message := n.until(app, v1alpha1.AppliedCondition, metav1.ConditionUnknown, v1alpha1.ProgressingReason)
	if want := "ConfigMap/one, which the finalizer example.com/held holds"; !strings.Contains(message, want) {
		t.Errorf("the message is %q, want %q in it", message, want)
	}
	before = n.configMap("shop", "one")
	one = before.DeepCopy()
	one.Finalizers = nil
	if err := n.admin.Patch(t.Context(), one, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	n.applied("web", revision)
}

// TestADeploymentIsAwaitedWithItsPods deletes an app under the policy WaitForTermination while the ReplicaSet of its Deployment
// remains.
func TestADeploymentIsAwaitedWithItsPods(t *testing.T) {
	n := newTeam(t, "awaited")
	const deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}}"
	files := n.shop("web", deployment)
	files["projects/shop/apps/web/app.yaml"] += "  deletionPolicy: WaitForTermination\n"
	files["projects/shop/apps/api/app.yaml"] = fmt.Sprintf(rawFile, "api", "api", "hello")
	revision := n.push(files)
	app := n.applied("web", revision)
	n.applied("api", revision) // Otherwise the app might be deleted before it is applied.
	sets := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSetList"}}
	hold := func(finalizers ...string) {
		n.eventually(func() error {
			if err := n.admin.List(t.Context(), sets, client.InNamespace(n.namespace())); err != nil || len(sets.Items) != 1 {
				return fmt.Errorf("%d replica sets, %w", len(sets.Items), err)
			}
			before := sets.Items[0].DeepCopy()
			sets.Items[0].SetFinalizers(finalizers)
			return n.admin.Patch(t.Context(), &sets.Items[0], client.MergeFrom(before))
		})
	}
	hold("example.com/held")
	n.push(map[string]string{"projects/shop/apps/web": "-"})
	message := n.until(app, v1alpha1.RemovedCondition, metav1.ConditionUnknown, v1alpha1.DeletingReason)
	if want := "Deployment/web, until what it owns is gone"; !strings.Contains(message, want) {
		t.Errorf("the message is %q, want %q in it", message, want)
	}
	hold()
	n.gone(app)
}
