package tenant

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
)

// TestADomainOfAnOlderTenantIsNotInForce: the younger Tenant says so, without the name of the other, and the older one stays as it is.
func TestADomainOfAnOlderTenantIsNotInForce(t *testing.T) {
	at := func(seconds int64, domains ...string) func(*v1alpha1.Tenant) {
		return func(tenant *v1alpha1.Tenant) {
			tenant.CreationTimestamp, tenant.Spec.Domains = metav1.Time{Time: time.Unix(seconds, 0)}, domains
		}
	}
	old, young := acme(at(1, "shop.example.com")), acme(at(2, "acme.example.com", "example.com"))
	old.Name, young.Name = "rival", "acme"
	b := newFixture(t, old, young, acme(at(3), func(tenant *v1alpha1.Tenant) { tenant.Name = "none" }))
	if err := b.compareDomains(t.Context(), b.newScope(old)); err != nil {
		t.Errorf("the older tenant: %v", err)
	}
	err := b.compareDomains(t.Context(), b.newScope(young))
	if err == nil || step.Waits(err) || step.Fails(err) || err.Error() != "spec.domains: example.com overlaps with a domain of another, older tenant, which keeps its host names; kubectl get tenants -o custom-columns=NAME:.metadata.name,DOMAINS:.spec.domains shows administrators which tenant. Remove one of the two in the platform repository" || strings.Contains(err.Error(), "rival") {
		t.Errorf("the younger tenant: %v", err)
	}
	if woken := b.withDomains(t.Context(), old); len(woken) != 1 || woken[0].Name != "acme" {
		t.Errorf("a change of the older tenant wakes %v", woken)
	}
	changed := old.DeepCopy()
	changed.Spec.Domains = nil
	if woken := b.withDomains(t.Context(), changed); len(woken) != 0 {
		t.Errorf("a tenant without domains wakes %v", woken)
	}
	if !domainsChanged.Update(event.UpdateEvent{ObjectOld: old, ObjectNew: changed}) || domainsChanged.Update(event.UpdateEvent{ObjectOld: old, ObjectNew: old.DeepCopy()}) {
		t.Error("a change of domains is not noticed")
	}
	old.Spec.Domains = nil
	if err := b.api.Update(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if err := b.compareDomains(t.Context(), b.newScope(young)); err != nil {
		t.Errorf("once the domain is free: %v", err)
	}
}
