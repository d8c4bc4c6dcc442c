package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/guards"
	"github.com/kubeop/kubeop/internal/testenv"
)

// reportsGuard waits until a guard of the tenant has a state and a reason.
func (n *team) reportsGuard(name string, state v1alpha1.GuardState, reason string) {
	n.t.Helper()
	n.eventually(func() error {
		tenant := n.tenant()
		if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(tenant), tenant); err != nil {
			return err
		}
		want := v1alpha1.GuardStatus{Name: name, State: state, Reason: reason}
		for _, g := range tenant.Status.Guards {
			if g == want {
				return nil
			}
		}
		return fmt.Errorf("no guard %+v in %+v", want, tenant.Status.Guards)
	})
}

// TestAnInstallHasNoWebhook: the API server waits for nothing else when it judges what tenants write.
func TestAnInstallHasNoWebhook(t *testing.T) {
	if _, err := op(); err != nil {
		t.Fatal(err)
	}
	manifest, err := env.Helm(t.Context(), "get", "manifest", "kubeop", "--namespace", testenv.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(manifest, "kind: ValidatingAdmissionPolicy\n") || strings.Contains(manifest, "WebhookConfiguration\n") || strings.Contains(manifest, "kind: APIService\n") {
		t.Errorf("the chart installs a webhook, or no policies:\n%s", manifest)
	}
}

// TestKindsWithHostsAreNotCreatedWithoutGuardrails: every API group of kinds with host names that the rules of Policies judge is one of which nothing is created without
// Guardrails.
func TestKindsWithHostsAreNotCreatedWithoutGuardrails(t *testing.T) {
	o, err := op()
	if err != nil {
		t.Fatal(err)
	}
	groups := func(name string) (all []string) {
		policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
		if err := o.admin.Get(t.Context(), client.ObjectKey{Name: name}, policy); err != nil {
			t.Fatal(err)
		}
		for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
			all = append(all, rule.APIGroups...)
		}
		return slices.DeleteFunc(all, func(group string) bool { return !strings.Contains(group, "networking.") })
	}
	judged, held := groups("kubeop-guardrails-deny"), groups("kubeop-guardrails-present")
	for _, group := range judged {
		if !slices.Contains(held, group) {
			t.Errorf("kinds of %s are created without Guardrails", group)
		}
	}
	if len(judged) == 0 {
		t.Error("no kind is judged")
	}
}

// TestDefaultsOfTheAPIServerCountAsNoChange: what the API server fills in is no change of a policy or a binding of the chart.
func TestDefaultsOfTheAPIServerCountAsNoChange(t *testing.T) {
	o, err := op()
	if err != nil {
		t.Fatal(err)
	}
	lists := []client.ObjectList{&admissionregistrationv1.ValidatingAdmissionPolicyList{}, &admissionregistrationv1.ValidatingAdmissionPolicyBindingList{}}
	if !env.OlderThan(36) {
		lists = append(lists, &admissionregistrationv1.MutatingAdmissionPolicyList{}, &admissionregistrationv1.MutatingAdmissionPolicyBindingList{})
	}
	for _, list := range lists {
		if err := o.admin.List(t.Context(), list, client.MatchingLabelsSelector{Selector: guards.Chart}); err != nil {
			t.Fatal(err)
		}
		all, err := meta.ExtractList(list)
		if err != nil || len(all) < 4 {
			t.Fatalf("%T has %d objects, %v", list, len(all), err)
		}
		for _, one := range all {
			o := one.(client.Object)
			if _, err := guards.Compare(o); err != nil || o.GetAnnotations()["paas.kubeop.io/spec-compared"] != "true" {
				t.Errorf("%T %s: its annotations are %v, %v", o, o.GetName(), o.GetAnnotations(), err)
			}
		}
	}
}

