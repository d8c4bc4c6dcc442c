package guardrails

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/podspec"
)

var (
	ingressKind = schema.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"}
	gatewayKind = schema.GroupKind{Group: gatewayGroup, Kind: "Gateway"}
)

// Defaults are what policies with the action Deny have written into objects that do not say it.
type Defaults struct {
	// Nodes are labels of nodes.
	Nodes map[string]v1alpha1.LabelValue
	// UserNamespaces: hostUsers is false.
	UserNamespaces bool
	// Pull: imagePullPolicy is Always, because it is allowed and IfNotPresent is not.
	Pull bool
	// Classes are those of objects that name none.
	Classes v1alpha1.ClassDefaults
}

// DefaultsOf returns the defaults of the rules. If two policies differ about a label of nodes or a class, that of the first policy by name
// counts, and the other policy refuses the pod, or the class if its list does not have it.
func DefaultsOf(spec *v1alpha1.GuardrailsSpec) Defaults {
	d, always := Defaults{Nodes: map[string]v1alpha1.LabelValue{}}, true
	for _, applied := range slices.Backward(spec.Deny) {
		if rule := applied.Nodes; rule != nil {
			maps.Copy(d.Nodes, rule.Selector)
			d.UserNamespaces = d.UserNamespaces || rule.UserNamespaces
		}
		if rule := applied.Classes; rule != nil && rule.Defaults != nil {
			d.Classes = v1alpha1.ClassDefaults{
				Ingress: cmp.Or(rule.Defaults.Ingress, d.Classes.Ingress), Gateway: cmp.Or(rule.Defaults.Gateway, d.Classes.Gateway),
				Priority: cmp.Or(rule.Defaults.Priority, d.Classes.Priority), Runtime: cmp.Or(rule.Defaults.Runtime, d.Classes.Runtime),
			}
		}
		if rule := applied.Images; rule != nil && len(rule.PullPolicies) > 0 {
			always = always && slices.Contains(rule.PullPolicies, string(corev1.PullAlways))
			d.Pull = d.Pull || !slices.Contains(rule.PullPolicies, string(corev1.PullIfNotPresent))
		}
	}
	d.Pull = d.Pull && always
	return d
}

// Default writes the defaults into the templates of pods, Ingresses and Gateways, in place. What an author wrote stays, and the rule
// refuses it. It leaves Pods and Jobs as they are, because the API server refuses that change of existing ones: their pods get the defaults
// from the policies kubeop-guardrails-placing, -pulling and -classing when they are created.
func Default(objects []*unstructured.Unstructured, spec *v1alpha1.GuardrailsSpec) {
	if spec == nil {
		return
	}
	d := DefaultsOf(spec)
	for _, object := range objects {
		d.classify(object)
		pod := podspec.Of(object)
		if pod == nil || pod.Fixed {
			continue
		}
		if name(pod.Spec, "priorityClassName", d.Classes.Priority) { // The API server refuses other values than those of the class.
			delete(pod.Spec, "priority")
			delete(pod.Spec, "preemptionPolicy")
		}
		name(pod.Spec, "runtimeClassName", d.Classes.Runtime)
		d.place(pod)
		if d.UserNamespaces && pod.Spec["hostUsers"] == nil {
			pod.Spec["hostUsers"] = false
		}
		if d.Pull {
			alwaysPull(pod)
		}
	}
}

// classify writes the class of an Ingress or a Gateway that names none.
func (d Defaults) classify(object *unstructured.Unstructured) {
	spec, ok := object.Object["spec"].(map[string]any)
	if !ok {
		return // The API server refuses it.
	}
	switch object.GroupVersionKind().GroupKind() {
	case ingressKind:
		if !slices.ContainsFunc(ingressClasses(object), func(class string) bool { return class != "" }) {
			name(spec, "ingressClassName", d.Classes.Ingress)
		}
	case gatewayKind:
		name(spec, "gatewayClassName", d.Classes.Gateway)
	}
}

// name writes a class into a field that names none, and reports whether it did.
func name(spec map[string]any, field, class string) bool {
	named := spec[field]
	if class == "" || named != nil && named != "" {
		return false
	}
	spec[field] = class
	return true
}

func (d Defaults) place(pod *podspec.Pod) {
	selected, ok := pod.Spec["nodeSelector"].(map[string]any)
	if len(d.Nodes) == 0 || !ok && pod.Spec["nodeSelector"] != nil {
		return // The API server refuses what is no mapping.
	}
	if !ok {
		selected = map[string]any{}
		pod.Spec["nodeSelector"] = selected
	}
	for label, value := range d.Nodes {
		if _, set := selected[label]; !set {
			selected[label] = string(value)
		}
	}
}

// alwaysPull sets the pull policy of images that have none, and for which the API server would set IfNotPresent.
func alwaysPull(pod *podspec.Pod) {
	set := func(of map[string]any, image, policy string) {
		name, _ := of[image].(string)
		if name != "" && of[policy] == nil && pullPolicy(name) == string(corev1.PullIfNotPresent) {
			of[policy] = string(corev1.PullAlways)
		}
	}
	containers, _ := pod.Containers()
	for _, container := range containers {
		set(container, "image", "imagePullPolicy")
	}
	for _, volume := range mappings(pod.Spec["volumes"]) {
		if source, ok := volume["image"].(map[string]any); ok {
			set(source, "reference", "pullPolicy")
		}
	}
}
