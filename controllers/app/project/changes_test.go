package project

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestTermsThatConcernApps wake them, and no other change of a Tenant does.
func TestTermsThatConcernApps(t *testing.T) {
	with := func(change func(*v1alpha1.Tenant)) *v1alpha1.Tenant {
		tenant := &v1alpha1.Tenant{}
		tenant.Spec.Sops, tenant.Status.Sops = "Generated", &v1alpha1.SopsStatus{Number: 1, Recipient: "age1first"}
		change(tenant)
		return tenant
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.Tenant)
		passes bool
	}{
		"nothing":            {func(*v1alpha1.Tenant) {}, false},
		"a budget":           {func(t *v1alpha1.Tenant) { t.Spec.Weight = 2 }, false},
		"a condition":        {func(t *v1alpha1.Tenant) { t.Status.ObservedGeneration = 2 }, false},
		"frozen":             {func(t *v1alpha1.Tenant) { t.Spec.Frozen = true }, true},
		"stopped":            {func(t *v1alpha1.Tenant) { t.Spec.Stopped = true }, true},
		"no keys any more":   {func(t *v1alpha1.Tenant) { t.Spec.Sops = "" }, true},
		"another key":        {func(t *v1alpha1.Tenant) { t.Status.Sops = &v1alpha1.SopsStatus{Number: 2, Recipient: "age1second"} }, true},
		"its first key":      {func(t *v1alpha1.Tenant) { t.Status.Sops = nil }, true},
		"Pod Security":       {func(t *v1alpha1.Tenant) { t.Spec.PodSecurity = "baseline" }, true},
		"a wish for the key": {func(t *v1alpha1.Tenant) { t.Spec.SopsKey = 2 }, false},
	} {
		if got := TermsChanged.Update(event.UpdateEvent{ObjectOld: with(func(*v1alpha1.Tenant) {}), ObjectNew: with(c.change)}); got != c.passes {
			t.Errorf("%s: passes %t", name, got)
		}
	}
}
