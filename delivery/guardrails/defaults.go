package guardrails

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/podspec"
)

// Defaults are what policies with the action Deny have written into pods that do not say it.
type Defaults struct {
	// Nodes are labels of nodes.
	Nodes map[string]v1alpha1.LabelValue
	// UserNamespaces: hostUsers is false.
	UserNamespaces bool
	// Pull: imagePullPolicy is Always, because it is allowed and IfNotPresent is not.
	Pull bool
}

// DefaultsOf returns the defaults of the rules. If two policies differ about a label of nodes, that of the first policy by name counts, and the other policy
// refuses the pod.
func DefaultsOf(spec *v1alpha1.GuardrailsSpec) Defaults {
	d, always := Defaults{Nodes: map[string]v1alpha1.LabelValue{}}, true
	for _, applied := range slices.Backward(spec.Deny) {
		if rule := applied.Nodes; rule != nil {
			maps.Copy(d.Nodes, rule.Selector)
			d.UserNamespaces = d.UserNamespaces || rule.UserNamespaces
		}
		if rule := applied.Images; rule != nil && len(rule.PullPolicies) > 0 {
			always = always && slices.Contains(rule.PullPolicies, string(corev1.PullAlways))
			d.Pull = d.Pull || !slices.Contains(rule.PullPolicies, string(corev1.PullIfNotPresent))
		}
	}
	d.Pull = d.Pull && always
	return d
}

// Default writes the defaults into the templates of pods, in place. What an author wrote stays, and the rule refuses it. It leaves Pods and Jobs as they are,
// because the API server refuses that change of existing ones: their pods get the defaults from the policies kubeop-guardrails-placing and
// kubeop-guardrails-pulling when they are created.
func Default(objects []*unstructured.Unstructured, spec *v1alpha1.GuardrailsSpec) {
	if spec == nil {
		return
	}
	d := DefaultsOf(spec)
	for _, object := range objects {
		pod := podspec.Of(object)
		if pod == nil || pod.Fixed {
			continue
		}
		d.place(pod)
		if d.UserNamespaces && pod.Spec["hostUsers"] == nil {
			pod.Spec["hostUsers"] = false
		}
		if d.Pull {
			alwaysPull(pod)
		}
	}
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
