package controllers

import (
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv"
)

// clusterFile is the path of a cluster-scoped object's template in the chart.
func clusterFile(kind string) string {
	return "projects/shop/apps/web/chart/templates/" + strings.ToLower(kind) + ".yaml"
}

// newSharing is a team whose Helm app "web" holds an IngressClass, a PriorityClass and a webhook, all of the team's name.
func newSharing(t *testing.T, name string) *team {
	n := newTeam(t, name)
	for resource, group := range map[string]string{
		"ingressclasses": "networking.k8s.io", "priorityclasses": "scheduling.k8s.io",
		"validatingwebhookconfigurations": "admissionregistration.k8s.io",
	} {
		n.platformRole(resource, "cluster-kinds", group, resource)
	}
	n.trusted()
	files := helmApp("values: {greeting: one}")
	files[clusterFile("IngressClass")] = "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: " + name + "}\nspec: {controller: example.com/none}\n"
	files[clusterFile("PriorityClass")] = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: " + name + "}\nvalue: 1\n"
	files[clusterFile("Webhook")] = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: ` + name + `}
webhooks:
- name: none.example.com
  clientConfig: {service: {name: web, namespace: {{ .Release.Namespace }}}}
  rules: [{apiGroups: [none.example.com], apiVersions: [v1], operations: [CREATE], resources: [things]}]
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
`
	n.push(files)
	n.ready(n.app("shop", "web"))
	n.stay(n.shared()...)
	return n
}

// trusted lets the team's apps hold the three kinds.
func (n *team) trusted() {
	n.t.Helper()
	n.clusterKinds("IngressClass.networking.k8s.io", "PriorityClass.scheduling.k8s.io", "ValidatingWebhookConfiguration.admissionregistration.k8s.io")
}

// shared are the three objects.
func (n *team) shared() []client.Object {
	at := metav1.ObjectMeta{Name: n.name}
	return []client.Object{
		&networkingv1.IngressClass{ObjectMeta: at}, &schedulingv1.PriorityClass{ObjectMeta: at},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: at},
	}
}

// stay checks that the objects still exist.
func (n *team) stay(objects ...client.Object) {
	n.t.Helper()
	for _, o := range objects {
		if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(o), o); err != nil || o.GetDeletionTimestamp() != nil {
			n.t.Errorf("%T %s: %v", o, o.GetName(), err)
		}
	}
}

// TestClusterScopedObjectsAreDeletedWithTheirHelmApp: when they leave the chart, when the app leaves Git and when the tenant is deleted.
func TestClusterScopedObjectsAreDeletedWithTheirHelmApp(t *testing.T) {
	for name, leave := range map[string]func(n *team, app *v1alpha1.App){
		"chart": func(n *team, app *v1alpha1.App) {
			n.push(map[string]string{clusterFile("IngressClass"): "-", clusterFile("PriorityClass"): "-", clusterFile("Webhook"): "-"})
			n.gone(n.shared()...)
			n.ready(app)
			n.eventually(func() error {
				if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(app), app); err != nil {
					return err
				}
				if recorded := fmt.Sprint(app.Status.Inventory); strings.Contains(recorded, "IngressClass") {
					return fmt.Errorf("the inventory still has deleted objects: %s", recorded)
				}
				return nil
			})
		},
		"folder": func(n *team, app *v1alpha1.App) {
			n.push(map[string]string{"projects/shop/apps/web": "-"})
			n.gone(app)
		},
		"offboarded": func(n *team, _ *v1alpha1.App) {
			n.deleteAllowed(&v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: n.name}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newSharing(t, "sharing"+name)
			leave(n, n.app("shop", "web"))
			n.gone(n.shared()...)
		})
	}
}

// TestClusterScopedObjectsAreDeletedWithTheirNamespace: somebody deletes the namespace, and everything is recreated from Git.
func TestClusterScopedObjectsAreDeletedWithTheirNamespace(t *testing.T) {
	n := newSharing(t, "terminated")
	raw := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "terminated-raw"}}
	n.push(map[string]string{"projects/shop/apps/bad/app.yaml": rawApp("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: terminated-raw}, value: 1}")["app.yaml"]})
	n.ready(n.app("shop", "bad"))
	before := append(n.shared(), raw)
	n.stay(before...)
	n.deleteAllowed(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.namespace()}})
	for _, was := range before {
		uid := was.GetUID()
		n.eventually(func() error {
			err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(was), was)
			if err == nil && was.GetUID() == uid {
				return fmt.Errorf("%T %s is still there", was, n.name)
			}
			return client.IgnoreNotFound(err)
		})
	}
}

// TestClusterScopedObjectsThatMayNotBeDeletedAreReported: they keep the app from being ready, and are deleted once the right is back.
func TestClusterScopedObjectsThatMayNotBeDeletedAreReported(t *testing.T) {
	n := newSharing(t, "untrusted")
	app, all := n.app("shop", "web"), n.shared()
	n.clusterKinds()
	n.gone(n.clusterRole())
	n.push(map[string]string{clusterFile("IngressClass"): "-", clusterFile("PriorityClass"): "-", clusterFile("Webhook"): "-"})
	message := n.until(app, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.PruneFailedReason)
	for _, want := range []string{"IngressClass/untrusted", "PriorityClass/untrusted", "an administrator of the cluster may run: kubectl delete ", "spec.clusterKinds of the Tenant"} {
		if !strings.Contains(message, want) {
			t.Errorf("the message is %q, want %q in it", message, want)
		}
	}
	n.stay(all...)
	// Administrators may delete the object themselves, or keep it.
	n.delete(all[0])
	n.edit(all[1], `{"metadata":{"labels":{"paas.kubeop.io/app":null}}}`)
	n.eventually(func() error {
		message := n.until(app, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.PruneFailedReason)
		if strings.Contains(message, "IngressClass/") || strings.Contains(message, "PriorityClass/") || !strings.Contains(message, "ValidatingWebhookConfiguration/") {
			return fmt.Errorf("the message is %q", message)
		}
		return nil
	})
	n.trusted()
	n.ready(app)
	n.gone(all[2])
	n.stay(all[1])
}

// TestAnAppIsRemovedWithoutRights: its removal reports what it waits for, and administrators can end the wait.
func TestAnAppIsRemovedWithoutRights(t *testing.T) {
	for name, help := range map[string]func(n *team, app *v1alpha1.App){
		"deleted": func(n *team, _ *v1alpha1.App) {
			for _, o := range n.shared() {
				n.delete(o)
			}
		},
		"orphaned": func(n *team, app *v1alpha1.App) { n.edit(app, `{"spec":{"deletionPolicy":"Orphan"}}`) },
	} {
		t.Run(name, func(t *testing.T) {
			n := newSharing(t, "waiting"+name)
			app := n.app("shop", "web")
			n.clusterKinds()
			n.gone(n.clusterRole())
			n.push(map[string]string{"projects/shop/apps/web": "-"})
			message := n.until(app, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.UninstallFailedReason)
			if !strings.Contains(message, "IngressClass/"+n.name) || !strings.Contains(message, "an administrator of the cluster may run: kubectl delete ") {
				t.Errorf("the message is %q", message)
			}
			n.stay(n.shared()...)
			help(n, app)
			n.gone(app)
			if name == "orphaned" {
				n.stay(n.shared()...)
			}
		})
	}
}

// TestADefinitionThatLeftTheChartWaits for confirmation: every object of its kind would be deleted with it.
func TestADefinitionThatLeftTheChartWaits(t *testing.T) {
	n := newTeam(t, "defining")
	n.platformRole("definitions", "cluster-kinds", "apiextensions.k8s.io", "customresourcedefinitions")
	n.clusterKinds("CustomResourceDefinition.apiextensions.k8s.io")
	files := helmApp("values: {greeting: one}")
	files[clusterFile("crd")] = strings.NewReplacer("judging", "defining").Replace(oneLine(engineDefinition)) + "\n"
	n.push(files)
	app := n.app("shop", "web")
	n.ready(app)
	crd := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "engines.defining.example.com"}}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	n.stay(crd)
	uid := crd.UID

	n.push(map[string]string{clusterFile("crd"): "-"})
	n.eventually(func() error {
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(app), app); err != nil {
			return err
		}
		if len(app.Status.Held) != 1 || !strings.Contains(app.Status.Held[0], crd.Name) {
			return fmt.Errorf("status.held is %q", app.Status.Held)
		}
		return nil
	})
	if message, want := n.until(app, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.SucceededReason), "1 more left the chart and wait"; !strings.Contains(message, want) {
		t.Errorf("the message is %q, want %q in it", message, want)
	}
	if n.stay(crd); crd.UID != uid {
		t.Error("the definition was recreated")
	}
	n.annotate(app, v1alpha1.ConfirmAnnotation, app.Status.HeldToken)
	n.gone(crd)
}

func (n *team) clusterRole() client.Object {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-cluster-" + n.name + "-shop"}}
}

// deleteAllowed deletes what the admission policies keep until an annotation allows it.
func (n *team) deleteAllowed(o client.Object) {
	n.t.Helper()
	// A namespace may be deleted once kubeop has made its volumes outlive it.
	n.eventually(func() error { return testenv.DeleteOnPurpose(n.t.Context(), n.admin, o, false) })
}
