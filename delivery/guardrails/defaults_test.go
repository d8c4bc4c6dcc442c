package guardrails

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func pulling(action v1alpha1.PolicyAction, values ...string) v1alpha1.PolicyRules {
	return v1alpha1.PolicyRules{Images: &v1alpha1.ImageRules{Action: action, PullPolicies: values}}
}

// TestOnlyAlwaysIsADefaultPullPolicy, where the policies allow it and not IfNotPresent, and deny other values.
func TestOnlyAlwaysIsADefaultPullPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		rules []v1alpha1.PolicyRules
		want  bool
	}{
		"no rule":              {[]v1alpha1.PolicyRules{{Images: &v1alpha1.ImageRules{RequireDigest: true}}}, false},
		"Always":               {[]v1alpha1.PolicyRules{pulling("", "Always")}, true},
		"not IfNotPresent":     {[]v1alpha1.PolicyRules{pulling("", "Always", "Never")}, true},
		"also IfNotPresent":    {[]v1alpha1.PolicyRules{pulling("", "Always", "IfNotPresent")}, false},
		"Never":                {[]v1alpha1.PolicyRules{pulling("", "Never")}, false},
		"Always by both":       {[]v1alpha1.PolicyRules{pulling("", "Always", "IfNotPresent"), pulling("", "Always")}, true},
		"Always by one":        {[]v1alpha1.PolicyRules{pulling("", "Always"), pulling("", "IfNotPresent")}, false},
		"Always, only to warn": {[]v1alpha1.PolicyRules{pulling(v1alpha1.WarnAction, "Always")}, false},
	} {
		var policies []v1alpha1.Policy
		for i, rules := range c.rules {
			policies = append(policies, named(string(rune('a'+i)), false, rules))
		}
		if spec := Of(policies); DefaultsOf(&spec).Pull != c.want {
			t.Errorf("%s: the default is Always: %t", name, !c.want)
		}
	}
}

// TestTemplatesGetTheDefaultsOfPolicies where their authors say nothing. Pods and Jobs cannot be changed, so they get none.
func TestTemplatesGetTheDefaultsOfPolicies(t *testing.T) {
	rules := Of([]v1alpha1.Policy{
		named("a", false, v1alpha1.PolicyRules{Nodes: &v1alpha1.NodeRules{UserNamespaces: true}}), named("b", false, pulling("", "Always")),
	})
	deployment := func(pod string) string {
		return "{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: " + pod + "}}}"
	}
	for name, c := range map[string]struct{ object, want string }{
		"nothing is said": {deployment("{containers: [{image: 'a:1'}], initContainers: [{image: b@sha256:0}], volumes: [{image: {reference: 'c:1'}}, {emptyDir: {}}]}"),
			deployment("{hostUsers: false, containers: [{image: 'a:1', imagePullPolicy: Always}], initContainers: [{image: b@sha256:0, imagePullPolicy: Always}], " +
				"volumes: [{image: {reference: 'c:1', pullPolicy: Always}}, {emptyDir: {}}]}")},
		"null is nothing": {deployment("{hostUsers: null, containers: [{image: 'a:1', imagePullPolicy: null}]}"), deployment("{hostUsers: false, containers: [{image: 'a:1', imagePullPolicy: Always}]}")},
		"Always by itself": {deployment("{containers: [{image: a}, {image: 'a:latest'}, {name: b}]}"),
			deployment("{hostUsers: false, containers: [{image: a}, {image: 'a:latest'}, {name: b}]}")},
		"something else": {deployment("{hostUsers: true, containers: [{image: 'a:1', imagePullPolicy: IfNotPresent}, {image: b, imagePullPolicy: Never}]}"),
			deployment("{hostUsers: true, containers: [{image: 'a:1', imagePullPolicy: IfNotPresent}, {image: b, imagePullPolicy: Never}]}")},
		"a Job": {"{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {containers: [{image: 'a:1'}]}}}}", "{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {containers: [{image: 'a:1'}]}}}}"},
	} {
		t.Run(name, func(t *testing.T) {
			object := parsed(t, c.object)
			Default([]*unstructured.Unstructured{object}, &rules)
			if diff := cmp.Diff(parsed(t, c.want).Object, object.Object); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestObjectsThatNameNoClassGetThatOfPolicies: of several, that of the first by name. A class that an author named stays.
func TestObjectsThatNameNoClassGetThatOfPolicies(t *testing.T) {
	classes := func(action v1alpha1.PolicyAction, of v1alpha1.ClassDefaults) v1alpha1.PolicyRules {
		return v1alpha1.PolicyRules{Classes: &v1alpha1.ClassRules{Action: action, Defaults: &of}}
	}
	rules := Of([]v1alpha1.Policy{
		named("a", false, classes("", v1alpha1.ClassDefaults{Ingress: "public", Runtime: "gvisor"})),
		named("b", false, classes("", v1alpha1.ClassDefaults{Gateway: "shared", Priority: "batch", Runtime: "kata"})),
		named("c", false, classes(v1alpha1.WarnAction, v1alpha1.ClassDefaults{Ingress: "never"})),
	})
	ingress, gateway := "{apiVersion: networking.k8s.io/v1, kind: Ingress, ", "{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, "
	deployment := func(pod string) string {
		return "{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: " + pod + "}}}"
	}
	annotated := ingress + "metadata: {annotations: {kubernetes.io/ingress.class: a}}, spec: {}}"
	for name, c := range map[string]struct{ object, want string }{
		"an Ingress":                 {ingress + "spec: {rules: []}}", ingress + "spec: {rules: [], ingressClassName: public}}"},
		"an Ingress of a class":      {ingress + "spec: {ingressClassName: a}}", ingress + "spec: {ingressClassName: a}}"},
		"an annotated Ingress":       {annotated, annotated},
		"an Ingress without sense":   {ingress + "spec: x}", ingress + "spec: x}"},
		"a Gateway":                  {gateway + "spec: {}}", gateway + "spec: {gatewayClassName: shared}}"},
		"a Gateway of a class":       {gateway + "spec: {gatewayClassName: a}}", gateway + "spec: {gatewayClassName: a}}"},
		"a template":                 {deployment("{containers: []}"), deployment("{containers: [], priorityClassName: batch, runtimeClassName: gvisor}")},
		"a template of classes":      {deployment("{priorityClassName: a, runtimeClassName: b}"), deployment("{priorityClassName: a, runtimeClassName: b}")},
		"a template without classes": {deployment("{priorityClassName: '', runtimeClassName: null}"), deployment("{priorityClassName: batch, runtimeClassName: gvisor}")},
		"a template with a priority": {deployment("{priority: 0, preemptionPolicy: Never}"), deployment("{priorityClassName: batch, runtimeClassName: gvisor}")},
		"both, of the author":        {deployment("{priorityClassName: a, priority: 5}"), deployment("{priorityClassName: a, priority: 5, runtimeClassName: gvisor}")},
		"a Pod":                      {"{apiVersion: v1, kind: Pod, spec: {containers: []}}", "{apiVersion: v1, kind: Pod, spec: {containers: []}}"},
	} {
		t.Run(name, func(t *testing.T) {
			object := parsed(t, c.object)
			Default([]*unstructured.Unstructured{object}, &rules)
			if diff := cmp.Diff(parsed(t, c.want).Object, object.Object); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
