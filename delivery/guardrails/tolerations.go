package guardrails

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/podspec"
)

// lostNodes are the taints of lost nodes. The API server has every pod tolerate them for a time.
var lostNodes = []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable}

// byKubernetes are the taints that Kubernetes lets pods tolerate: those of a DaemonSet and, for the memory, all that request some.
var byKubernetes = []string{
	corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure, corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable, corev1.TaintNodeNetworkUnavailable,
}

// tolerations returns the first toleration of a pod that a rule does not allow. The tolerations that Kubernetes adds are in pods only, not in their templates.
func tolerations(pod *podspec.Pod, kind string, allowed []v1alpha1.AllowedToleration) []found {
	if len(allowed) == 0 {
		return nil
	}
	list, _ := pod.Spec["tolerations"].([]any)
	for _, one := range list {
		t, ok := one.(map[string]any)
		if !ok {
			continue // The API server refuses it.
		}
		key, operator, effect := textOf(t, "key"), textOf(t, "operator"), textOf(t, "effect")
		added := kind == "Pod" && slices.Contains(byKubernetes, key) && operator == string(corev1.TolerationOpExists) && effect == string(corev1.TaintEffectNoSchedule)
		if added || slices.Contains(lostNodes, key) || slices.ContainsFunc(allowed, func(a v1alpha1.AllowedToleration) bool { return covers(a, t) }) {
			continue
		}
		var names []string
		for _, a := range allowed {
			names = append(names, ToleratedBy(a))
		}
		return []found{{"nodes.tolerations", fmt.Sprintf("tolerates %s, which is not among the allowed taints: %s", tolerated(t), strings.Join(few.Of(names, maxListed), ", "))}}
	}
	return nil
}

// covers reports whether a toleration tolerates no taint that the allowed one does not.
func covers(a v1alpha1.AllowedToleration, t map[string]any) bool {
	if a.Key != textOf(t, "key") || a.Effect != "" && a.Effect != textOf(t, "effect") {
		return false
	}
	equal := slices.Contains([]string{"", string(corev1.TolerationOpEqual)}, textOf(t, "operator"))
	return everyValue(a) || equal && textOf(t, "value") == string(a.Value)
}

// everyValue reports whether the value of the taint does not matter.
func everyValue(a v1alpha1.AllowedToleration) bool {
	return a.Operator == string(corev1.TolerationOpExists) || a.Operator == "" && a.Value == ""
}

// ToleratedBy names the taints of an allowed toleration, such as "pool=tenants:NoSchedule" or, for every value and effect, "pool".
func ToleratedBy(a v1alpha1.AllowedToleration) string {
	name := a.Key
	if !everyValue(a) {
		name += "=" + string(a.Value)
	}
	if a.Effect != "" {
		name += ":" + a.Effect
	}
	return name
}

// tolerated names the taints that a toleration of a pod tolerates.
func tolerated(t map[string]any) string {
	name := textOf(t, "key")
	if name == "" {
		return "every taint"
	}
	switch operator := textOf(t, "operator"); operator {
	case "", string(corev1.TolerationOpEqual):
		name += "=" + textOf(t, "value")
	case string(corev1.TolerationOpExists):
		name += " of every value"
	default:
		name += " " + operator + " " + textOf(t, "value")
	}
	if effect := textOf(t, "effect"); effect != "" {
		name += ":" + effect
	}
	return "the taint " + few.Line(name, maxQuoted)
}

// textOf returns a field that is a text; "" for any other, which the API server refuses.
func textOf(t map[string]any, field string) string {
	text, _ := t[field].(string)
	return text
}
