package project

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// connecting is a project that others may connect to.
func connecting(home, name string, from ...string) *v1alpha1.Project {
	return &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: name}, Spec: v1alpha1.ProjectSpec{Network: v1alpha1.ProjectNetwork{AllowFrom: from}}}
}

func TestPeersAreProjectsOfTheSameTenant(t *testing.T) {
	shop := connecting("kubeop-acme", "shop", "web", "gone", "batch")
	others := []client.Object{
		shop, connecting("kubeop-acme", "web"), connecting("kubeop-acme", "batch", "web"), connecting("kubeop-acme", "billing", "shop", "web"), connecting("kubeop-acme", "apart"), connecting("kubeop-acme", "audit", "shop"),
		connecting("kubeop-rival", "gone"), connecting("kubeop-rival", "ledger", "shop"),
	}
	b := newFixture(t, others...)
	s := b.with(shop, acme())
	from, to, err := b.peers(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(from, []string{"kubeop-acme-batch", "kubeop-acme-web"}) || !slices.Equal(to, []string{"kubeop-acme-audit", "kubeop-acme-billing"}) || !slices.Equal(s.network.absent, []string{"gone"}) {
		t.Errorf("from %v, to %v, without %v", from, to, s.network.absent)
	}
	if !slices.Equal(shop.Spec.Network.AllowFrom, []string{"web", "gone", "batch"}) {
		t.Errorf("the project itself became %v", shop.Spec.Network.AllowFrom)
	}
	want := "; spec.network.allowFrom names projects that tenant acme does not have: gone; each can connect once it is in Git"
	if got := s.Summary(); !strings.HasSuffix(got, want) {
		t.Errorf("it says %q, want %q at its end", got, want)
	}
	var woken []string
	for _, request := range b.connected(t.Context(), shop) {
		woken = append(woken, request.String())
	}
	slices.Sort(woken)
	if want := []string{"kubeop-acme/audit", "kubeop-acme/batch", "kubeop-acme/billing", "kubeop-acme/web"}; !slices.Equal(woken, want) {
		t.Errorf("a change wakes %v, want %v", woken, want)
	}
	b.fault = func(verb string, _ any, _ string) error {
		if verb == "list" {
			return errAway
		}
		return nil
	}
	if _, _, err := b.peers(t.Context(), s); err == nil || !strings.Contains(err.Error(), errAway.Error()) {
		t.Errorf("without a list: %v", err)
	}
	if requests := b.connected(t.Context(), shop); requests != nil {
		t.Errorf("without a list, a change wakes %v", requests)
	}
}
