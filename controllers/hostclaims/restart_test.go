package hostclaims

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// settledFixture is a project long after a start of the process, in which no app has asked: an Ingress serves a.example, as the last look saw.
func settledFixture(t *testing.T) *fixture {
	t.Helper()
	b := newFixture(t, held("a.example", shop, false, 1), &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.App}})
	if err := b.api.Create(t.Context(), ingress(shop.Namespace, "a.example")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a.example " + (startup + spread(shop.Namespace)).String(), "a.example 0s"} {
		if got := b.lists(shop); got != want {
			t.Fatalf("the project has %s, want %s", got, want)
		}
		b.clock.Step(startup)
	}
	return b
}

// TestANameOfAnEarlierProcessIsFree soon after its app left it, although this process never saw the app ask for it.
func TestANameOfAnEarlierProcessIsFree(t *testing.T) {
	for name, leave := range map[string]func(*fixture){
		"deleted": func(b *fixture) {
			b.Forget(&v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.App}})
		},
		"deleted before it was delivered": func(b *fixture) {
			b.await(keyOf(shop), "other.example")
			b.Forget(&v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.App}})
		},
		"without the host": func(b *fixture) {
			b.claims(shop)
			b.Delivered(keyOf(shop))
			b.Delivered(keyOf(shop))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := settledFixture(t)
			leave(b)
			if !slices.Equal(b.woken, []string{"kubeop-acme/shop"}) {
				t.Errorf("%v were woken", b.woken)
			}
			if got := b.lists(shop); got != "a.example 2s" {
				t.Errorf("while its Ingress is about to go, the project has %s", got)
			}
			if err := b.api.Delete(t.Context(), ingress(shop.Namespace)); err != nil {
				t.Fatal(err)
			}
			if got := b.lists(shop); got != " 2s" {
				t.Errorf("when its Ingress is gone, the project has %s", got)
			}
		})
	}
}

// TestADeletedProjectIsLookedAtAnew: its objects went without a change of an app that this process knows.
func TestADeletedProjectIsLookedAtAnew(t *testing.T) {
	b := settledFixture(t)
	if err := b.api.Delete(t.Context(), ingress(shop.Namespace)); err != nil {
		t.Fatal(err)
	}
	if err := b.Release(t.Context(), Project{Tenant: "acme", Name: "shop", Namespace: shop.Namespace}); err != nil || b.all() != "" {
		t.Errorf("the claims are %s: %v", b.all(), err)
	}
}

// TestANameInItsGraceDoesNotWaitForALook at another name, which may be late.
func TestANameInItsGraceDoesNotWaitForALook(t *testing.T) {
	b := newFixture(t, held("gone.example", shop, false, 1), held("a.example", shop, false, 1))
	if err := b.api.Create(t.Context(), ingress(shop.Namespace, "a.example")); err != nil {
		t.Fatal(err)
	}
	b.touch(shop.Namespace)
	b.clock.Step(time.Minute)
	for _, want := range []string{"a.example 2s", "a.example 1m2s"} {
		if got := b.lists(shop); got != want {
			t.Errorf("the project has %s, want %s", got, want)
		}
		b.clock.Step(grace)
	}
}
