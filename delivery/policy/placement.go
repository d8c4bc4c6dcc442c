package policy

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/delivery/command"
)

// harmlessTaints are taints that say how soon a pod leaves a node that is lost. Every pod tolerates them for a time.
var harmlessTaints = []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable}

// toleration: something in the object would tolerate a taint that the tenant may not tolerate. Taints are how administrators keep pods off
// control planes, off nodes that fail or are drained, and off nodes of other tenants. The field is searched at any depth, because custom kinds
// create pods too.
func (b Bounds) toleration(object *unstructured.Unstructured, _ string) string {
	var refused string
	visit(object.Object, func(field string, value any) {
		list, ok := value.([]any)
		if !ok || field != "tolerations" || refused != "" {
			return
		}
		for _, one := range list {
			toleration, _ := one.(map[string]any)
			key, _ := toleration["key"].(string)
			switch {
			case key == "":
				refused = "tolerates every taint, because a toleration has no key: name the taints in Git"
			case !slices.Contains(harmlessTaints, key) && !slices.Contains(b.Taints, key):
				refused = fmt.Sprintf("tolerates the taint %s, and nodes with it are not for this tenant: take it out, or ask an administrator of the cluster to list %s in %s",
					oneLine(key), oneLine(key), command.OfTenant("spec.taints"))
			default:
				continue
			}
			return
		}
	})
	return refused
}

// nodeName: a pod of the object would be placed on a node without the scheduler, so past taints and what is left of the node.
func nodeName(object *unstructured.Unstructured, _ string) string {
	var named string
	eachPod(object, func(pod map[string]any) {
		if name, set := pod["nodeName"]; set && name != "" {
			named = fmt.Sprint(name)
		}
	})
	if named == "" {
		return ""
	}
	return fmt.Sprintf("has nodeName %s, which places pods without the scheduler; use nodeSelector or affinity in Git", oneLine(named))
}

// foreignAffinity: the scheduler would place a pod of the object near or away from pods of other namespaces. With anti-affinity it would also
// keep those pods away, and the place of the pod would show where they run.
func foreignAffinity(object *unstructured.Unstructured, namespace string) string {
	var refused string
	visit(object.Object, func(field string, value any) {
		affinity, ok := value.(map[string]any)
		if !ok || field != "podAffinity" && field != "podAntiAffinity" {
			return
		}
		for _, term := range affinityTerms(affinity) {
			namespaces, _ := term["namespaces"].([]any)
			foreign := slices.ContainsFunc(namespaces, func(name any) bool { return name != namespace })
			if term["namespaceSelector"] != nil || foreign {
				refused = fmt.Sprintf("has %s with pods of other namespaces; leave namespaces and namespaceSelector out in Git, so that it is with pods of namespace %s", field, namespace)
			}
		}
	})
	return refused
}

// affinityTerms returns the terms of a podAffinity or podAntiAffinity, whether required or preferred.
func affinityTerms(affinity map[string]any) []map[string]any {
	var terms []map[string]any
	required, _ := affinity["requiredDuringSchedulingIgnoredDuringExecution"].([]any)
	for _, one := range required {
		term, _ := one.(map[string]any)
		terms = append(terms, term)
	}
	preferred, _ := affinity["preferredDuringSchedulingIgnoredDuringExecution"].([]any)
	for _, one := range preferred {
		weighted, _ := one.(map[string]any)
		term, _ := weighted["podAffinityTerm"].(map[string]any)
		terms = append(terms, term)
	}
	return terms
}
