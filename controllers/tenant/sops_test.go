package tenant

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

// TestAKeyIsMadeForATenantThatWantsOne: the status has its public part, which stays when the tenant no longer wants it.
func TestAKeyIsMadeForATenantThatWantsOne(t *testing.T) {
	b := newFixture(t)
	b.Keys = NewKeys(b.api, "kubeop-system")
	tenant := acme()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-system", Name: "kubeop-sops-acme"}}
	key := func() string {
		t.Helper()
		s := b.newScope(tenant)
		outcome := steptest.Outcome(t, b.makeKey(t.Context(), s))
		s.Record()
		return outcome
	}
	if got := key(); got != "done" || tenant.Status.Sops != nil || b.get(secret) {
		t.Errorf("of a tenant that wants none: %s, %+v", got, tenant.Status.Sops)
	}
	tenant.Spec.Sops = "Generated"
	if got := key(); got != "done" || tenant.Status.Sops == nil || !strings.HasPrefix(tenant.Status.Sops.Recipient, "age1") {
		t.Fatalf("of a tenant that wants one: %s, %+v", got, tenant.Status.Sops)
	}
	if !b.get(secret) || !strings.HasPrefix(string(secret.Data["age.agekey"]), "AGE-SECRET-KEY-1") || strings.Contains(tenant.Status.Sops.Recipient, "SECRET") {
		t.Errorf("its Secret has the fields %d, and the status %+v", len(secret.Data), tenant.Status.Sops)
	}
	recipient := tenant.Status.Sops.Recipient
	if got := key(); got != "done" || tenant.Status.Sops.Recipient != recipient {
		t.Errorf("a second time: %s, %s was %s", got, tenant.Status.Sops.Recipient, recipient)
	}
	tenant.Spec.Sops = ""
	if got := key(); got != "done" || tenant.Status.Sops.Recipient != recipient || !b.get(secret) {
		t.Errorf("when it no longer wants it: %s, %+v", got, tenant.Status.Sops)
	}
	tenant.Spec.Sops = "Generated"
	if err := b.api.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	want := "stopped KeyUnusable: the tenant's key cannot be used: Secret kubeop-system/kubeop-sops-acme is gone, and files may be encrypted for " + recipient +
		": an administrator of the cluster restores it from a backup"
	if got := key(); got != want || tenant.Status.Sops.Recipient != recipient {
		t.Errorf("without its Secret: %s, want %s", got, want)
	}
	b.Keys.Client = interceptor.NewClient(b.api, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errAway
	}})
	if got := key(); got != "failed Failed: reading the key of tenant acme: the API server is away" {
		t.Errorf("while the API server is away: %s", got)
	}
}
