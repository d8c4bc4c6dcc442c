package guardrails

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// adding returns a policy with these rules about metadata, written as YAML.
func adding(t *testing.T, name, rules string) v1alpha1.Policy {
	t.Helper()
	policy := v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := yaml.UnmarshalStrict([]byte(rules), &policy.Spec.Metadata); err != nil {
		t.Fatal(err)
	}
	return policy
}

// TestContradictingMetadataIsNotAdded, and both policies are named.
func TestContradictingMetadataIsNotAdded(t *testing.T) {
	for name, c := range map[string]struct {
		policies       []string
		want           string
		contradictions string
	}{
		"nothing":                   {[]string{"{requiredLabels: [a]}"}, "null", ""},
		"one":                       {[]string{"{added: {labels: {team: acme}, annotations: {example.org/note: a b}}}"}, "{labels: {team: acme}, annotations: {example.org/note: a b}}", ""},
		"whatever the action":       {[]string{"{action: Audit, added: {labels: {team: acme}}}"}, "{labels: {team: acme}}", ""},
		"of several all":            {[]string{"{added: {labels: {team: acme}}}", "{added: {labels: {cost: '1', team: acme}}}"}, "{labels: {team: acme, cost: '1'}}", ""},
		"a label and an annotation": {[]string{"{added: {labels: {team: acme}}}", "{added: {annotations: {team: beta}}}"}, "{labels: {team: acme}, annotations: {team: beta}}", ""},
		"two values": {[]string{"{added: {labels: {team: acme, cost: '1'}}}", "{added: {labels: {team: beta}}}", "{added: {labels: {team: acme}}}"}, "{labels: {cost: '1'}}",
			"spec.metadata.added.labels of policies/a.yaml has team=acme, and that of policies/b.yaml has beta"},
		"two values of an annotation": {[]string{"{added: {annotations: {note: x}}}", "{added: {annotations: {note: other}}}"}, "null",
			"spec.metadata.added.annotations of policies/a.yaml has note=x, and that of policies/b.yaml has other"},
		"what another one forbids": {[]string{"{added: {labels: {example.org/team: acme}}}", "{forbiddenLabels: ['example.org/*']}"}, "null",
			"spec.metadata.added.labels of policies/a.yaml has example.org/team, which policies/b.yaml forbids"},
		"what another one only warns about": {[]string{"{added: {labels: {team: acme}}}", "{action: Warn, forbiddenLabels: [team]}"}, "{labels: {team: acme}}", ""},
		"a label of kubeop's, not from Git": {[]string{"{added: {labels: {paas.kubeop.io/app: other, team: acme}}}"}, "{labels: {team: acme}}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var policies []v1alpha1.Policy
			for i, rules := range c.policies {
				policies = append(policies, adding(t, string(rune('a'+i)), rules))
			}
			var want *v1alpha1.AddedMetadata
			if err := yaml.UnmarshalStrict([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			got, contradictions := Added(policies)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if text := strings.Join(contradictions, "; "); text != c.contradictions {
				t.Errorf("contradictions: got %q, want %q", text, c.contradictions)
			}
		})
	}
}

// TestObjectsAreMarkedAndTheirPodsAreNot: no selector, template or label by which a Pod is selected changes.
func TestObjectsAreMarkedAndTheirPodsAreNot(t *testing.T) {
	rules := For(&v1alpha1.Tenant{}, []v1alpha1.Policy{adding(t, "a", "{added: {labels: {team: acme, cost: '1'}, annotations: {note: a}}}")})
	for name, c := range map[string]struct{ object, want string }{
		"nothing there": {"{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}",
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {team: acme, cost: '1'}, annotations: {note: a}}}"},
		"another value": {"{apiVersion: v1, kind: Service, metadata: {labels: {team: beta, own: x}, annotations: {note: b, own: x}}, spec: {selector: {team: beta}}}",
			"{apiVersion: v1, kind: Service, metadata: {labels: {team: acme, cost: '1', own: x}, annotations: {note: a, own: x}}, spec: {selector: {team: beta}}}"},
		"a workload": {"{apiVersion: apps/v1, kind: Deployment, metadata: {labels: {team: beta}}, spec: {selector: {matchLabels: {team: beta}}, template: {metadata: {labels: {team: beta}}}}}",
			"{apiVersion: apps/v1, kind: Deployment, metadata: {labels: {team: acme, cost: '1'}, annotations: {note: a}}, spec: {selector: {matchLabels: {team: beta}}, template: {metadata: {labels: {team: beta}}}}}"},
		"a Pod that is selected": {"{apiVersion: v1, kind: Pod, metadata: {labels: {team: beta}, annotations: {note: b}}}",
			"{apiVersion: v1, kind: Pod, metadata: {labels: {team: beta, cost: '1'}, annotations: {note: a}}}"},
		"without sense": {"{apiVersion: v1, kind: ConfigMap, metadata: {labels: [a], annotations: {b: [c]}}}", "{apiVersion: v1, kind: ConfigMap, metadata: {labels: [a], annotations: {b: [c]}}}"},
	} {
		t.Run(name, func(t *testing.T) {
			object := parsed(t, c.object)
			for range 2 {
				Mark([]*unstructured.Unstructured{object}, &rules)
				if diff := cmp.Diff(parsed(t, c.want).Object, object.Object); diff != "" {
					t.Fatalf("-want +got:\n%s", diff)
				}
			}
		})
	}
	for _, rules := range []*v1alpha1.GuardrailsSpec{nil, {}} {
		object := parsed(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}")
		if Mark([]*unstructured.Unstructured{object}, rules); len(object.GetLabels()) > 0 || Marked(rules) != "" {
			t.Errorf("marked without a policy: %v", object.Object)
		}
	}
}

