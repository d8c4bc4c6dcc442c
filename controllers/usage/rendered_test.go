package usage

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/delivery/budget"
)

var (
	web = types.NamespacedName{Namespace: "kubeop-acme-shop", Name: "web"}
	api = types.NamespacedName{Namespace: "kubeop-acme-shop", Name: "api"}
	log = types.NamespacedName{Namespace: "kubeop-acme-blog-2", Name: "log"}
)

// rendering is a Rendered that remembers whom it woke.
func rendering() (r *Rendered, woken *[]types.NamespacedName) {
	woken = &[]types.NamespacedName{}
	return &Rendered{Wake: func(app types.NamespacedName) { *woken = append(*woken, app) }}, woken
}

func TestAdmitRefusesTheAppThatIsOverTheSum(t *testing.T) {
	r, woken := rendering()
	r.Observe(web, 60<<10)
	r.Observe(log, 30<<10)
	if err := r.Admit("acme", api, 10<<10, 100<<10); err != nil {
		t.Errorf("there is room: %v", err)
	}
	err := r.Admit("acme", api, 11<<10, 100<<10)
	var over *budget.Exceeded
	if !errors.As(err, &over) || over.Is != 101<<10 || over.Limit != 100<<10 {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{
		"all apps of tenant acme deliver", "this one's 11Ki", "the largest others: kubeop-acme-shop/web 60Ki, kubeop-acme-blog-2/log 30Ki): 101Ki",
		"the limit is 100Ki", "spec.limits.renderedBytes of the Tenant",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if sum := r.Of("acme"); sum != 100<<10 {
		t.Errorf("what was refused counts: %d", sum)
	}
	// What it delivers already, and less, may always be delivered.
	if err := errors.Join(r.Admit("acme", api, 10<<10, 50<<10), r.Admit("acme", api, 9<<10, 50<<10)); err != nil {
		t.Error(err)
	}
	if err := r.Admit("other", types.NamespacedName{Namespace: "kubeop-other-shop", Name: "web"}, 100<<10, 100<<10); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	if len(*woken) > 0 {
		t.Errorf("woken are %v", *woken)
	}
}

func TestAnAdmittedSizeCountsUntilTheStatusRecordsLess(t *testing.T) {
	r, _ := rendering()
	sums := func(want int64) {
		t.Helper()
		if got := r.Of("acme"); got != want {
			t.Errorf("the sum is %d, want %d", got, want)
		}
	}
	admit := func(bytes int64) {
		t.Helper()
		if err := r.Admit("acme", web, bytes, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	r.Observe(web, 0)
	sums(0)
	admit(500)
	sums(500)
	r.Observe(web, 500)
	sums(500)
	admit(200)
	sums(500)
	r.Observe(web, 200)
	sums(200)
	if asked, _ := r.LastAdmitted(web); asked != 200 {
		t.Errorf("asked was %d, want 200", asked)
	}
	r.Gone(web)
	r.Gone(api)
	sums(0)
	if asked, woken := r.LastAdmitted(web); asked != 0 || woken != 0 {
		t.Errorf("of what is gone %d bytes are known, woken %d times", asked, woken)
	}
}

func TestARefusedAppIsWokenOnceThereIsRoom(t *testing.T) {
	r, woken := rendering()
	r.Observe(web, 60)
	r.Observe(log, 30)
	if err := r.Admit("acme", api, 50, 100); err == nil {
		t.Fatal("there is no room")
	}
	r.Observe(web, 55)
	if len(*woken) > 0 {
		t.Errorf("of 85 and 50 there is no room in 100, and woken are %v", *woken)
	}
	r.Gone(log)
	if len(*woken) > 0 {
		t.Errorf("of 55 and 50 there is no room in 100, and woken are %v", *woken)
	}
	r.Observe(web, 50)
	r.Observe(web, 40)
	if !slices.Equal(*woken, []types.NamespacedName{api}) {
		t.Errorf("woken are %v, want api once", *woken)
	}
	if _, times := r.LastAdmitted(api); times != 1 {
		t.Errorf("woken %d times, want 1", times)
	}
	if err := r.Admit("acme", api, 50, 100); err != nil {
		t.Error(err)
	}
}

func TestTheLargestAppsAreNamedInTheirOrder(t *testing.T) {
	r, _ := rendering()
	for name, size := range map[string]int64{"a": 10, "b": 40, "c": 20, "d": 30, "e": 20} {
		r.Observe(types.NamespacedName{Namespace: "kubeop-acme-shop", Name: name}, size<<10)
	}
	err := r.Admit("acme", web, 1<<10, 100<<10)
	if want := "the largest others: kubeop-acme-shop/b 40Ki, kubeop-acme-shop/d 30Ki, kubeop-acme-shop/c 20Ki)"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestATenantWithoutAppsIsForgotten(t *testing.T) {
	r, _ := rendering()
	r.Observe(web, 10)
	r.Observe(api, 10)
	r.Gone(web)
	if r.Of("acme") != 10 {
		t.Errorf("the sum is %d, want 10", r.Of("acme"))
	}
	if r.Gone(api); len(r.tenants) != 0 {
		t.Errorf("known are %v", r.tenants)
	}
}
