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

// nodes: pods run only on nodes with the labels of the policy, tolerate only the taints that it allows, and have user namespaces. A pod without the labels, or
// without hostUsers, gets them when it is created, so only another value breaks the rule.
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
	if users := pod.Spec["hostUsers"]; rule.UserNamespaces && users != nil && users != false {
		broken = append(broken, found{"nodes.userNamespaces", "has pods whose users are users of their node: they need hostUsers: false"})
	}
	return append(broken, tolerations(pod, object.GetKind(), rule.Tolerations)...)
}
