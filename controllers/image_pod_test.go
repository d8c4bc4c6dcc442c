package controllers

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestAnImageAppHasWhatPodsNeed gives an Image app more containers, an account and patches, and then takes all of it away. The platform of
// these tests has a Gateway, so the app cannot have settings of an Ingress.
func TestAnImageAppHasWhatPodsNeed(t *testing.T) {
	needsProcesses(t)
	n := newTeam(t, "podded")
	n.push(map[string]string{"projects/shop/project.yaml": fmt.Sprintf(projectFile, "shop")})
	const plain = "  image: {reference: registry.example/web:v1, replicas: 0, ports: [{name: http, port: 80}]%s}\n"
	pod := `, serviceAccountName: default, initContainers: [{name: migrate, args: [migrate]}, {name: proxy, image: registry.example/proxy:v2, restartPolicy: Always}], ` +
		`tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 30}], ` +
		`patches: [{target: {kind: Deployment}, patch: '[{"op": "add", "path": "/spec/minReadySeconds", "value": 7}]'}]`
	hosts := "  host: web.podded.example\n  ingress: {ingressClassName: public, annotations: {cert-manager.io/issuer: ca}}\n"
	n.push(imageFile("web", hosts+fmt.Sprintf(plain, pod)))
	app := n.app("shop", "web")
	message := n.until(app, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.RenderFailedReason)
	if want := "spec.ingress is not for this platform, whose Gateway infra/public serves the hosts"; !strings.Contains(message, want) {
		t.Errorf("the message is %q, want %q in it", message, want)
	}
	n.push(imageFile("web", fmt.Sprintf(plain, pod)))
	n.ready(app)
	deployment := n.deployment(func(d *appsv1.Deployment) error {
		is := d.Spec.Template.Spec
		if is.ServiceAccountName != "default" || d.Spec.MinReadySeconds != 7 || len(is.Tolerations) != 1 || len(is.InitContainers) != 2 {
			return fmt.Errorf("the Deployment is %+v", d.Spec)
		}
		return nil
	})
	proxy := deployment.Spec.Template.Spec.InitContainers[1]
	if proxy.RestartPolicy == nil || *proxy.RestartPolicy != corev1.ContainerRestartPolicyAlways {
		t.Errorf("the sidecar is %+v", proxy)
	}

	// The former state stays while a patch matches nothing.
	n.push(imageFile("web", fmt.Sprintf(plain, strings.Replace(pod, "kind: Deployment", "kind: StatefulSet", 1))))
	message = n.until(app, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.RenderFailedReason)
	if want := "spec.image: patches[0]: its target matches none of the objects"; !strings.Contains(message, want) {
		t.Errorf("the message is %q, want %q in it", message, want)
	}

	n.push(imageFile("web", fmt.Sprintf(plain, "")))
	n.deployment(func(d *appsv1.Deployment) error {
		is := d.Spec.Template.Spec
		if is.ServiceAccountName+is.DeprecatedServiceAccount != "" || d.Spec.MinReadySeconds != 0 || len(is.Tolerations)+len(is.InitContainers) != 0 {
			return fmt.Errorf("the Deployment is %+v", d.Spec)
		}
		return nil
	})
	n.ready(app)
}

// deployment waits until the Deployment web of the project shop is as wanted.
func (n *team) deployment(is func(*appsv1.Deployment) error) *appsv1.Deployment {
	n.t.Helper()
	d := &appsv1.Deployment{}
	n.eventually(func() error {
		err := n.admin.Get(n.t.Context(), client.ObjectKey{Namespace: n.namespace(), Name: "web"}, d)
		return errors.Join(err, is(d))
	})
	return d
}
