package guardrails

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func selecting(pairs ...string) *v1alpha1.NodeRules {
	rule := &v1alpha1.NodeRules{Selector: map[string]v1alpha1.LabelValue{}}
	for i := 0; i < len(pairs); i += 2 {
		rule.Selector[pairs[i]] = v1alpha1.LabelValue(pairs[i+1])
	}
	return rule
}

func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

// TestTemplatesGetTheLabelsOfTheirNodes, of rules that deny only. What an author set stays, so that the rule refuses it.
func TestTemplatesGetTheLabelsOfTheirNodes(t *testing.T) {
	rules := Of([]v1alpha1.Policy{
		named("a", false, v1alpha1.PolicyRules{Nodes: selecting("pool", "tenants")}),
		named("b", false, v1alpha1.PolicyRules{Nodes: selecting("pool", "others", "zone", "north")}),
		named("c", false, v1alpha1.PolicyRules{Nodes: &v1alpha1.NodeRules{Action: v1alpha1.WarnAction, Selector: map[string]v1alpha1.LabelValue{"disk": "ssd"}}}),
	})
	for name, c := range map[string]struct{ object, want string }{
		"none set": {"{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: []}}}}",
			"{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: [], nodeSelector: {pool: tenants, zone: north}}}}}"},
		"some set": {"{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {nodeSelector: {zone: south, a: b}}}}}}}",
			"{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {nodeSelector: {zone: south, a: b, pool: tenants}}}}}}}"},
		"a Job":         {"{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {}}}}", "{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {}}}}"},
		"a Pod":         {"{apiVersion: v1, kind: Pod, spec: {}}", "{apiVersion: v1, kind: Pod, spec: {}}"},
		"no pod":        {"{apiVersion: v1, kind: Service, spec: {}}", "{apiVersion: v1, kind: Service, spec: {}}"},
		"without sense": {"{apiVersion: apps/v1, kind: DaemonSet, spec: {template: {spec: {nodeSelector: x}}}}", "{apiVersion: apps/v1, kind: DaemonSet, spec: {template: {spec: {nodeSelector: x}}}}"},
	} {
		t.Run(name, func(t *testing.T) {
			object := parsed(t, c.object)
			for range 2 {
				Default([]*unstructured.Unstructured{object}, &rules)
				if diff := cmp.Diff(parsed(t, c.want).Object, object.Object); diff != "" {
					t.Fatalf("-want +got:\n%s", diff)
				}
			}
		})
	}
	object := parsed(t, "{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {}}}}")
	Default([]*unstructured.Unstructured{object}, nil)
	Default([]*unstructured.Unstructured{object}, &v1alpha1.GuardrailsSpec{})
	if diff := cmp.Diff(parsed(t, "{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {}}}}").Object, object.Object); diff != "" {
		t.Errorf("without a rule, -want +got:\n%s", diff)
	}
}

// TestPoliciesThatContradictEachOtherRefuseEveryPod, and the message names the policy of which the pod does not have the label.
func TestPoliciesThatContradictEachOtherRefuseEveryPod(t *testing.T) {
	rules := Of([]v1alpha1.Policy{
		named("a", false, v1alpha1.PolicyRules{Nodes: selecting("pool", "tenants")}), named("b", false, v1alpha1.PolicyRules{Nodes: selecting("pool", "others")}),
	})
	object := parsed(t, "{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {}}}}")
	Default([]*unstructured.Unstructured{object}, &rules)
	want := []Violation{{Nodes, "b", v1alpha1.DenyAction, "nodes.selector", "selects nodes with pool=tenants, and its pods have to run on nodes with pool=others", ""}}
	if diff := cmp.Diff(want, Check(object, &rules)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestATolerationThatIsNotAllowedIsNamed, with what is allowed. One without a key tolerates every taint, which no rule can allow.
func TestATolerationThatIsNotAllowedIsNamed(t *testing.T) {
	rule := &v1alpha1.NodeRules{Tolerations: []v1alpha1.AllowedToleration{
		{Key: "pool", Value: "tenants"}, {Key: "gpu", Effect: "NoSchedule"}, {Key: "lone", Operator: "Equal"}, {Key: "any", Operator: "Exists"},
	}}
	rules := Of([]v1alpha1.Policy{named("a", false, v1alpha1.PolicyRules{Nodes: rule})})
	const allowed = ", which is not among the allowed taints: pool=tenants, gpu:NoSchedule, lone=, any"
	for tolerations, want := range map[string]string{
		"[{key: pool, value: tenants}, {key: gpu, operator: Exists, effect: NoSchedule}, {key: lone}, {key: any, operator: Gt, value: '3'}]": "",
		"[{operator: Exists}]":                             "tolerates every taint" + allowed,
		"[{operator: Exists, effect: NoExecute}]":          "tolerates every taint" + allowed,
		"[{key: pool, operator: Exists}]":                  "tolerates the taint pool of every value" + allowed,
		"[{key: pool, operator: Lt, value: tenants}]":      "tolerates the taint pool Lt tenants" + allowed,
		"[{key: pool, value: others, effect: NoSchedule}]": "tolerates the taint pool=others:NoSchedule" + allowed,
		"[{key: pool, operator: Equal, value: others}]":    "tolerates the taint pool=others" + allowed,
		"[{key: gpu, value: a}]":                           "tolerates the taint gpu=a" + allowed,
		"[{key: lone, value: a}]":                          "tolerates the taint lone=a" + allowed,
		"[{key: [pool]}]":                                  "tolerates every taint" + allowed,
		"[pool]":                                           "",
		"pool":                                             "",
		"[{key: \"a\\nb\", value: x}]":                     "tolerates the taint a b=x" + allowed,
	} {
		object := parsed(t, "{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {tolerations: "+tolerations+"}}}}")
		var got string
		for _, v := range Check(object, &rules) {
			got += v.Field + " " + v.Why
		}
		if want != "" {
			want = "nodes.tolerations " + want
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", tolerations, got, want)
		}
	}
}

// TestPodsTolerateWhatKubernetesAddsAndWhatNoRuleIsAbout: Kubernetes adds tolerations to pods in this form only.
func TestPodsTolerateWhatKubernetesAddsAndWhatNoRuleIsAbout(t *testing.T) {
	tolerations := &v1alpha1.NodeRules{Tolerations: []v1alpha1.AllowedToleration{{Key: "pool"}}}
	const added = "{key: node.kubernetes.io/memory-pressure, operator: Exists, effect: NoSchedule}"
	for name, c := range map[string]struct {
		rule              *v1alpha1.NodeRules
		kind, tolerations string
		refused           bool
	}{
		"added":                  {tolerations, "Pod", added, false},
		"added, in a template":   {tolerations, "PodTemplate", added, true},
		"added, of a value":      {tolerations, "Pod", "{key: node.kubernetes.io/memory-pressure, effect: NoSchedule}", true},
		"added, of every effect": {tolerations, "Pod", "{key: node.kubernetes.io/memory-pressure, operator: Exists}", true},
		"without a rule":         {selecting("pool", "tenants"), "Pod", "{key: gpu}", false},
	} {
		spec := "{nodeSelector: {pool: tenants}, tolerations: [" + c.tolerations + "]}"
		if c.kind == "PodTemplate" {
			spec = "null, template: {spec: " + spec + "}"
		}
		rules := Of([]v1alpha1.Policy{named("a", false, v1alpha1.PolicyRules{Nodes: c.rule})})
		if got := Check(parsed(t, "{apiVersion: v1, kind: "+c.kind+", spec: "+spec+"}"), &rules); (len(got) > 0) != c.refused {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
