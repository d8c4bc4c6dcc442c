package render

import (
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Labels of the objects made for an image, as Kubernetes recommends them:
// https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/
const (
	nameLabel      = "app.kubernetes.io/name"
	managedByLabel = "app.kubernetes.io/managed-by"
	versionLabel   = "app.kubernetes.io/version"
)

// Image returns the objects of an app of type Image, all named after it: a Deployment; with ports a Service; with a
// host an Ingress, which sends everything to the first port. The namespace is left to delivery/own.
//
// Fields that the API server would fill in are left to it, but for those that kubeop wants to stay: the replicas, and
// what makes the pod pass Pod Security "restricted" (see podSpec).
func Image(app *v1alpha1.App) ([]*unstructured.Unstructured, error) {
	if app.Spec.Image == nil {
		return nil, errors.New("spec.image is missing")
	}
	if err := checkImage(app); err != nil {
		return nil, err
	}
	typed := []runtime.Object{deployment(app)}
	if len(app.Spec.Image.Ports) > 0 {
		typed = append(typed, service(app))
	}
	if app.Spec.Host != "" {
		typed = append(typed, ingress(app))
	}
	objects := make([]*unstructured.Unstructured, 0, len(typed))
	for _, o := range typed {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return nil, fmt.Errorf("converting the %s: %w", o.GetObjectKind().GroupVersionKind().Kind, err)
		}
		objects = append(objects, withoutEmpty(content))
	}
	return objects, nil
}

// checkImage refuses what the API server would take and no pod or Ingress could work with.
func checkImage(app *v1alpha1.App) error {
	image := app.Spec.Image
	probes := map[string]*v1alpha1.Probe{"readiness": image.Probes.Readiness, "liveness": image.Probes.Liveness, "startup": image.Probes.Startup}
	for _, name := range []string{"readiness", "liveness", "startup"} {
		if err := checkProbe(probes[name], image.Ports); err != nil {
			return fmt.Errorf("spec.image.probes.%s: %w", name, err)
		}
	}
	if app.Spec.Host == "" {
		return nil
	}
	if len(image.Ports) == 0 {
		return errors.New("spec.host needs spec.image.ports: traffic goes to the first")
	}
	if first := image.Ports[0]; !isTCP(first) {
		return fmt.Errorf("spec.host: traffic goes to the first port, which must be TCP; %s is %s", first.Name, first.Protocol)
	}
	return nil
}

func deployment(app *v1alpha1.App) *appsv1.Deployment {
	labels := labelsOf(app)
	if version := versionOf(app.Spec.Image.Reference); version != "" {
		labels[versionLabel] = version
	}
	replicas := int32(1)
	if app.Spec.Image.Replicas != nil {
		replicas = *app.Spec.Image.Replicas
	}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: app.Name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labelsOf(app)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       podSpec(app),
			},
		},
	}
}

func service(app *v1alpha1.App) *corev1.Service {
	ports := make([]corev1.ServicePort, 0, len(app.Spec.Image.Ports))
	for _, p := range app.Spec.Image.Ports {
		port := p.ServicePort
		if port == 0 {
			port = p.Port
		}
		ports = append(ports, corev1.ServicePort{Name: p.Name, Port: port, TargetPort: intstr.FromString(p.Name), Protocol: protocolOf(p)})
	}
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: app.Name, Labels: labelsOf(app)},
		Spec:       corev1.ServiceSpec{Selector: labelsOf(app), Ports: ports},
	}
}

func ingress(app *v1alpha1.App) *networkingv1.Ingress {
	prefix := networkingv1.PathTypePrefix
	backend := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
		Name: app.Name,
		Port: networkingv1.ServiceBackendPort{Name: app.Spec.Image.Ports[0].Name},
	}}
	return &networkingv1.Ingress{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "Ingress"},
		ObjectMeta: metav1.ObjectMeta{Name: app.Name, Labels: labelsOf(app)},
		Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{
			Host: app.Spec.Host,
			IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
				Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &prefix, Backend: backend}},
			}},
		}}},
	}
}

// labelsOf returns the labels that select the app's pods. A Deployment's selector can never be changed, so they must
// hold nothing that can: no version, no tenant, no project.
func labelsOf(app *v1alpha1.App) map[string]string {
	return map[string]string{nameLabel: app.Name, managedByLabel: "kubeop"}
}

// versionOf returns the tag of an image, or nothing when it has none or the tag cannot be a label.
func versionOf(reference string) string {
	name, _, _ := strings.Cut(reference, "@")
	_, tag, _ := strings.Cut(name[strings.LastIndex(name, "/")+1:], ":")
	if len(validation.IsValidLabelValue(tag)) > 0 {
		return ""
	}
	return tag
}

// withoutEmpty drops what typed objects always carry, and nobody wrote.
func withoutEmpty(object map[string]any) *unstructured.Unstructured {
	delete(object, "status")
	if spec, ok := object["spec"].(map[string]any); ok {
		if strategy, ok := spec["strategy"].(map[string]any); ok && len(strategy) == 0 {
			delete(spec, "strategy")
		}
	}
	containers, _, _ := unstructured.NestedFieldNoCopy(object, "spec", "template", "spec", "containers")
	list, _ := containers.([]any)
	for _, c := range list {
		container := c.(map[string]any)
		if resources, ok := container["resources"].(map[string]any); ok && len(resources) == 0 {
			delete(container, "resources")
		}
	}
	return &unstructured.Unstructured{Object: object}
}
