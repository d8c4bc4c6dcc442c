package guardrails

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/few"
)

// reservedDomains are those of the keys that Kubernetes, Helm and kubeop act on. They and the domains below them are never added.
var reservedDomains = []string{"kubernetes.io", "k8s.io", "kubeop.io", "helm.sh"}

// marks are labels or annotations: their values by their keys.
type marks struct {
	// field is "labels" or "annotations".
	field string
	added map[string]string
	// forbidden are patterns of keys that no object may have.
	forbidden []string
}

// marksOfPolicy returns the labels and annotations that a policy adds and forbids.
func marksOfPolicy(policy *v1alpha1.Policy) []marks {
	labels, annotations := marks{field: "labels"}, marks{field: "annotations"}
	rule := policy.Spec.Metadata
	if rule == nil {
		return []marks{labels, annotations}
	}
	if rule.Added != nil {
		labels.added, annotations.added = texts(rule.Added.Labels), texts(rule.Added.Annotations)
	}
	if rule.Action == "" || rule.Action == v1alpha1.DenyAction {
		labels.forbidden, annotations.forbidden = rule.ForbiddenLabels, rule.ForbiddenAnnotations
	}
	return []marks{labels, annotations}
}

// texts returns a map of texts.
func texts[V ~string](of map[string]V) map[string]string {
	all := map[string]string{}
	for key, value := range of {
		all[key] = string(value)
	}
	return all
}

// Added returns the labels and annotations that policies add, nil for none, and how policies contradict each other: by different values of a key, or
// because one forbids what another adds. What they contradict each other about is not added.
func Added(policies []v1alpha1.Policy) (added *v1alpha1.AddedMetadata, contradictions []string) {
	sums := []*sum{newSum("labels"), newSum("annotations")}
	for i, s := range sums {
		for j := range policies {
			s.add(policies[j].Name, marksOfPolicy(&policies[j])[i].added)
		}
		for j := range policies {
			s.forbid(policies[j].Name, marksOfPolicy(&policies[j])[i].forbidden)
		}
		maps.DeleteFunc(s.values, func(key, _ string) bool { return s.contradictory[key] })
		contradictions = append(contradictions, s.contradictions...)
	}
	if len(sums[0].values)+len(sums[1].values) == 0 {
		return nil, contradictions
	}
	added = &v1alpha1.AddedMetadata{}
	for key, value := range sums[0].values {
		store(&added.Labels, key, v1alpha1.LabelValue(value))
	}
	for key, value := range sums[1].values {
		store(&added.Annotations, key, v1alpha1.AnnotationValue(value))
	}
	return added, contradictions
}

// sum are the labels or annotations of several policies.
type sum struct {
	field string
	// values are what is added, and by the names of the policies that add it.
	values, by map[string]string
	// contradictory are keys about which policies do not agree, and contradictions say why.
	contradictory  map[string]bool
	contradictions []string
}

func newSum(field string) *sum {
	return &sum{field: field, values: map[string]string{}, by: map[string]string{}, contradictory: map[string]bool{}}
}

// add adds what a policy adds. Keys that nobody may add are left out: a Policy that does not come from Git can have them.
func (s *sum) add(policy string, added map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(added)) {
		was, there := s.values[key]
		switch {
		case wrongKey(key) != "":
		case !there:
			s.values[key], s.by[key] = added[key], policy
		case was != added[key]:
			s.contradict(key, fmt.Sprintf("=%s, and that of policies/%s.yaml has %s", few.Line(was, maxQuoted), policy, few.Line(added[key], maxQuoted)))
		}
	}
}

// forbid finds what another policy forbids.
func (s *sum) forbid(policy string, patterns []string) {
	for _, key := range slices.Sorted(maps.Keys(s.values)) {
		if matchesKey(patterns, key) {
			s.contradict(key, fmt.Sprintf(", which policies/%s.yaml forbids", policy))
		}
	}
}

