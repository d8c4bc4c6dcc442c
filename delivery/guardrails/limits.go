package guardrails

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/limitrange"
	"github.com/kubeop/kubeop/delivery/podspec"
)

// limitsOf returns the limits of policies for containers and claims.
func limitsOf(policies []v1alpha1.Policy) (all []v1alpha1.AppliedLimits) {
	for i := range policies {
		if of := policies[i].Spec.Limits; of != nil {
			all = append(all, v1alpha1.AppliedLimits{Policy: policies[i].Name, LimitRules: *of})
		}
	}
	return all
}

// InProject adds what a project says about the defaults of containers, in place of what it said before, to rules that limit them.
func InProject(spec *v1alpha1.GuardrailsSpec, own v1alpha1.ContainerLimits) {
	spec.Limits = slices.DeleteFunc(spec.Limits, func(l v1alpha1.AppliedLimits) bool { return l.Policy == ProjectFile })
	if len(spec.Limits) > 0 && len(own.Default)+len(own.DefaultRequest) > 0 {
		spec.Limits = append(spec.Limits, v1alpha1.AppliedLimits{Policy: ProjectFile, LimitRules: v1alpha1.LimitRules{Default: own.Default, DefaultRequest: own.DefaultRequest}})
	}
}

// limits: the containers and claims of an object have to be within the limits of the policies. The API server refuses the pods and claims, but not what they are made from.
func limits(object *unstructured.Unstructured, spec *v1alpha1.GuardrailsSpec) (all []Violation) {
	if len(spec.Limits) == 0 {
		return nil
	}
	pod, claims := podspec.Of(object), claimsOf(object)
	if pod == nil && len(claims) == 0 {
		return nil
	}
	var policies []v1alpha1.Policy
	var own v1alpha1.ContainerLimits
	for i := range spec.Limits {
		l := &spec.Limits[i]
		if l.Policy == ProjectFile {
			own = v1alpha1.ContainerLimits{Default: l.Default, DefaultRequest: l.DefaultRequest}
			continue
		}
		policies = append(policies, v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: l.Policy}, Spec: v1alpha1.PolicySpec{Limits: &l.LimitRules}})
	}
	within := limitrange.Of(policies, own)
	for _, b := range slices.Concat(ofContainers(within, pod), ofClaims(within, claims)) {
		all = append(all, Violation{Rule: Limits, Policy: cmp.Or(b.Policy, ProjectFile), Action: v1alpha1.DenyAction, Field: b.Field, Why: b.Why})
	}
	return all
}

// ofContainers judges the containers whose limits a LimitRange is about: those that are not ephemeral.
func ofContainers(within *limitrange.Limits, pod *podspec.Pod) (all []limitrange.Breach) {
	if pod == nil {
		return nil
	}
	for _, field := range []string{"containers", "initContainers"} {
		for _, container := range mappings(pod.Spec[field]) {
			name, _ := container["name"].(string)
			all = append(all, within.Container(few.Line(name, maxQuoted), container["resources"])...)
		}
	}
	return all
}

func ofClaims(within *limitrange.Limits, claims []map[string]any) (all []limitrange.Breach) {
	for _, claim := range claims {
		spec, _ := claim["spec"].(map[string]any)
		all = append(all, within.Claim(spec["resources"])...)
	}
	return all
}
