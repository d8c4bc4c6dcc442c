package repository

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/tree"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

// pricesOf is a PriceList of the platform repository.
func pricesOf(name string, byDefault bool) *v1alpha1.PriceList {
	list := fromAcme(&v1alpha1.PriceList{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.PriceListSpec{Default: byDefault}})
	list.Labels[v1alpha1.RepositoryLabel] = "platform"
	return list
}

// TestThePricesOfARemovedTenantStayUntilItIsGone: nobody has confirmed its deletion, then it is being deleted.
func TestThePricesOfARemovedTenantStayUntilItIsGone(t *testing.T) {
	acme, prices := tenantOf("acme", func(a *v1alpha1.Tenant) { a.Spec.PriceList = "acme" }), pricesOf("acme", false)
	k := watching(t, acme, prices)
	s := k.ofPlatform(platformTree(t, map[string][3]string{"policies/other.yaml": {"Policy", "other", "{}"}}))
	s.progress.Gone.Insert(identity.Ref{Tenant: "acme"}, identity.Ref{PriceList: "acme"})
	collected := func(name, want string, prices, counted bool) {
		t.Helper()
		k.lists, s.weighed = 0, false
		if got := steptest.Outcome(t, k.collect(t.Context(), s)); got != want || !s.weighed || k.lists > 0 != counted {
			t.Errorf("%s: %q, want %q; weighed: %t; counted: %t, want %t", name, got, want, s.weighed, k.lists > 0, counted)
		}
		if got := k.has(pricesOf("acme", false)); got != prices {
			t.Errorf("%s: the prices exist: %t, want %t", name, got, prices)
		}
	}
	collected("held", "done", true, true)
	if len(s.verdict.Held) != 1 || !k.has(acme) || acme.DeletionTimestamp != nil {
		t.Fatalf("held are %+v; the tenant is deleted at %v", s.verdict.Held, acme.DeletionTimestamp)
	}
	collected("still held", "done", true, false)
	s.repository.Annotations = map[string]string{v1alpha1.ConfirmAnnotation: s.verdict.Token}
	k.create(s.repository)
	collected("confirmed", "waits Deleting: waits for Tenant acme to be gone, after 5s", true, true)
	s.repository.Annotations = nil
	collected("being deleted", "waits Deleting: waits for Tenant acme to be gone, after 5s", true, true)
	collected("still being deleted", "waits Deleting: waits for Tenant acme to be gone, after 5s", true, false)
	if !k.has(acme) || acme.DeletionTimestamp == nil {
		t.Fatal("the tenant is not being deleted, or is gone")
	}
	acme.Finalizers = nil
	if err := k.api.Update(t.Context(), acme); err != nil {
		t.Fatal(err)
	}
	collected("gone", "waits Deleting: waits for PriceList acme to be gone, after 5s", false, true)
}

// TestAReplacedDefaultPriceListDoesNotWait for a held tenant: as long as there are two, all tenants without a list of their own have no prices.
func TestAReplacedDefaultPriceListDoesNotWait(t *testing.T) {
	for name, c := range map[string]struct {
		others []client.Object
		stays  bool
	}{
		"another one is the default, too": {[]client.Object{pricesOf("new", true)}, false},
		"another one is not":              {[]client.Object{pricesOf("new", false)}, true},
		"there is no other":               {nil, true},
	} {
		k := watching(t, append(c.others, tenantOf("acme"), pricesOf("old", true), pricesOf("acme", false))...)
		s := k.ofPlatform(platformTree(t, map[string][3]string{"policies/other.yaml": {"Policy", "other", "{}"}}))
		s.progress.Gone.Insert(identity.Ref{Tenant: "acme"}, identity.Ref{PriceList: "old"}, identity.Ref{PriceList: "acme"})
		_ = k.collect(t.Context(), s)
		if k.has(pricesOf("old", true)) != c.stays || !k.has(pricesOf("acme", false)) || !k.has(tenantOf("acme")) || len(s.verdict.Held) != 1 {
			t.Errorf("%s: the old one exists: %t, that of the tenant: %t; held are %+v", name, k.has(pricesOf("old", true)), k.has(pricesOf("acme", false)), s.verdict.Held)
		}
	}
	k := watching(t, tenantOf("acme"), pricesOf("old", true))
	s := k.ofPlatform(platformTree(t, map[string][3]string{"policies/other.yaml": {"Policy", "other", "{}"}}))
	s.progress.Gone.Insert(identity.Ref{PriceList: "old"})
	k.fails = ".PriceListList"
	if err := k.collect(t.Context(), s); !errors.Is(err, errAway) || !k.has(pricesOf("old", true)) {
		t.Errorf("the price lists cannot be listed: %v; the old one exists: %t", err, k.has(pricesOf("old", true)))
	}
}

// TestAPriceListNamesTheCommitThatWroteIt, and keeps it through commits that leave its file as it is. Nobody would remove a finalizer of it.
func TestAPriceListNamesTheCommitThatWroteIt(t *testing.T) {
	k := watching(t)
	of := func(price string) *tree.Tree {
		return platformTree(t, map[string][3]string{
			"prices/standard.yaml": {"PriceList", "standard", `{default: true, currency: EUR, meters: [{name: pods, unit: hour, periods: [{from: "2026-01-01", tiers: [{price: "` + price + `"}]}]}]}`},
		})
	}
	var last *tree.Tree
	for _, commit := range []struct{ price, revision, author, want string }{
		{"1", "main@sha1:1", "Ann", "main@sha1:1 by Ann"}, {"1", "main@sha1:2", "Bob", "main@sha1:1 by Ann"}, {"2", "main@sha1:3", "Bob", "main@sha1:3 by Bob"},
	} {
		s := k.ofPlatform(of(commit.price))
		s.commit.Revision, s.commit.Author = commit.revision, commit.author
		tree.Changes(last, s.found, func(r identity.Ref) { s.progress.look(r) })
		if err := k.declare(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		last = s.found
		list := &v1alpha1.PriceList{}
		if err := k.api.Get(t.Context(), client.ObjectKey{Name: "standard"}, list); err != nil || len(list.Finalizers) > 0 {
			t.Fatalf("the finalizers are %v, %v", list.Finalizers, err)
		}
		if got := list.Annotations[v1alpha1.RevisionAnnotation] + " by " + list.Annotations[v1alpha1.AuthorAnnotation]; got != commit.want || string(list.Spec.Meters[0].Periods[0].Tiers[0].Price) != commit.price {
			t.Errorf("at %s it costs %s since %s", commit.revision, list.Spec.Meters[0].Periods[0].Tiers[0].Price, got)
		}
	}
	there, err := k.declaredBy(t.Context(), "platform")
	if _, is := there[identity.Ref{PriceList: "standard"}]; !is || err != nil {
		t.Errorf("the repository declared %v, %v", there, err)
	}
	list, err := k.live(t.Context(), k.ofPlatform(last).progress, identity.Ref{PriceList: "standard"})
	if err != nil || list == nil {
		t.Fatalf("it is %v, %v", list, err)
	}
	if err := k.api.Delete(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	if err := k.api.Get(t.Context(), client.ObjectKeyFromObject(list), list); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
}
