package hostclaims

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/own"
	"github.com/kubeop/kubeop/delivery/policy"
)

// TestADeletedClaimWakesTheAppsThatAskForItsName, or that wait for it, and no others.
func TestADeletedClaimWakesTheAppsThatAskForItsName(t *testing.T) {
	b := newFixture(t, held("a.example", beta, false, 1), held("other.example", beta, false, 1))
	b.claims(shop, "a.example")
	b.claims(blog, "other.example")
	asks := types.NamespacedName{Namespace: blog.Namespace, Name: "asks"}
	b.ask(asks, []string{"a.example"})
	var woken []string
	for _, request := range b.OnDecided(t.Context(), held("a.example", beta, false, 1)) {
		woken = append(woken, request.String())
	}
	slices.Sort(woken)
	if diff := gocmp.Diff([]string{"kubeop-acme-blog/asks", "kubeop-acme-shop/web"}, woken); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for app, want := range map[types.NamespacedName]int{keyOf(shop): 1, keyOf(blog): 0, asks: 0, {Name: "none"}: 0} {
		if got := b.Freed(app); got != want {
			t.Errorf("%d names of %s became free, want %d", got, app, want)
		}
	}
	if got := b.OnListed(t.Context(), &v1alpha1.Guardrails{ObjectMeta: metav1.ObjectMeta{Namespace: blog.Namespace}}); len(got) != 1 || got[0].NamespacedName != asks {
		t.Errorf("the Guardrails wake %v", got)
	}
}

// TestAClaimByHandWakesTheAppsOfItsProjectThatWait: messages tell people to ask for one.
func TestAClaimByHandWakesTheAppsOfItsProjectThatWait(t *testing.T) {
	b := newFixture(t, held("*.example", beta, false, 1))
	for _, owner := range []own.Owner{shop, blog} {
		if got := b.claims(owner, "a.example"); !strings.Contains(got, "another tenant has with a wildcard") {
			t.Fatalf("got %q", got)
		}
	}
	b.ask(types.NamespacedName{Namespace: shop.Namespace, Name: "other"}, []string{"other.example"})
	for name, tc := range map[string]struct {
		byHand bool
		want   int
	}{"by a person": {true, 1}, "by kubeop": {false, 0}} {
		t.Run(name, func(t *testing.T) {
			before := b.Freed(keyOf(shop))
			got := b.OnDecided(t.Context(), held("a.example", shop, tc.byHand, 2))
			if len(got) != tc.want || b.Freed(keyOf(shop))-before != tc.want || b.Freed(keyOf(blog)) != 0 {
				t.Errorf("%v are woken, and %d names became free", got, b.Freed(keyOf(shop))-before)
			}
			if tc.want == 1 && got[0].NamespacedName != keyOf(shop) {
				t.Errorf("%v are woken", got)
			}
		})
	}
}

