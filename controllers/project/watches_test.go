package project

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/credentials"
	"github.com/kubeop/kubeop/controllers/hostclaims"
)

// TestAFailedListIsLogged: nothing else says why a change reaches projects only at their interval.
func TestAFailedListIsLogged(t *testing.T) {
	hub := &v1alpha1.Registry{ObjectMeta: metav1.ObjectMeta{Name: "hub"}, Spec: v1alpha1.RegistrySpec{Tenants: []string{"acme"}}}
	for name, c := range map[string]struct {
		woken func(*fixture, context.Context) []reconcile.Request
		list  client.ObjectList
		of    string
		want  []reconcile.Request
	}{
		"projects": {func(b *fixture, ctx context.Context) []reconcile.Request { return b.projectsOf(ctx, acme()) }, &v1alpha1.ProjectList{}, "acme",
			[]reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: "kubeop-acme", Name: "shop"}}}},
		"connected projects": {func(b *fixture, ctx context.Context) []reconcile.Request { return b.connected(ctx, shop()) }, &v1alpha1.ProjectList{}, "shop", nil},
		"tenants under a policy": {func(b *fixture, ctx context.Context) []reconcile.Request {
			return b.under(ctx, &v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "base"}, Spec: v1alpha1.PolicySpec{Default: true}})
		}, &v1alpha1.TenantList{}, "base", []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: "kubeop-acme", Name: "shop"}}}},
		"policies whose tenants may use a registry": {func(b *fixture, ctx context.Context) []reconcile.Request { return b.using(ctx, hub) }, &v1alpha1.PolicyList{}, "hub",
			[]reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: "kubeop-acme", Name: "shop"}}}},
	} {
		b := newFixture(t, acme(), shop())
		var logged []string
		ctx := ctrl.LoggerInto(t.Context(), funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
		if diff := cmp.Diff(c.want, c.woken(b, ctx)); diff != "" || len(logged) != 0 {
			t.Errorf("%s: logged %v (-want +got):\n%s", name, logged, diff)
		}
		b.fault = func(_ string, o any, _ string) error {
			if fmt.Sprintf("%T", o) == fmt.Sprintf("%T", c.list) {
				return errAway
			}
			return nil
		}
		if got := c.woken(b, ctx); got != nil {
			t.Errorf("%s: got %v", name, got)
		}
		if len(logged) != 1 || !strings.Contains(logged[0], errAway.Error()) || !strings.Contains(logged[0], `"`+c.of+`"`) {
			t.Errorf("%s: logged %v", name, logged)
		}
	}
}

// TestPullSecretsWakeTheProjectsThatHaveThem: a copy that somebody changed, the account that names it, and the Secret in the operator's namespace.
func TestPullSecretsWakeTheProjectsThatHaveThem(t *testing.T) {
	hub := &v1alpha1.Registry{ObjectMeta: metav1.ObjectMeta{Name: "hub"}, Spec: v1alpha1.RegistrySpec{Tenants: []string{"acme"}, SecretRef: v1alpha1.LocalSecretReference{Name: "hub-pull"}}}
	b := newFixture(t, acme(), shop(), hub)
	for name, want := range map[string]int{"hub-pull": 1, "other": 0} {
		secret := credentials.MetadataOnly()
		secret.SetName(name)
		if got := b.rotated(t.Context(), secret); len(got) != want || want > 0 && got[0].String() != "kubeop-acme/shop" {
			t.Errorf("secret %s wakes %v", name, got)
		}
	}
	queue := newWoken()
	var change func(namespace, kind, name string, labels map[string]string)
	b.Registries.OnChange = func(f func(namespace, kind, name string, labels map[string]string)) { change = f }
	if err := b.onPullSecrets().Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	change(shopNamespace, "Secret", v1alpha1.PullSecretPrefix+"hub", nil)
	change(shopNamespace, "Secret", "password", nil)
	change(shopNamespace, "ServiceAccount", "default", nil)
	if diff := cmp.Diff([]string{"kubeop-acme/shop", "kubeop-acme/shop"}, queue.all(len(queue.names))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestAReleasedHostNameWakesItsProjectLater: one commit often removes many, and their names are in no rule any more.
func TestAReleasedHostNameWakesItsProjectLater(t *testing.T) {
	rules := &v1alpha1.Guardrails{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Name: v1alpha1.GuardrailsName}}
	rules.Spec.Hostnames = &v1alpha1.ClaimedHostnames{Names: []string{"listed.example"}}
	claim := func(project, host string) *v1alpha1.HostnameClaim {
		return &v1alpha1.HostnameClaim{Spec: v1alpha1.HostnameClaimSpec{Hostname: host, Tenant: "acme", Project: project}}
	}
	for name, c := range map[string]struct {
		happens func(h onClaim, q *woken)
		away    bool
		want    string
	}{
		"made": {happens: func(h onClaim, q *woken) {
			h.Create(t.Context(), event.CreateEvent{Object: claim("shop", "new.example")}, q)
		}, want: "kubeop-acme/shop"},
		"deleted by a person": {happens: func(h onClaim, q *woken) {
			h.Delete(t.Context(), event.DeleteEvent{Object: claim("shop", "listed.example")}, q)
		}, want: "kubeop-acme/shop"},
		"released": {happens: func(h onClaim, q *woken) {
			h.Delete(t.Context(), event.DeleteEvent{Object: claim("shop", "old.example")}, q)
		}, want: "kubeop-acme/shop after 2s"},
		"of a project without rules": {happens: func(h onClaim, q *woken) {
			h.Delete(t.Context(), event.DeleteEvent{Object: claim("blog", "listed.example")}, q)
		}, want: "kubeop-acme/blog after 2s"},
		"while the rules cannot be read": {happens: func(h onClaim, q *woken) {
			h.Delete(t.Context(), event.DeleteEvent{Object: claim("shop", "old.example")}, q)
		}, away: true, want: "kubeop-acme/shop"},
	} {
		b, q := newFixture(t, rules.DeepCopy()), newWoken()
		if c.away {
			b.fault = func(string, any, string) error { return errAway }
		}
		c.happens(onClaim{handler.EnqueueRequestsFromMapFunc(hostclaims.ProjectOf), b.Hosts}, q)
		if diff := cmp.Diff([]string{c.want}, q.all(1)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
