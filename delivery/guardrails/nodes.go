package guardrails

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/podspec"
)

// nodes: pods run only on nodes with the labels of the policy, and tolerate only the taints that it allows. A pod without the labels gets them when it
// is created, so only another value breaks the rule.
func nodes(object *unstructured.Unstructured, rules *v1alpha1.PolicyRules) []found {
	rule, pod := rules.Nodes, podspec.Of(object)
	if rule == nil || pod == nil {
		return nil
	}
	var broken []found
	selected, _ := pod.Spec["nodeSelector"].(map[string]any)
	for _, label := range slices.Sorted(maps.Keys(rule.Selector)) {
		if value, set := selected[label]; set && value != string(rule.Selector[label]) {
			broken = append(broken, found{"nodes.selector", fmt.Sprintf("selects nodes with %s=%s, and its pods have to run on nodes with %[1]s=%[3]s",
				label, few.Line(fmt.Sprint(value), maxQuoted), rule.Selector[label])})
		}
	}
	return append(broken, tolerations(pod, object.GetKind(), rule.Tolerations)...)
}

// Place adds the labels of nodes that denying policies name to the templates of pods, in place, unless they name another value. It leaves Pods and
// Jobs as they are, because the API server refuses that change of existing ones: their pods get the labels from the policy
// kubeop-guardrails-placing when they are created.
func Place(objects []*unstructured.Unstructured, spec *v1alpha1.GuardrailsSpec) {
	if spec == nil {
		return
	}
	labels := nodesOf(spec)
	if len(labels) == 0 {
		return
	}
	for _, object := range objects {
		pod := podspec.Of(object)
		if pod == nil || pod.Fixed {
			continue
		}
		selected, ok := pod.Spec["nodeSelector"].(map[string]any)
		if !ok && pod.Spec["nodeSelector"] != nil {
			continue // The API server refuses it.
		}
		if !ok {
			selected = map[string]any{}
			pod.Spec["nodeSelector"] = selected
		}
		for label, value := range labels {
			if _, set := selected[label]; !set {
				selected[label] = string(value)
			}
		}
	}
}

// nodesOf returns the labels of nodes that denying policies name. If two differ about one, that of the first policy by name counts, and the other policy
// refuses the pod.
func nodesOf(spec *v1alpha1.GuardrailsSpec) map[string]v1alpha1.LabelValue {
	labels := map[string]v1alpha1.LabelValue{}
	for _, applied := range slices.Backward(spec.Deny) {
		if applied.Nodes != nil {
			maps.Copy(labels, applied.Nodes.Selector)
		}
	}
	return labels
}