// TestAddedMetadataIsNoRule: no object is judged by it. It is part of the input of a release.
func TestAddedMetadataIsNoRule(t *testing.T) {
	one := For(&v1alpha1.Tenant{}, []v1alpha1.Policy{adding(t, "a", "{added: {labels: {team: acme}}}")})
	two := For(&v1alpha1.Tenant{}, []v1alpha1.Policy{adding(t, "a", "{requiredLabels: [team], added: {labels: {team: beta}}}")})
	if len(one.Deny) != 0 || len(two.Deny) != 1 || two.Deny[0].Metadata.Added != nil || len(two.Deny[0].Metadata.RequiredLabels) != 1 {
		t.Errorf("the rules are %+v and %+v", one.Deny, two.Deny)
	}
	if Marked(&one) == "" || Marked(&one) == Marked(&two) {
		t.Errorf("%q and %q", Marked(&one), Marked(&two))
	}
	quoted := For(&v1alpha1.Tenant{}, []v1alpha1.Policy{adding(t, "a", "{added: {annotations: {a: 'b c:d'}}}")})
	if pairs := For(&v1alpha1.Tenant{}, []v1alpha1.Policy{adding(t, "a", "{added: {annotations: {a: b, c: d}}}")}); Marked(&pairs) == Marked(&quoted) {
		t.Errorf("the same for other annotations: %q", Marked(&pairs))
	}
	pod := parsed(t, "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {}}")
	if Mark([]*unstructured.Unstructured{pod}, &two); len(Check(pod, &two)) > 0 {
		t.Errorf("a label that is added is missing: %v", Check(pod, &two))
	}
}

func TestOnlyKeysThatMayBeAddedAre(t *testing.T) {
	for key, want := range map[string]string{
		"team": "", "example.org/team": "", "kubernetes.io.example.org/x": "", "notkubeop.io/x": "",
		"app.kubernetes.io/name": "is in the domain kubernetes.io", "kubernetes.io/x": "is in the domain kubernetes.io", "node.k8s.io/x": "is in the domain k8s.io",
		"paas.kubeop.io/app": "is in the domain kubeop.io", "helm.sh/chart": "is in the domain helm.sh", "meta.helm.sh/release-name": "is in the domain helm.sh",
		"a b": "is not the name", "-x": "is not the name", "a/b/c": "is not the name",
	} {
		policy := v1alpha1.Policy{Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{Metadata: &v1alpha1.MetadataRules{Added: &v1alpha1.AddedMetadata{
			Labels: map[string]v1alpha1.LabelValue{key: "x"}, Annotations: map[string]v1alpha1.AnnotationValue{key: "x"},
		}}}}}
		faults := CheckAdded(&policy)
		if len(faults) != 2 && want != "" || len(faults) > 0 && (want == "" || !strings.HasPrefix(faults[0].Why, want)) {
			t.Errorf("%s: got %v, want %q", key, faults, want)
		}
	}
	own := adding(t, "a", "{forbiddenLabels: ['te*'], added: {labels: {team: x}, annotations: {team: x}}}")
	want := []Fault{{"metadata.added.labels[team]", "is forbidden by the same policy; take it out of one of them in Git"}}
	if diff := cmp.Diff(want, CheckAdded(&own)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
