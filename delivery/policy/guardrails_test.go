package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/classes"
	"github.com/kubeop/kubeop/delivery/guardrails"
)

// TestObjectsAreJudgedByPolicies, in Lists too. Only what is denied is a refusal, which names each policy's place once.
func TestObjectsAreJudgedByPolicies(t *testing.T) {
	pod := func(name string) any {
		return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name}, "spec": map[string]any{"containers": []any{map[string]any{"image": "evil.org/" + name}}}}
	}
	first, _ := pod("a").(map[string]any)
	objects := []*unstructured.Unstructured{
		{Object: first},
		{Object: map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{pod("b")}}},
		{Object: map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{"no object"}}},
	}
	applied := []v1alpha1.AppliedPolicy{{Policy: "p", PolicyRules: v1alpha1.PolicyRules{Images: &v1alpha1.ImageRules{Allow: []string{"good.org"}}}}}
	broken := Judge(objects, &v1alpha1.GuardrailsSpec{Deny: applied, Audit: applied}, nil, classes.Usual{})
	var got []string
	for _, n := range broken {
		got = append(got, string(n.Action)+" "+n.String())
	}
	const why = ", which is not among the allowed ones: good.org; see spec.images.allow of policies/p.yaml in the platform repository"
	want := []string{
		"Deny Pod/a has the image evil.org/a" + why, "Audit Pod/a has the image evil.org/a" + why,
		"Deny Pod/b has the image evil.org/b" + why, "Audit Pod/b has the image evil.org/b" + why,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	refused := []string{
		"Pod/a has the image evil.org/a, which is not among the allowed ones: good.org",
		"Pod/b has the image evil.org/b, which is not among the allowed ones: good.org",
		"for policy p: change that in Git, or ask an administrator of the cluster to change spec.images.allow of policies/p.yaml in the platform repository",
	}
	if diff := cmp.Diff(refused, strings.Split(Refusal(broken).Error(), "\n")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if found, _ := Violations(Refusal(broken)); found[0].Rule != guardrails.Images {
		t.Errorf("the rule is %q", found[0].Rule)
	}
	if err := Refusal([]Notice{broken[1]}); err != nil {
		t.Errorf("what is audited is refused: %v", err)
	}
	if all := Judge(objects, nil, nil, classes.Usual{}); all != nil {
		t.Errorf("without policies: %v", all)
	}
}

// TestUnsignedImagesAreNamedWithTheReason, and each image is to be verified once for a policy, also in Lists.
func TestUnsignedImagesAreNamedWithTheReason(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("a", 64)
	pod := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"containers": []any{
		map[string]any{"image": "good.org/a:1" + digest}, map[string]any{"image": "good.org/b" + digest}, map[string]any{"image": "good.org/c"},
	}}}
	objects := []*unstructured.Unstructured{{Object: map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{pod, pod}}}, {Object: map[string]any{"kind": "List", "items": "x"}}}
	spec := guardrails.Of([]v1alpha1.Policy{{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{
		Images: &v1alpha1.ImageRules{Verify: []v1alpha1.SignatureRule{{Images: []string{"good.org"}, Keys: []string{"k"}}}},
	}}}})
	var names []string
	for _, u := range Unverified(objects, &spec) {
		names = append(names, u.Image())
	}
	if diff := cmp.Diff([]string{"good.org/a" + digest, "good.org/b" + digest}, names); diff != "" {
		t.Errorf("to be verified (-want +got):\n%s", diff)
	}
	spec.Signed = []v1alpha1.SignedImages{{Signatures: spec.Deny[0].Signatures, Images: []string{"good.org/a" + digest}}}
	var got []string
	for _, n := range Judge([]*unstructured.Unstructured{{Object: pod}}, &spec, map[string]string{"good.org/b" + digest: "it has no signature", "": "never said"}, classes.Usual{}) {
		got = append(got, n.Why)
	}
	want := []string{
		"has the image good.org/b" + digest + ", which has to be signed, and kubeop has verified no signature of it: it has no signature",
		"has the image good.org/c, which has to be signed, without a digest: write it in Git as good.org/c@sha256:<digest>",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if all := Unverified(objects, nil); all != nil {
		t.Errorf("without policies: %v", all)
	}
	if all := Judge([]*unstructured.Unstructured{{Object: pod}}, &spec, nil, classes.Usual{}); len(all) != 2 || !strings.HasSuffix(all[0].Why, "kubeop has verified no signature of it") {
		t.Errorf("without a reason: %v", all)
	}
	spec.Warn = []v1alpha1.AppliedPolicy{spec.Deny[0]}
	spec.Warn[0].Policy, spec.Signed = "q", nil
	if all := Unverified(objects, &spec); len(all) != 4 {
		t.Errorf("of two policies: %v", all)
	}
}

func TestASourceIsJudgedByPolicies(t *testing.T) {
	spec := guardrails.Of([]v1alpha1.Policy{{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{
		Sources: &v1alpha1.SourceRules{Helm: &v1alpha1.URLPatterns{Allow: []string{"good.org"}}},
	}}}})
	got := JudgeSource("App/web", guardrails.Source{Type: guardrails.HelmRepository, URL: "https://evil.org/charts"}, &spec)
	if len(got) != 1 || !strings.HasPrefix(got[0].String(), "App/web ") || got[0].Policy != "p" || got[0].Rule != guardrails.Sources {
		t.Errorf("got %v", got)
	}
	if got := JudgeSource("App/web", guardrails.Source{Type: guardrails.HelmRepository, URL: "https://evil.org/charts"}, nil); got != nil {
		t.Errorf("without policies: %v", got)
	}
}

// TestAdviceLeavesOutImpossibleChanges: the class of claims stays, and a project states its own default limits.
func TestAdviceLeavesOutImpossibleChanges(t *testing.T) {
	for want, v := range map[string]guardrails.Violation{
		"change that in Git, under another name if it is there already, because its claims stay as they are, or ask an administrator of the cluster to change spec.classes.storage of policies/p.yaml in the platform repository": {
			Rule: guardrails.Classes, Policy: "p", Field: "classes.storage"},
		"change that in Git, or ask an administrator of the cluster to change spec.classes.ingress of policies/p.yaml in the platform repository": {
			Rule: guardrails.Classes, Policy: "p", Field: "classes.ingress"},
		"change that in Git, or ask an administrator of the cluster to change spec.limits.max of policies/p.yaml in the platform repository": {
			Rule: guardrails.Limits, Policy: "p", Field: "limits.max"},
		"change that in Git, or ask an administrator of the cluster to change spec.egress of the tenant's tenant.yaml or of its policies in the platform repository": {
			Rule: guardrails.NetworkPolicies, Policy: guardrails.ProjectFile, Field: "network"},
		"change that in Git, or spec.limits.default of project.yaml": {Rule: guardrails.Limits, Policy: guardrails.ProjectFile, Field: "limits.default"},
	} {
		v.Action, v.Why = v1alpha1.DenyAction, "is wrong"
		if got := Refusal([]Notice{{"StatefulSet/a", v}}).Error(); got != "StatefulSet/a is wrong; "+want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}