// TestATenantReportsWhatTheAPIServerEnforces changes bindings of the chart, so no other test may run beside it.
func TestATenantReportsWhatTheAPIServerEnforces(t *testing.T) {
	n := teamOf(t, "enforced")
	n.push(shopFiles("shop"))
	n.reportsGuard("Admission", v1alpha1.GuardEnforced, "")
	n.reportsGuard("Images", v1alpha1.GuardAbsent, "no policy of the tenant has such a rule")
	n.under(v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "digests"}, Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{
		Images: &v1alpha1.ImageRules{RequireDigest: true},
	}}})
	n.reportsGuard("Images", v1alpha1.GuardEnforced, "")
	n.without(v1alpha1.NotEnforcedCondition, n.tenant())

	const images, volumes = "kubeop-guardrails-deny", "kubeop-volumes"
	restore := n.deleted(&admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: images}})
	n.reportsGuard("Images", v1alpha1.GuardRenderedOnly, "ValidatingAdmissionPolicyBinding "+images+" does not exist")
	message := n.until(n.tenant(), v1alpha1.NotEnforcedCondition, metav1.ConditionTrue, v1alpha1.RenderedOnlyReason)
	if want := "the API server does not enforce Images, Hostnames: ValidatingAdmissionPolicyBinding " + images + " does not exist; kubeop checks apps, but nothing checks what people and pods write to the API " +
		"server. An administrator of the cluster installs the chart again, with admissionPolicies.enabled=true"; message != want {
		t.Errorf("NotEnforced says %q, want %q", message, want)
	}
	if err := restore(); err != nil {
		t.Fatal(err)
	}
	n.reportsGuard("Images", v1alpha1.GuardEnforced, "")

	denies := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: volumes}}
	act := func(action admissionregistrationv1.ValidationAction) {
		change(n, denies, func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
			b.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{action}
		})
	}
	t.Cleanup(func() {
		_ = n.admin.Patch(context.Background(), denies, client.RawPatch(client.Merge.Type(), []byte(`{"spec": {"validationActions": ["Deny"]}}`)))
	})
	act(admissionregistrationv1.Audit)
	n.reportsGuard("Admission", v1alpha1.GuardRenderedOnly, "ValidatingAdmissionPolicyBinding "+volumes+" has the actions [Audit], without Deny")
	act(admissionregistrationv1.Deny)
	n.reportsGuard("Admission", v1alpha1.GuardEnforced, "")

	// Somebody lets a policy fail open, and narrows a binding.
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: volumes}}
	fail := func(how admissionregistrationv1.FailurePolicyType) {
		change(n, policy, func(p *admissionregistrationv1.ValidatingAdmissionPolicy) { p.Spec.FailurePolicy = &how })
	}
	t.Cleanup(func() {
		_ = n.admin.Patch(context.Background(), policy, client.RawPatch(client.Merge.Type(), []byte(`{"spec": {"failurePolicy": "Fail"}}`)))
		_ = n.admin.Patch(context.Background(), denies, client.RawPatch(client.Merge.Type(), []byte(`{"spec": {"matchResources": {"objectSelector": {"matchLabels": null}}}}`)))
	})
	changed := "somebody changed the spec of ValidatingAdmissionPolicy " + volumes + ", or removed its digest"
	fail(admissionregistrationv1.Ignore)
	n.reportsGuard("Admission", v1alpha1.GuardRenderedOnly, changed)
	fail(admissionregistrationv1.Fail)
	n.reportsGuard("Admission", v1alpha1.GuardEnforced, "")
	digest := policy.Annotations["paas.kubeop.io/spec-digest"]
	digested := func(digest string) {
		if err := n.admin.Patch(t.Context(), policy, annotated("paas.kubeop.io/spec-digest", digest)); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_ = n.admin.Patch(context.Background(), policy, annotated("paas.kubeop.io/spec-digest", digest))
	})
	digested("")
	n.reportsGuard("Admission", v1alpha1.GuardRenderedOnly, changed)
	digested(digest)
	n.reportsGuard("Admission", v1alpha1.GuardEnforced, "")
	narrow := func(labels map[string]string) {
		change(n, denies, func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
			b.Spec.MatchResources.ObjectSelector.MatchLabels = labels
		})
	}
	narrow(map[string]string{"judged": "true"})
	n.reportsGuard("Admission", v1alpha1.GuardRenderedOnly, "somebody changed the spec of ValidatingAdmissionPolicyBinding "+volumes+", or removed its digest")
	narrow(nil)
	n.reportsGuard("Admission", v1alpha1.GuardEnforced, "")

	// Of these, kubeop checks nothing itself.
	for guard, name := range map[string]string{"Requests": "kubeop-requests", "Deletions": "kubeop-delete-tenants", "Operator": "kubeop-operator-homes"} {
		n.reportsGuard(guard, v1alpha1.GuardEnforced, "")
		restore := n.deleted(&admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}})
		n.reportsGuard(guard, v1alpha1.GuardAbsent, "ValidatingAdmissionPolicyBinding "+name+" does not exist")
		n.until(n.tenant(), v1alpha1.NotEnforcedCondition, metav1.ConditionTrue, v1alpha1.RenderedOnlyReason)
		if err := restore(); err != nil {
			t.Fatal(err)
		}
		n.reportsGuard(guard, v1alpha1.GuardEnforced, "")
	}
	n.eventually(func() error { return n.has(v1alpha1.NotEnforcedCondition, n.tenant()) })
	n.ready(n.tenant())
}

// TestATenantReportsWhatTheAPIServerWrites changes bindings of the chart, so no other test may run beside it.
func TestATenantReportsWhatTheAPIServerWrites(t *testing.T) {
	n := teamOf(t, "written")
	n.push(shopFiles("shop"))
	n.reportsGuard("Defaults", v1alpha1.GuardAbsent, "no policy of the tenant has defaults")
	n.under(v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "pool"}, Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{
		Nodes: &v1alpha1.NodeRules{Selector: map[string]v1alpha1.LabelValue{"pool": "tenants"}},
	}}})
	const unwritten = "kubeop writes them into the objects of apps; the API server does not write all of them into others, and refuses pods that a rule wants to have them: "
	if env.OlderThan(36) {
		n.reportsGuard("Defaults", v1alpha1.GuardRenderedOnly, unwritten+"it does not serve MutatingAdmissionPolicy v1, which Kubernetes has from 1.36 on")
		return
	}
	n.reportsGuard("Defaults", v1alpha1.GuardEnforced, "")

	const placing = "kubeop-guardrails-placing"
	restore := n.deleted(&admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: placing}})
	n.reportsGuard("Defaults", v1alpha1.GuardRenderedOnly, unwritten+"MutatingAdmissionPolicyBinding "+placing+" does not exist: an administrator of the cluster installs the chart again")
	n.without(v1alpha1.NotEnforcedCondition, n.tenant())
	if err := restore(); err != nil {
		t.Fatal(err)
	}
	n.reportsGuard("Defaults", v1alpha1.GuardEnforced, "")
	n.ready(n.tenant())
}

// deleted deletes an object of the chart. restore creates it again, and is called at the end of the test, too.
func (n *team) deleted(object client.Object) (restore func() error) {
	n.t.Helper()
	if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		n.t.Fatal(err)
	}
	again := object.DeepCopyObject().(client.Object)
	again.SetResourceVersion("")
	again.SetUID("")
	restore = func() error {
		return client.IgnoreAlreadyExists(n.admin.Create(context.Background(), again.DeepCopyObject().(client.Object)))
	}
	n.t.Cleanup(func() { _ = restore() })
	if err := n.admin.Delete(n.t.Context(), object); err != nil {
		n.t.Fatal(err)
	}
	return restore
}
