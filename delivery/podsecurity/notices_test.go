package podsecurity

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestLevelsThatOnlyWarnAreNoticed: what a pod breaks once it is filled in for the level is a notice of the policy, and what is refused already is none.
func TestLevelsThatOnlyWarnAreNoticed(t *testing.T) {
	const plain, root = "{containers: [{name: a}]}", "{containers: [{name: a, securityContext: {runAsUser: 0}}]}"
	notices := func(action v1alpha1.PolicyAction, level, version string) *v1alpha1.GuardrailsSpec {
		of := held(level, version, "new", "other")
		of.Action = action
		return &v1alpha1.GuardrailsSpec{PodSecurityNotices: []v1alpha1.AppliedPodSecurity{*of}}
	}
	probing := "{containers: [{name: a, livenessProbe: {httpGet: {host: 127.0.0.1, port: 80}}}]}"
	for name, c := range map[string]struct {
		pod, level string
		rules      *v1alpha1.GuardrailsSpec
		fill       v1alpha1.PodSecurityFill
		tenant     string
		want       []string
	}{
		"no rules":             {pod: root, level: "baseline"},
		"no notices":           {pod: root, level: "baseline", rules: &v1alpha1.GuardrailsSpec{}},
		"what kubeop fills in": {pod: plain, level: "baseline", rules: notices("Warn", "restricted", "latest")},
		"an app that is not filled in": {pod: plain, level: "baseline", rules: notices("Warn", "restricted", "latest"), fill: v1alpha1.FillDisabled,
			want: []string{
				"Warn new allowPrivilegeEscalation", "Warn new capabilities", "Warn new runAsNonRoot", "Warn new seccompProfile",
			}},
		"root":                       {pod: root, level: "baseline", rules: notices("Audit", "restricted", "v1.34"), want: []string{"Audit new runAsNonRoot", "Audit new runAsUser"}},
		"root, which is refused":     {pod: root, level: "restricted", rules: notices("Warn", "restricted", "latest")},
		"new checks":                 {pod: probing, level: "baseline", rules: within(notices("Warn", "baseline", "v1.34"), "v1.33"), want: []string{"Warn new hostProbesAndHostLifecycle"}},
		"checks that are refused":    {pod: probing, level: "baseline", rules: within(notices("Warn", "baseline", "v1.34"), "v1.34")},
		"checks of an older version": {pod: probing, level: "baseline", rules: within(notices("Warn", "baseline", "v1.33"), "v1.33")},
		"an app of the platform":     {pod: root, level: "baseline", rules: notices("Warn", "restricted", "latest"), tenant: v1alpha1.PlatformTenant},
	} {
		t.Run(name, func(t *testing.T) {
			if c.tenant == "" {
				c.tenant = "acme"
			}
			object := parsed(t, deployment(c.pod))
			before := object.DeepCopy()
			var got []string
			for _, n := range (Judge{Level: c.level, Version: VersionOf("1", "36"), Tenant: c.tenant}.Under(c.rules)).Notices([]*unstructured.Unstructured{object}, c.rules, c.fill) {
				got = append(got, string(n.Action)+" "+n.Policy+" "+ruleIn(t, n.Why))
				if n.Rule != Rule || n.Field != "podSecurity" || n.Object != "Deployment/web" {
					t.Errorf("%+v", n)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(before, object); diff != "" {
				t.Errorf("the object changed:\n%s", diff)
			}
		})
	}
}

// within adds an enforced level baseline in a version.
func within(rules *v1alpha1.GuardrailsSpec, version string) *v1alpha1.GuardrailsSpec {
	rules.PodSecurity = held("baseline", version, "old")
	return rules
}

// ruleIn returns the check that a message names.
func ruleIn(t *testing.T, why string) string {
	t.Helper()
	var name string
	if _, err := fmt.Sscanf(why, "breaks rule %s of the Pod Security level", &name); err != nil {
		t.Fatalf("%v: %s", err, why)
	}
	return name
}
