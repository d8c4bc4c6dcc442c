package notice

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/delivery/policy"
)

func broken(object string, action v1alpha1.PolicyAction) policy.Notice {
	return policy.Notice{Object: object, Violation: guardrails.Violation{Rule: "Images", Policy: "counted", Action: action, Field: "images.allow", Why: "has the image a"}}
}

// TestOnlyWarningsAreShown, the first ones, and what is denied or audited is not.
func TestOnlyWarningsAreShown(t *testing.T) {
	all := []policy.Notice{broken("Pod/denied", v1alpha1.DenyAction), broken("Pod/audited", v1alpha1.AuditAction)}
	if note := Warning(nil, &all); note.Status != "" || note.Message != "" {
		t.Errorf("without a warning: %+v", note)
	}
	for i := range 12 {
		all = append(all, broken(fmt.Sprintf("Pod/p%d", i), v1alpha1.WarnAction))
	}
	note := Warning(nil, &all)
	lines := strings.Split(note.Message, "\n")
	if note.Status != "True" || note.Reason != v1alpha1.PolicyWarningReason || note.Event != "Warning" || len(lines) != 11 ||
		lines[0] != "Pod/p0 has the image a; see spec.images.allow of policies/counted.yaml in the platform repository" || lines[10] != "and 2 more" {
		t.Errorf("%+v", note)
	}
}

func levelled(action v1alpha1.PolicyAction) *v1alpha1.GuardrailsSpec {
	return &v1alpha1.GuardrailsSpec{PodSecurityNotices: []v1alpha1.AppliedPodSecurity{{PodSecurityRules: v1alpha1.PodSecurityRules{Action: action, Level: "restricted"}}}}
}

// TestAWarningStaysWhileNothingIsKnown: after a restart, nobody has rendered the chart of a Helm App. It goes with the last rule that warns.
func TestAWarningStaysWhileNothingIsKnown(t *testing.T) {
	warns := &v1alpha1.GuardrailsSpec{Warn: []v1alpha1.AppliedPolicy{{Policy: "p"}}}
	for name, c := range map[string]struct {
		rules *v1alpha1.GuardrailsSpec
		stays bool
	}{"the rules are unknown": {nil, true}, "a rule warns": {warns, true}, "a level warns": {levelled(v1alpha1.WarnAction), true}, "a level is recorded": {levelled(v1alpha1.AuditAction), false}, "no rule warns": {&v1alpha1.GuardrailsSpec{}, false}} {
		note := Warning(c.rules, nil)
		if note.Status != "" || note.Stays != c.stays {
			t.Errorf("%s: %+v", name, note)
		}
	}
	if note := Warning(warns, &[]policy.Notice{}); note.Status != "" || note.Stays {
		t.Errorf("of an app that breaks nothing any more: %+v", note)
	}
}

// TestAViolationCountsOnce per App, until something changes.
func TestAViolationCountsOnce(t *testing.T) {
	count := func(action v1alpha1.PolicyAction) float64 {
		return testutil.ToFloat64(violations.WithLabelValues("counted", "Images", string(action)))
	}
	var c Counter
	a, b := &v1alpha1.App{}, &v1alpha1.App{}
	a.Name, a.UID, b.Name, b.UID = "a", "1", "b", "2"
	denied, audited := broken("Pod/x", v1alpha1.DenyAction), broken("Pod/x", v1alpha1.AuditAction)
	for range 2 {
		c.Count(a, []policy.Notice{denied, audited})
		c.Count(b, []policy.Notice{denied})
	}
	if d, u := count(v1alpha1.DenyAction), count(v1alpha1.AuditAction); d != 2 || u != 1 {
		t.Errorf("counted %g and %g, want 2 and 1", d, u)
	}
	c.Count(a, nil)
	c.Count(a, []policy.Notice{denied})
	if d := count(v1alpha1.DenyAction); d != 3 {
		t.Errorf("counted %g after it came back, want 3", d)
	}
	c.Forget(b)
	c.Count(b, []policy.Notice{denied})
	if d := count(v1alpha1.DenyAction); d != 4 {
		t.Errorf("counted %g of a new app of that name, want 4", d)
	}
}

func TestDeniedDiffersWithTheRulesThatDeny(t *testing.T) {
	one := &v1alpha1.GuardrailsSpec{Deny: []v1alpha1.AppliedPolicy{{Policy: "a"}}, Warn: []v1alpha1.AppliedPolicy{{Policy: "b"}}}
	other := &v1alpha1.GuardrailsSpec{Deny: []v1alpha1.AppliedPolicy{{Policy: "b"}}}
	opens := &v1alpha1.GuardrailsSpec{Deny: one.Deny, Network: &v1alpha1.AllowedNetwork{}}
	if Denied(opens) == Denied(one) {
		t.Error("what NetworkPolicies may open makes no difference")
	}
	strict := &v1alpha1.GuardrailsSpec{Deny: one.Deny, PodSecurity: &v1alpha1.AppliedPodSecurity{Policies: []string{"strict"}}}
	if Denied(strict) == Denied(one) {
		t.Error("the Pod Security level makes no difference")
	}
	small := &v1alpha1.GuardrailsSpec{Deny: one.Deny, Limits: []v1alpha1.AppliedLimits{{Policy: "small"}}}
	if Denied(small) == Denied(one) {
		t.Error("the limits of containers make no difference")
	}
	for name, alone := range map[string]*v1alpha1.GuardrailsSpec{"a network": {Network: opens.Network}, "limits": {Limits: small.Limits}, "a Pod Security level": {PodSecurity: strict.PodSecurity}} {
		if Denied(alone) == "" {
			t.Errorf("%s alone denies nothing", name)
		}
	}
	if Denied(nil) != "" || Denied(&v1alpha1.GuardrailsSpec{Warn: one.Warn}) != "" || Denied(one) == "" || Denied(one) == Denied(other) {
		t.Errorf("%q, %q", Denied(one), Denied(other))
	}
}
