package guardrails

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/podspec"
)

// ingressClassAnnotation is the older way to name the class of an Ingress, which controllers still read.
const ingressClassAnnotation = "kubernetes.io/ingress.class"

// storageClassAnnotation is the older way to name the class of a claim. Kubernetes still reads it, before the field.
const storageClassAnnotation = "volume.beta.kubernetes.io/storage-class"

// classes: an object may name only classes that the policy allows. Unnamed judges one that names none.
func classes(object *unstructured.Unstructured, rules *v1alpha1.PolicyRules) []found {
	rule := rules.Classes
	if rule == nil {
		return nil
	}
	var broken []found
	for _, of := range []struct {
		field, what    string
		named, allowed []string
	}{
		{"classes.storage", "storageClassName", storageClasses(object), rule.Storage},
		{"classes.volumeAttributes", "volumeAttributesClassName", attributesClasses(object), rule.VolumeAttributes},
		{"classes.ingress", "ingressClassName", ingressClasses(object), rule.Ingress},
		{"classes.gateway", "gatewayClassName", gatewayClasses(object), rule.Gateway},
		{"classes.priority", "priorityClassName", classOfPod(object, "priorityClassName"), rule.Priority},
		{"classes.runtime", "runtimeClassName", classOfPod(object, "runtimeClassName"), rule.Runtime},
	} {
		for _, class := range of.named {
			if class != "" && len(of.allowed) > 0 && !slices.Contains(of.allowed, class) {
				broken = append(broken, found{of.field, fmt.Sprintf("has %s %s; allowed are: %s", of.what, few.Line(class, maxQuoted), listed(of.allowed))})
			}
		}
	}
	return broken
}

// storageClasses returns the StorageClasses of a claim, of a StatefulSet's claims and of the ephemeral volumes of pods.
func storageClasses(object *unstructured.Unstructured) (all []string) {
	for _, claim := range claimsOf(object) {
		class, _, _ := unstructured.NestedString(claim, "spec", "storageClassName")
		annotation, _, _ := unstructured.NestedString(claim, "metadata", "annotations", storageClassAnnotation)
		for _, named := range []string{class, annotation} {
			if !slices.Contains(all, named) {
				all = append(all, named)
			}
		}
	}
	return all
}

// attributesClasses returns the VolumeAttributesClasses of the same claims.
func attributesClasses(object *unstructured.Unstructured) (all []string) {
	for _, claim := range claimsOf(object) {
		class, _, _ := unstructured.NestedString(claim, "spec", "volumeAttributesClassName")
		all = append(all, class)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// claimsOf returns a claim, a StatefulSet's claims and those of the ephemeral volumes of pods.
func claimsOf(object *unstructured.Unstructured) (all []map[string]any) {
	kind := object.GroupVersionKind()
	if kind.Group == "" && kind.Kind == "PersistentVolumeClaim" {
		all = append(all, object.Object)
	}
	if kind.Group == "apps" && kind.Kind == "StatefulSet" {
		spec, _ := object.Object["spec"].(map[string]any)
		all = append(all, mappings(spec["volumeClaimTemplates"])...)
	}
	if pod := podspec.Of(object); pod != nil {
		for _, volume := range mappings(pod.Spec["volumes"]) {
			if template, there, _ := unstructured.NestedMap(volume, "ephemeral", "volumeClaimTemplate"); there {
				all = append(all, template)
			}
		}
	}
	return all
}

func ingressClasses(object *unstructured.Unstructured) []string {
	kind := object.GroupVersionKind()
	if kind.Group != "networking.k8s.io" || kind.Kind != "Ingress" {
		return nil
	}
	class, _, _ := unstructured.NestedString(object.Object, "spec", "ingressClassName")
	annotation, _, _ := unstructured.NestedString(object.Object, "metadata", "annotations", ingressClassAnnotation)
	return slices.Compact([]string{class, annotation})
}

func gatewayClasses(object *unstructured.Unstructured) []string {
	kind := object.GroupVersionKind()
	if kind.Group != gatewayGroup || kind.Kind != "Gateway" {
		return nil
	}
	class, _, _ := unstructured.NestedString(object.Object, "spec", "gatewayClassName")
	return []string{class}
}

// classOfPod returns the class in a field of the pod.
func classOfPod(object *unstructured.Unstructured, field string) []string {
	pod := podspec.Of(object)
	if pod == nil {
		return nil
	}
	class, _ := pod.Spec[field].(string)
	return []string{class}
}
