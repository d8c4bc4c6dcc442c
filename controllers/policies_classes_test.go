package controllers

import (
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestObjectsGetTheClassesOfTheirPolicies: kubeop writes them into the templates of apps, the API server into new pods and Ingresses. What names another class
// that is not allowed is refused.
func TestObjectsGetTheClassesOfTheirPolicies(t *testing.T) {
	n, bot := limited(t, "classed")
	n.create(&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "classed-sandbox"}, Handler: "runsc"})
	n.create(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "classed-batch"}, Value: 7})
	n.create(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "classed-high"}, Value: 70})
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.PriorityClasses = []string{"classed-batch", "classed-high"} })
	n.under(v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{Classes: &v1alpha1.ClassRules{
		Priority: []string{"classed-batch"}, Defaults: &v1alpha1.ClassDefaults{Ingress: "public", Gateway: "shared", Priority: "classed-batch", Runtime: "classed-sandbox"},
	}}}})
	n.denied(func() error {
		return bot.Create(t.Context(), n.object(n.namespace(), placed("Pod", "priorityClassName: classed-high")), client.DryRunAll)
	}, "Classes: Pod/x has priorityClassName classed-high; allowed are: classed-batch. See spec.classes.priority of policy classed-own")
	if !env.OlderThan(36) {
		n.eventually(func() error {
			object := n.object(n.namespace(), placed("Pod", "hostname: a"))
			if err := bot.Create(t.Context(), object, client.DryRunAll); err != nil {
				return err
			}
			pod := &corev1.Pod{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, pod); err != nil {
				return err
			}
			if s := pod.Spec; s.PriorityClassName != "classed-batch" || s.Priority == nil || *s.Priority != 7 || s.RuntimeClassName == nil || *s.RuntimeClassName != "classed-sandbox" {
				return fmt.Errorf("the pod is %+v", s)
			}
			return nil
		})
		n.reserve("classed.example.com")
		ingress := n.object(n.namespace(), "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: x}, spec: {rules: [{host: classed.example.com, "+
			"http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: x, port: {number: 80}}}}]}}]}}")
		if err := n.admin.Create(t.Context(), ingress, client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		if class, _, _ := unstructured.NestedString(ingress.Object, "spec", "ingressClassName"); class != "public" {
			t.Errorf("the Ingress has the class %q", class)
		}
		n.getGatewayClasses(bot)
	}

	n.push(imageFile("site", "  image: {reference: registry.example.com/web:v1, replicas: 0}\n"))
	n.ready(n.app("shop", "site"))
	deployment := &appsv1.Deployment{}
	if err := n.admin.Get(t.Context(), client.ObjectKey{Namespace: n.namespace(), Name: "site"}, deployment); err != nil {
		t.Fatal(err)
	}
	if s := deployment.Spec.Template.Spec; s.PriorityClassName != "classed-batch" || s.RuntimeClassName == nil || *s.RuntimeClassName != "classed-sandbox" {
		t.Errorf("the Deployment has %+v", s)
	}
}

// getGatewayClasses checks that the API server writes the class into new Gateways that name none.
func (n *team) getGatewayClasses(by client.Client) {
	n.t.Helper()
	n.serveRoutes()
	for named, want := range map[string]string{"": "shared", "gatewayClassName: own, ": "own"} {
		n.eventually(func() error { // A new kind takes a moment.
			gateway := n.object(n.namespace(), "{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: x}, spec: {"+named+
				"listeners: [{name: web, port: 80, protocol: HTTP, hostname: classed.example.com}]}}")
			if err := by.Create(n.t.Context(), gateway, client.DryRunAll); err != nil {
				return err
			}
			if class, _, err := unstructured.NestedString(gateway.Object, "spec", "gatewayClassName"); class != want {
				return errors.Join(fmt.Errorf("a Gateway with %q has the class %q, want %q", named, class, want), err)
			}
			return nil
		})
	}
}