// TestTheVersionDecidesWhichClaimIsOlder: clocks of API servers may differ.
func TestTheVersionDecidesWhichClaimIsOlder(t *testing.T) {
	claim := func(created int64, version string) *v1alpha1.HostnameClaim {
		return &v1alpha1.HostnameClaim{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.Unix(created, 0), ResourceVersion: version}}
	}
	for name, tc := range map[string]struct {
		a, b *v1alpha1.HostnameClaim
		want bool
	}{
		"a slow clock":         {claim(2, "1"), claim(1, "9"), true},
		"a fast clock":         {claim(1, "9"), claim(2, "1"), false},
		"an earlier second":    {claim(1, "3"), claim(2, "3"), true},
		"an earlier version":   {claim(1, "3"), claim(1, "4"), true},
		"a later version":      {claim(1, "4"), claim(1, "3"), false},
		"a version of a digit": {claim(1, "9"), claim(1, "10"), true},
		"one of two digits":    {claim(1, "10"), claim(1, "9"), false},
		"the same":             {claim(1, "3"), claim(1, "3"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := older(tc.a, tc.b); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// TestAClaimThatTheCacheLacksIsTheProjectsOwn: another app of the project was faster.
func TestAClaimThatTheCacheLacksIsTheProjectsOwn(t *testing.T) {
	b := newFixture(t)
	b.before = func(verb string, o any) error {
		if claim, is := o.(*v1alpha1.HostnameClaim); is && verb == "create" {
			b.before = func(string, any) error { return nil }
			if err := b.api.Create(t.Context(), held(claim.Spec.Hostname, shop, false, 1)); err != nil {
				t.Fatal(err)
			}
		}
		return nil
	}
	if got := b.claims(shop, "a.example"); got != "pending" || b.all() != "a.example=acme/shop" {
		t.Errorf("got %q, and the claims are %s", got, b.all())
	}
	b.before = func(verb string, o any) error {
		if _, is := o.(*v1alpha1.HostnameClaim); is && verb == "create" {
			return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "hostnameclaims"}, "b.example")
		}
		return nil
	}
	if got := b.claims(shop, "b.example"); !strings.HasPrefix(got, "reading who has host name b.example: ") {
		t.Errorf("one that is gone meanwhile: %s", got)
	}
}

// TestAClaimNamesItsTenantAndProject, in labels and in its spec.
func TestAClaimNamesItsTenantAndProject(t *testing.T) {
	b := newFixture(t)
	b.claims(shop, "*.a.example")
	got := &v1alpha1.HostnameClaim{}
	if err := b.api.Get(t.Context(), client.ObjectKey{Name: "wildcard--of.a.example"}, got); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app.kubernetes.io/managed-by": "kubeop", "paas.kubeop.io/tenant": "acme", "paas.kubeop.io/project": "shop"}
	if diff := gocmp.Diff(labels, got.Labels) + gocmp.Diff(v1alpha1.HostnameClaimSpec{Hostname: "*.a.example", Tenant: "acme", Project: "shop"}, got.Spec); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestTheNamesOfAProjectFitIntoItsGuardrails, although people may claim more by hand.
func TestTheNamesOfAProjectFitIntoItsGuardrails(t *testing.T) {
	for _, n := range []int{v1alpha1.MaxHostnames - 1, v1alpha1.MaxHostnames, v1alpha1.MaxHostnames + 1} {
		var claims []client.Object
		for i := range n {
			claims = append(claims, held(fmt.Sprintf("h%03d.example", i), shop, true, 1))
		}
		b := newFixture(t, claims...)
		names, again, err := b.Names(t.Context(), Project{Tenant: "acme", Name: "shop", Namespace: shop.Namespace})
		if len(names) != min(n, v1alpha1.MaxHostnames) || names[0] != "h000.example" || again != 0 || err != nil {
			t.Errorf("of %d claims, %d names, again in %s: %v", n, len(names), again, err)
		}
		want := "pending"
		if n >= v1alpha1.MaxHostnames {
			want = fmt.Sprintf("Ingress/web has the host one.example, which is one too many: a project can have 256 host names, and with those of this app it would have %d; "+
				"use a wildcard, or move apps to another project, in Git", n+1)
		}
		if got := b.claims(shop, "one.example"); got != want {
			t.Errorf("with %d claims one more is %s", n, got)
		}
	}
}

// TestANameOfAnAppOfAnotherNamespaceIsUnused here: only what apps of the project ask for counts.
func TestANameOfAnAppOfAnotherNamespaceIsUnused(t *testing.T) {
	b := newFixture(t, held("a.example", shop, false, 1))
	b.ask(keyOf(blog), []string{"a.example"})
	if got := b.lists(shop); got != " 2s" {
		t.Errorf("the project has %s", got)
	}
	b.ask(keyOf(shop), []string{"a.example"})
	if got := b.lists(shop); got != "a.example 0s" {
		t.Errorf("the project has %s", got)
	}
}

// TestTheProjectOfANamespaceIsWoken: one of the platform has the name of its namespace.
func TestTheProjectOfANamespaceIsWoken(t *testing.T) {
	b := newFixture(t)
	b.wakeProject("kubeop-acme-web-shop")
	b.wakeProject("ingress")
	if diff := gocmp.Diff([]string{"kubeop-acme/web-shop", v1alpha1.HomeNamespace(v1alpha1.PlatformTenant) + "/ingress"}, b.woken); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, namespace := range []string{"kubeop-acme-web-shop", "ingress"} {
		if !b.changed[namespace].Equal(b.clock.Now()) {
			t.Errorf("the change of %s is not remembered", namespace)
		}
	}
}

// TestAHelmActionClaimsTheHostsOfAllItsObjects: of the manifests, and then also of the hooks. What the action does not accept claims nothing.
func TestAHelmActionClaimsTheHostsOfAllItsObjects(t *testing.T) {
	b := newFixture(t)
	refused := errors.New("refused")
	admit := b.Admit(t.Context(), shop, func(objects []*unstructured.Unstructured) error {
		if len(objects) == 0 {
			return refused
		}
		return nil
	})
	if err := admit(nil); !errors.Is(err, refused) || b.all() != "" {
		t.Errorf("got %v, and the claims are %s", err, b.all())
	}
	looks := 0
	b.before = func(verb string, o any) error {
		if _, is := o.(*v1alpha1.Guardrails); is && verb == "get" {
			if looks++; looks == 3 { // The controller of the project lists the names meanwhile.
				b.before = func(string, any) error { return nil }
				b.lists(shop)
			}
		}
		return nil
	}
	if err := admit([]*unstructured.Unstructured{ingress(shop.Namespace, "a.example")}); err != nil || looks != 3 {
		t.Errorf("got %v after %d looks", err, looks)
	}
	b.before = func(verb string, o any) error {
		if _, is := o.(*v1alpha1.Guardrails); is && verb == "get" {
			b.before = func(string, any) error { return nil }
			b.lists(shop)
		}
		return nil
	}
	if err := admit([]*unstructured.Unstructured{ingress(shop.Namespace, "b.example")}); err != nil {
		t.Error(err)
	}
	if names := b.apps[keyOf(shop)].names; !slices.Equal(names, []string{"a.example", "b.example"}) {
		t.Errorf("the app asks for %v", names)
	}
	if err := b.api.Create(t.Context(), held("c.example", beta, false, 1)); err != nil {
		t.Fatal(err)
	}
	if err := admit([]*unstructured.Unstructured{ingress(shop.Namespace, "c.example")}); !errors.As(err, new(*policy.Violation)) {
		t.Errorf("a host of another tenant: %v", err)
	}
}

func TestAStepWaitsForPendingClaimsAndStopsAtARefusal(t *testing.T) {
	pending := &Pending{"kubeop-acme-shop", []string{"a", "b", "c", "d", "e", "f"}}
	refused := &policy.Violation{Object: "Ingress/web", Rule: "hostnames", Why: "has none"}
	away := errors.New("away")
	for name, tc := range map[string]struct {
		err         error
		waited      time.Duration
		waits, stop bool
		says        string
	}{
		"at first":              {pending, step.Quiet - 1, true, false, "under way"},
		"after a while":         {pending, step.Quiet, true, false, "waits until the guardrails of namespace kubeop-acme-shop have the host names a, b, c, d, e, and 1 more"},
		"refused":               {refused, time.Hour, false, true, refused.Error()},
		"refused, among others": {errors.Join(refused, refused), 0, false, true, refused.Error() + "\n" + refused.Error()},
		"a failure":             {away, time.Hour, false, false, "away"},
		"nothing":               {nil, time.Hour, false, false, "<nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := ""
			err := Ended(tc.err, func(phase string) time.Duration { asked = phase; return tc.waited })
			reason, _ := step.Failure(err)
			if got := fmt.Sprint(err); got != tc.says || step.Waits(err) != tc.waits || (reason == v1alpha1.NotAllowedReason) != tc.stop {
				t.Errorf("got %q, waits %t, reason %q", got, step.Waits(err), reason)
			}
			if want := map[bool]string{true: "host names"}[tc.waits]; asked != want {
				t.Errorf("asked for the time of %q, want %q", cmp.Or(asked, "nothing"), want)
			}
		})
	}
}
