package guardrails

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func limitedTo(t *testing.T, name, limits string) v1alpha1.Policy {
	t.Helper()
	policy := v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.PolicySpec{Limits: &v1alpha1.LimitRules{}}}
	if err := yaml.UnmarshalStrict([]byte(limits), policy.Spec.Limits); err != nil {
		t.Fatal(err)
	}
	return policy
}

// TestContainersAndClaimsAreJudgedWhereverTheyAre, and those for which a LimitRange is not are not.
func TestContainersAndClaimsAreJudgedWhereverTheyAre(t *testing.T) {
	rules := For(&v1alpha1.Tenant{}, []v1alpha1.Policy{limitedTo(t, "a", "max: {memory: 1Gi}"), {}, limitedTo(t, "b", "claims: {max: 1Gi}")})
	const large, claim = "resources: {limits: {memory: 2Gi}}", "spec: {resources: {requests: {storage: 2Gi}}}"
	const tooMuch, tooLarge = "Limits a limits.max has the container web with limits.memory 2Gi; at most 1Gi is allowed", "Limits b limits.claims.max has a claim of 2Gi; at most 1Gi is allowed"
	for text, want := range map[string][]string{
		"{apiVersion: v1, kind: Pod, spec: {containers: [{name: web, " + large + "}]}}":                                                                {tooMuch},
		"{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: [{name: web}], initContainers: [{name: web, " + large + "}]}}}}": {tooMuch},
		"{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: web, " + large + "}]}}}}}}":           {tooMuch},
		"{apiVersion: v1, kind: Pod, spec: {ephemeralContainers: [{name: web, " + large + "}]}}":                                                       nil,
		"{apiVersion: v1, kind: Service, spec: {containers: [{name: web, " + large + "}]}}":                                                            nil,
		"{apiVersion: v1, kind: PersistentVolumeClaim, " + claim + "}":                                                                                 {tooLarge},
		"{apiVersion: apps/v1, kind: StatefulSet, spec: {volumeClaimTemplates: [{" + claim + "}], template: {spec: {containers: [{name: web}]}}}}":     {tooLarge},
		"{apiVersion: v1, kind: Pod, spec: {volumes: [{name: v, ephemeral: {volumeClaimTemplate: {" + claim + "}}}]}}":                                 {tooLarge},
		"{apiVersion: v1, kind: Pod, spec: {containers: [{name: web}]}}":                                                                               nil,
		"{apiVersion: v1, kind: PersistentVolumeClaim, spec: {resources: {requests: {storage: 1Gi}}}}":                                                 nil,
	} {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, v := range Check(object, &rules) {
			got = append(got, fmt.Sprint(v.Rule, " ", v.Policy, " ", v.Field, " ", v.Why))
			if v.Action != v1alpha1.DenyAction {
				t.Errorf("%s: the action is %s", text, v.Action)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", text, diff)
		}
	}
}

// TestTheDefaultsOfTheProjectCountForPolicies, and replace those that it had.
func TestTheDefaultsOfTheProjectCountForPolicies(t *testing.T) {
	pod := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("{apiVersion: v1, kind: Pod, spec: {containers: [{name: web, resources: {requests: {memory: 32Mi}}}]}}"), &pod.Object); err != nil {
		t.Fatal(err)
	}
	rules := For(&v1alpha1.Tenant{}, []v1alpha1.Policy{limitedTo(t, "a", "ratio: {memory: 4}")})
	for _, c := range []struct {
		limit   string
		refused int
	}{{"", 1}, {"128Mi", 0}, {"1Gi", 1}, {"64Mi", 0}} {
		own := v1alpha1.ContainerLimits{}
		if c.limit != "" {
			own.Default = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(c.limit)}
		}
		if InProject(&rules, own); len(Check(pod, &rules)) != c.refused || len(rules.Limits) > 2 {
			t.Errorf("with the default %q: %v, %v", c.limit, Check(pod, &rules), rules.Limits)
		}
	}
	none := For(&v1alpha1.Tenant{}, nil)
	if InProject(&none, v1alpha1.ContainerLimits{Default: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}); none.Limits != nil {
		t.Errorf("without limits of policies there are %v", none.Limits)
	}
}
