package hostclaims

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/own"
	"github.com/kubeop/kubeop/delivery/policy"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

// TestAClaimReturnsTheErrorOfEachRequest: an app whose host name is not known to be its own is not applied.
func TestAClaimReturnsTheErrorOfEachRequest(t *testing.T) {
	gone := own.Owner{Tenant: "gone", Project: "shop"}
	// meanwhile lets another project claim a host name while this one is creating its claim.
	meanwhile := func(name string) func(*fixture) {
		return func(b *fixture) {
			b.before = func(verb string, _ any) error {
				if verb != "create" {
					return nil
				}
				b.before = func(string, any) error { return nil }
				return b.api.Create(b.t.Context(), held(name, beta, false, 1))
			}
		}
	}
	for name, c := range map[string]struct {
		host    string
		claims  []client.Object
		prepare func(*fixture)
		// refused says whether the app may not have the name, and least how many requests that takes.
		refused bool
		least   int
	}{
		"a free name":                              {host: "a.example", least: 5},
		"a free wildcard":                          {host: "*.a.example", least: 6},
		"its own name":                             {host: "a.example", claims: []client.Object{held("a.example", shop, false, 1)}, least: 3},
		"the name of a project that is gone":       {host: "a.example", claims: []client.Object{held("a.example", gone, false, 1)}, least: 10},
		"the name of another tenant":               {host: "a.example", claims: []client.Object{held("a.example", beta, false, 1)}, refused: true, least: 4},
		"a name below the wildcard of another one": {host: "a.example", claims: []client.Object{held("*.example", beta, false, 1)}, refused: true, least: 3},
		"a name that another tenant is faster for": {host: "a.example", prepare: meanwhile("a.example"), refused: true, least: 6},
		"its own name, below an older wildcard":    {host: "a.example", claims: []client.Object{held("a.example", shop, false, 2), held("*.example", beta, false, 1)}, refused: true, least: 3},
	} {
		t.Run(name, func(t *testing.T) {
			requests := steptest.EachRequest(t, func(f *steptest.Failing) error {
				b := newFixture(t, c.claims...)
				b.Client, b.Direct = f.Client(b.api), f.Client(b.api)
				if c.prepare != nil {
					c.prepare(b)
				}
				err := b.Claim(t.Context(), shop, []*unstructured.Unstructured{ingress(shop.Namespace, c.host)})
				var expected bool
				if c.refused {
					expected = errors.As(err, new(*policy.Violation))
				} else {
					expected = errors.As(err, new(*Pending))
				}
				if expected {
					return nil
				}
				return err
			})
			if requests < c.least {
				t.Errorf("%d requests, want %d", requests, c.least)
			}
		})
	}
}

// TestNothingIsReleasedOnAnErrorOfAnyRequest: nobody knows then whether an object uses the name.
func TestNothingIsReleasedOnAnErrorOfAnyRequest(t *testing.T) {
	p := Project{Tenant: "acme", Name: "shop", Namespace: shop.Namespace}
	for name, run := range map[string]func(*fixture) error{
		"of a project": func(b *fixture) error {
			if _, _, err := b.Names(b.t.Context(), p); err != nil {
				return err
			}
			b.clock.Step(grace)
			_, _, err := b.Names(b.t.Context(), p)
			return err
		},
		"of a project that is deleted": func(b *fixture) error { return b.Release(b.t.Context(), p) },
	} {
		t.Run(name, func(t *testing.T) {
			requests := steptest.EachRequest(t, func(f *steptest.Failing) error {
				b := newFixture(t, held("unused.example", shop, false, 1))
				b.Client, b.Direct = f.Client(b.api), f.Client(b.api)
				err := run(b)
				if (err == nil) != (b.all() == "") {
					t.Errorf("the error is %v, and the claims are %q", err, b.all())
				}
				return err
			})
			if requests < 4 {
				t.Errorf("only %d requests", requests)
			}
		})
	}
}

// TestAListWithoutItemsThatCanBeReadClaimsNothing: what the app would serve is not known.
func TestAListWithoutItemsThatCanBeReadClaimsNothing(t *testing.T) {
	b := newFixture(t)
	list := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "List", "items": "none"}}
	if err := b.Claim(t.Context(), shop, []*unstructured.Unstructured{list}); err == nil || b.writes > 0 {
		t.Errorf("%d writes: %v", b.writes, err)
	}
}

// TestGuardrailsWakeNoAppWithoutHostNames: every app of the project would be reconciled whenever another one gets a name.
func TestGuardrailsWakeNoAppWithoutHostNames(t *testing.T) {
	b := newFixture(t)
	b.claims(shop)
	if got := b.OnListed(t.Context(), &v1alpha1.Guardrails{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace}}); len(got) != 0 {
		t.Errorf("%v are woken", got)
	}
}

// TestTheNamesOfADeletedAppAreFreed, whether it still asks for them or only earlier objects of it had them.
func TestTheNamesOfADeletedAppAreFreed(t *testing.T) {
	for name, ask := range map[string][]string{"names": {"a.example"}, "former names": nil} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			b.claims(shop, "a.example")
			b.Delivered(keyOf(shop))
			b.claims(shop, ask...)
			b.Forget(&v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.App}})
			if got := strings.Join(b.woken, " "); got != "kubeop-acme/shop" {
				t.Errorf("woken: %q", got)
			}
		})
	}
}

// TestAnAppThatLeavesItsNameDuringTheStartWakesItsProject, which waits for another app then, for minutes.
func TestAnAppThatLeavesItsNameDuringTheStartWakesItsProject(t *testing.T) {
	app := func(name string) client.Object {
		return &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: name}}
	}
	b := newFixture(t, held("a.example", shop, false, 1), app(shop.App), app("silent"))
	b.lists(shop)
	b.claims(shop)
	b.Delivered(keyOf(shop))
	if got := strings.Join(b.woken, " "); got != "kubeop-acme/shop" {
		t.Errorf("woken: %q", got)
	}
}
