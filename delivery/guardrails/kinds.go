package guardrails

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/podspec"
)

// kinds: an object may be only of kinds that the policy allows.
func kinds(object *unstructured.Unstructured, rules *v1alpha1.PolicyRules) []found {
	rule, kind := rules.Kinds, object.GroupVersionKind().GroupKind()
	if rule == nil {
		return nil
	}
	named := few.Line(nameOf(kind), maxQuoted)
	switch {
	case len(rule.Allow) > 0 && !among(rule.Allow, kind):
		return []found{{"kinds.allow", fmt.Sprintf("is of kind %s, which is not among the allowed ones: %s", named, listed(rule.Allow))}}
	case among(rule.Deny, kind):
		return []found{{"kinds.deny", fmt.Sprintf("is of kind %s, which is among the refused ones: %s", named, listed(rule.Deny))}}
	}
	return nil
}

// nameOf names a kind as policies do: "<Kind>" of the core group, and "<Kind>.<group>" of others.
func nameOf(kind schema.GroupKind) string {
	if kind.Group == "" {
		return kind.Kind
	}
	return kind.Kind + "." + kind.Group
}

// among reports whether a list names a kind, or all kinds of its group as "*.<group>".
func among(list []string, kind schema.GroupKind) bool {
	return slices.Contains(list, nameOf(kind)) || kind.Group != "" && slices.Contains(list, "*."+kind.Group)
}

// metadata: a workload has the labels that the policy requires, and nothing has labels and annotations that it forbids.
func metadata(object *unstructured.Unstructured, rules *v1alpha1.PolicyRules) []found {
	rule := rules.Metadata
	if rule == nil {
		return nil
	}
	var broken []found
	if slices.Contains(workloads, object.GroupVersionKind().GroupKind()) {
		for _, label := range rule.RequiredLabels {
			if _, has := object.GetLabels()[label]; !has {
				broken = append(broken, found{"metadata.requiredLabels", fmt.Sprintf("lacks the label %s", label)})
			}
		}
	}
	places := placesOf(object)
	for _, of := range []struct {
		field, what      string
		there, forbidden []string
	}{
		{"metadata.forbiddenLabels", "label", marksOf(places, "labels"), rule.ForbiddenLabels},
		{"metadata.forbiddenAnnotations", "annotation", marksOf(places, "annotations"), rule.ForbiddenAnnotations},
	} {
		for _, key := range of.there {
			if slices.ContainsFunc(of.forbidden, func(pattern string) bool { return keyed(pattern, key) }) {
				broken = append(broken, found{of.field, fmt.Sprintf("has the %s %s, which is among the forbidden ones: %s", of.what, few.Line(key, maxQuoted), listed(of.forbidden))})
			}
		}
	}
	return broken
}

var podKind = schema.GroupKind{Kind: "Pod"}

// workloads are the kinds that need the required labels: those that people and apps write, and that have pods.
var workloads = []schema.GroupKind{
	podKind, {Group: "apps", Kind: "DaemonSet"}, {Group: "apps", Kind: "Deployment"}, {Group: "apps", Kind: "StatefulSet"},
	{Group: "batch", Kind: "CronJob"}, {Group: "batch", Kind: "Job"},
}

// placesOf returns the metadata of an object and that of its templates: Kubernetes' controllers make pods, Jobs and claims with it.
func placesOf(object *unstructured.Unstructured) []any {
	places := []any{object.Object["metadata"]}
	spec, _ := object.Object["spec"].(map[string]any)
	if job, ok := spec["jobTemplate"].(map[string]any); ok {
		places = append(places, job["metadata"])
	}
	for _, claim := range mappings(spec["volumeClaimTemplates"]) {
		places = append(places, claim["metadata"])
	}
	if pod := podspec.Of(object); pod != nil {
		places = append(places, pod.Metadata)
		for _, volume := range mappings(pod.Spec["volumes"]) {
			template, _, _ := unstructured.NestedMap(volume, "ephemeral", "volumeClaimTemplate")
			places = append(places, template["metadata"])
		}
	}
	return places
}

// marksOf returns the keys of the labels or annotations in some metadata, sorted. Each is returned once.
func marksOf(places []any, field string) []string {
	keys := map[string]bool{}
	for _, place := range places {
		metadata, _ := place.(map[string]any)
		marks, _ := metadata[field].(map[string]any)
		for key := range marks {
			keys[key] = true
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// keyed reports whether a key matches a pattern, in which "*" stands for any characters. The schema allows only characters of keys in it.
func keyed(pattern, key string) bool {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$").MatchString(key)
}
