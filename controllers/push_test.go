package controllers

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func (n *team) configMap(project, name string) *corev1.ConfigMap {
	n.t.Helper()
	config := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: v1alpha1.ProjectNamespace(n.name, project), Name: name}
	if err := n.admin.Get(n.t.Context(), key, config); err != nil {
		n.t.Fatal(err)
	}
	return config
}

// gone waits until objects do not exist.
func (n *team) gone(objects ...client.Object) {
	n.t.Helper()
	for _, o := range objects {
		n.eventually(func() error {
			err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(o), o)
			if apierrors.IsNotFound(err) {
				return nil
			}
			return errors.Join(fmt.Errorf("%T %s is still there", o, o.GetName()), err)
		})
	}
}

func TestAPushIsDelivered(t *testing.T) {
	n := newTeam(t, "road")
	revision := n.push(shopFiles("shop", "web", "api"))
	n.ready(n.app("shop", "web"), n.app("shop", "api"))
	if got := n.synced(revision, metav1.ConditionTrue).Status.LastAppliedRevision; got != revision {
		t.Errorf("the repository applied %s, want %s", got, revision)
	}
	config := n.configMap("shop", "web")
	want := map[string]string{v1alpha1.TenantLabel: "road", v1alpha1.ProjectLabel: "shop", v1alpha1.AppLabel: "web"}
	if diff := cmp.Diff(want, config.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}

	api := n.configMap("shop", "api")
	second := n.push(map[string]string{"projects/shop/apps/web/app.yaml": fmt.Sprintf(rawFile, "web", "web", "bye")})
	n.synced(second, metav1.ConditionTrue)
	n.eventually(func() error {
		if got := n.configMap("shop", "web").Data["greeting"]; got != "bye" {
			return fmt.Errorf("the greeting is %q, want %q", got, "bye")
		}
		return nil
	})
	app := n.app("shop", "api")
	n.ready(app)
	if app.Annotations[v1alpha1.RevisionAnnotation] != revision || n.configMap("shop", "api").ResourceVersion != api.ResourceVersion {
		t.Errorf("a commit that changes only web changed api: %v", app.Annotations)
	}

	n.push(map[string]string{"projects/shop/apps/web": "-"})
	n.gone(n.app("shop", "web"), config)
}

func TestManualEditsAreCorrected(t *testing.T) {
	n := newTeam(t, "manual")
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	namespace := v1alpha1.ProjectNamespace("manual", "shop")

	edits := map[string]struct {
		object client.Object
		edit   func(client.Object)
		intact func(client.Object) bool
	}{
		"an app's object": {
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}},
			func(o client.Object) { o.(*corev1.ConfigMap).Data["greeting"] = "edited" },
			func(o client.Object) bool { return o.(*corev1.ConfigMap).Data["greeting"] == "hello" },
		},
		"the quota": {
			&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kubeop"}},
			func(o client.Object) { delete(o.(*corev1.ResourceQuota).Spec.Hard, corev1.ResourcePods) },
			func(o client.Object) bool {
				_, ok := o.(*corev1.ResourceQuota).Spec.Hard[corev1.ResourcePods]
				return ok
			},
		},
		"the namespace's Pod Security": {
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
			func(o client.Object) { o.GetLabels()["pod-security.kubernetes.io/enforce"] = "privileged" },
			func(o client.Object) bool { return o.GetLabels()["pod-security.kubernetes.io/enforce"] == "restricted" },
		},
		"the namespace's owner": {
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
			func(o client.Object) { delete(o.GetLabels(), v1alpha1.ProjectLabel) },
			func(o client.Object) bool { return o.GetLabels()[v1alpha1.ProjectLabel] == "shop" },
		},
		"an App": {
			n.app("shop", "web"),
			func(o client.Object) {
				raw := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"other"}}`)
				o.(*v1alpha1.App).Spec.Raw.Manifests = []runtime.RawExtension{{Raw: raw}}
			},
			func(o client.Object) bool {
				return strings.Contains(string(o.(*v1alpha1.App).Spec.Raw.Manifests[0].Raw), `"web"`)
			},
		},
	}
	for name, e := range edits {
		t.Run(name, func(t *testing.T) {
			key := client.ObjectKeyFromObject(e.object)
			n.eventually(func() error {
				if err := n.admin.Get(t.Context(), key, e.object); err != nil {
					return err
				}
				e.edit(e.object)
				return n.admin.Update(t.Context(), e.object)
			})
			n.eventually(func() error {
				if err := n.admin.Get(t.Context(), key, e.object); err != nil {
					return err
				}
				if !e.intact(e.object) {
					return fmt.Errorf("not repaired: %+v", e.object)
				}
				return nil
			})
		})
	}
	t.Run("a deleted object", func(t *testing.T) {
		n.ready(n.app("shop", "web"))
		config := n.configMap("shop", "web")
		if err := n.admin.Delete(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		n.eventually(func() error {
			again := &corev1.ConfigMap{}
			err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(config), again)
			if err == nil && again.UID == config.UID {
				return fmt.Errorf("not deleted yet")
			}
			return err
		})
	})
}

func TestAForeignNamespaceIsNotAdopted(t *testing.T) {
	n := newTeam(t, "strange")
	foreign := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-strange-shop", Labels: map[string]string{"mine": "yes"}}}
	n.create(foreign)
	n.push(shopFiles("shop", "web"))
	shop := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-strange", Name: "shop"}}
	message := n.until(shop, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.NamespaceTakenReason)
	if want := "kubeop-strange-shop"; !strings.Contains(message, want) {
		t.Errorf("the message is %q, want %q in it", message, want)
	}
	got := &corev1.Namespace{}
	if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(foreign), got); err != nil {
		t.Fatal(err)
	}
	if got.ResourceVersion != foreign.ResourceVersion {
		t.Errorf("the namespace was changed: %+v", got.Labels)
	}
}