func (s *sum) contradict(key, why string) {
	s.contradictory[key] = true
	s.contradictions = append(s.contradictions, fmt.Sprintf("spec.metadata.added.%s of policies/%s.yaml has %s%s", s.field, s.by[key], key, why))
}

func store[V any](into *map[string]V, key string, value V) {
	if *into == nil {
		*into = map[string]V{}
	}
	(*into)[key] = value
}

// matchesKey reports whether a key matches one of the patterns.
func matchesKey(patterns []string, key string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return keyed(pattern, key) })
}

// wrongKey says why a label or an annotation with a key cannot be added; "" if it can.
func wrongKey(key string) string {
	if wrong := validation.IsQualifiedName(key); len(wrong) > 0 {
		return "is not the name of a label or an annotation, such as team or example.org/team"
	}
	domain, _, qualified := strings.Cut(key, "/")
	for _, reserved := range reservedDomains {
		if qualified && (domain == reserved || strings.HasSuffix(domain, "."+reserved)) {
			return fmt.Sprintf("is in the domain %s, whose labels and annotations Kubernetes, Helm or kubeop act on; use a domain of your own in Git", reserved)
		}
	}
	return ""
}

// Fault is something wrong with the labels and annotations that a policy adds.
type Fault struct {
	// Field in the spec of the Policy, such as "metadata.added.labels[team]".
	Field, Why string
}

// CheckAdded returns what the schema cannot check of the labels and annotations that a policy adds: keys that nobody may add, and those that the policy
// itself forbids.
func CheckAdded(policy *v1alpha1.Policy) (faults []Fault) {
	for _, of := range marksOfPolicy(policy) {
		for _, key := range slices.Sorted(maps.Keys(of.added)) {
			why := wrongKey(key)
			if why == "" && matchesKey(of.forbidden, key) {
				why = "is forbidden by the same policy; take it out of one of them in Git"
			}
			if why != "" {
				faults = append(faults, Fault{fmt.Sprintf("metadata.added.%s[%s]", of.field, key), why})
			}
		}
	}
	return faults
}

// Mark writes the labels and annotations that policies add into the objects, in place. It overwrites other values, but not the labels of a Pod, by which Services
// and others select it. Templates stay as they are, so that a change of a policy restarts nothing.
func Mark(objects []*unstructured.Unstructured, spec *v1alpha1.GuardrailsSpec) {
	if spec == nil || spec.Added == nil {
		return
	}
	for _, object := range objects {
		keep := object.GroupVersionKind().GroupKind() == podKind
		mark(object, "labels", texts(spec.Added.Labels), keep)
		mark(object, "annotations", texts(spec.Added.Annotations), false)
	}
}

// mark writes labels or annotations. keep leaves values that are there as they are.
func mark(object *unstructured.Unstructured, field string, values map[string]string, keep bool) {
	now, _, err := unstructured.NestedStringMap(object.Object, "metadata", field)
	if err != nil || len(values) == 0 {
		return // The API server refuses the object.
	}
	all := map[string]string{}
	maps.Copy(all, now)
	maps.Copy(all, values)
	if keep {
		maps.Copy(all, now)
	}
	if field == "labels" {
		object.SetLabels(all)
		return
	}
	object.SetAnnotations(all)
}

// Marked returns a text that changes with what Mark writes; "" for nothing.
func Marked(spec *v1alpha1.GuardrailsSpec) string {
	if spec == nil || spec.Added == nil {
		return ""
	}
	return fmt.Sprintf(" marked %q %q", spec.Added.Labels, spec.Added.Annotations) // Maps are printed in the order of their keys.
}

// withoutAdded returns the rules about metadata without what is added, which is no rule; nil if there are no others.
func withoutAdded(rules *v1alpha1.MetadataRules) *v1alpha1.MetadataRules {
	if rules == nil || rules.Added == nil {
		return rules
	}
	if len(rules.RequiredLabels)+len(rules.ForbiddenLabels)+len(rules.ForbiddenAnnotations) == 0 {
		return nil
	}
	without := rules.DeepCopy()
	without.Added = nil
	return without
}
