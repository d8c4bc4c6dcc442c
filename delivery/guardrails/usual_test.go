package guardrails

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	defaults "github.com/kubeop/kubeop/delivery/classes"
)

// TestAnIngressThatGetsNoClassIsRefused, because each controller that serves such Ingresses would serve it. Nothing is said where the default class is not known.
func TestAnIngressThatGetsNoClassIsRefused(t *testing.T) {
	spec := v1alpha1.GuardrailsSpec{Deny: []v1alpha1.AppliedPolicy{{Policy: "few", PolicyRules: v1alpha1.PolicyRules{Classes: &v1alpha1.ClassRules{Ingress: []string{"public"}}}}}}
	const ingress, refused = "{apiVersion: networking.k8s.io/v1, kind: Ingress, %s}", "has no ingressClassName; allowed are: public"
	none, unknown, usual := defaults.Usual{NoIngress: true}, defaults.Usual{}, defaults.Usual{Ingress: "public"}
	for name, c := range map[string]struct {
		text  string
		usual defaults.Usual
		want  string
	}{
		"no default":                         {"spec: {}", none, refused},
		"no default, an empty field":         {"spec: {ingressClassName: ''}", none, refused},
		"no default, a class":                {"spec: {ingressClassName: public}", none, ""},
		"no default, an annotation":          {"metadata: {annotations: {kubernetes.io/ingress.class: public}}", none, ""},
		"not known":                          {"spec: {}", unknown, ""},
		"a default":                          {"spec: {}", usual, ""},
		"an empty annotation in its place":   {"metadata: {annotations: {kubernetes.io/ingress.class: ''}}", usual, refused},
		"an empty annotation, none is known": {"metadata: {annotations: {kubernetes.io/ingress.class: ''}}", unknown, refused},
	} {
		got := ""
		for _, v := range Unnamed(parsed(t, fmt.Sprintf(ingress, c.text)), &spec, c.usual) {
			got += v.Why
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	if got := Unnamed(parsed(t, "{apiVersion: v1, kind: Service, spec: {}}"), &spec, none); got != nil {
		t.Errorf("a Service: %v", got)
	}
}

// TestObjectsWithoutAClassAreJudgedByTheDefaultClass if the API server fills that in.
func TestObjectsWithoutAClassAreJudgedByTheDefaultClass(t *testing.T) {
	spec := v1alpha1.GuardrailsSpec{Deny: []v1alpha1.AppliedPolicy{{Policy: "few", PolicyRules: v1alpha1.PolicyRules{
		Classes: &v1alpha1.ClassRules{Storage: []string{"fast"}, Ingress: []string{"public"}, Priority: []string{"low"}},
	}}}}
	const claim, ingress = "{apiVersion: v1, kind: PersistentVolumeClaim, %s}", "{apiVersion: networking.k8s.io/v1, kind: Ingress, %s}"
	const set = "{apiVersion: apps/v1, kind: StatefulSet, spec: {volumeClaimTemplates: [{spec: {storageClassName: fast}}, {%s}]}}"
	const pod = "{apiVersion: v1, kind: Pod, spec: {priorityClassName: low, volumes: [{name: a, emptyDir: {}}, {name: v, ephemeral: {volumeClaimTemplate: {%s}}}]}}"
	storage := []string{"classes.storage names no storageClassName, and so gets standard, the default of the cluster; allowed are: fast"}
	for text, want := range map[string][]string{
		fmt.Sprintf(claim, "spec: {}"):                                                                 storage,
		fmt.Sprintf(claim, "spec: {storageClassName: null}"):                                           storage,
		fmt.Sprintf(claim, "spec: {storageClassName: ''}"):                                             nil,
		fmt.Sprintf(claim, "spec: {storageClassName: fast}"):                                           nil,
		fmt.Sprintf(claim, "metadata: {annotations: {volume.beta.kubernetes.io/storage-class: fast}}"): nil,
		fmt.Sprintf(set, "spec: {}"):                                                                   storage,
		fmt.Sprintf(set, "spec: {storageClassName: fast}"):                                             nil,
		fmt.Sprintf(pod, "spec: {}"):                                                                   storage,
		fmt.Sprintf(pod, "spec: {storageClassName: fast}"):                                             nil,
		fmt.Sprintf(ingress, "spec: {}"):                                                               {"classes.ingress names no ingressClassName, and so gets nginx, the default of the cluster; allowed are: public"},
		fmt.Sprintf(ingress, "spec: {ingressClassName: public}"):                                       nil,
		fmt.Sprintf(ingress, "metadata: {annotations: {kubernetes.io/ingress.class: public}}"):         nil,
		"{apiVersion: extensions/v1beta1, kind: Ingress, spec: {}}":                                    nil,
		"{apiVersion: v1, kind: Pod, spec: {}}":                                                        {"classes.priority names no priorityClassName, and so gets usual, the default of the cluster; allowed are: low"},
		"{apiVersion: v1, kind: Pod, spec: {priorityClassName: ''}}":                                   {"classes.priority names no priorityClassName, and so gets usual, the default of the cluster; allowed are: low"},
		"{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {priorityClassName: low}}}}":        nil,
		"{apiVersion: v1, kind: Service, spec: {}}":                                                    nil,
	} {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		judged := func(usual defaults.Usual) (got []string) {
			for _, v := range Unnamed(object, &spec, usual) {
				got = append(got, v.Field+" "+v.Why)
			}
			return got
		}
		if diff := cmp.Diff(want, judged(defaults.Usual{Storage: "standard", Ingress: "nginx", Priority: "usual"})); diff != "" {
			t.Errorf("%s: -want +got:\n%s", text, diff)
		}
		for why, usual := range map[string]defaults.Usual{"not known": {}, "allowed": {Storage: "fast", Ingress: "public", Priority: "low"}} {
			if got := judged(usual); got != nil {
				t.Errorf("%s, with default classes that are %s: %v", text, why, got)
			}
		}
	}
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim"}}
	for name, rules := range map[string]v1alpha1.PolicyRules{"no rule": {}, "no list": {Classes: &v1alpha1.ClassRules{Ingress: []string{"public"}}}} {
		spec.Deny[0].PolicyRules = rules
		if got := Unnamed(object, &spec, defaults.Usual{Storage: "standard"}); got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}
