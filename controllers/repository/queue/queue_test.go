package queue

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/gitops/identity"
)

func app(tenant, project, name string) identity.Ref {
	return identity.Ref{Tenant: tenant, Project: project, App: name}
}

// TestObjectsAreInTheOrderOfGit, each once, however often and in whatever order they come and go.
func TestObjectsAreInTheOrderOfGit(t *testing.T) {
	want := []identity.Ref{
		{Registry: "a"}, {Registry: "b"}, {Policy: "a"}, {Policy: "b"},
		app("acme", "", ""), app("acme", "blog", ""), app("acme", "blog", "web"), app("acme", "shop", ""), app("acme", "shop", "api"), app("acme", "shop", "web"), app("beta", "", ""),
	}
	q := New()
	for range 2 {
		for _, ref := range slices.Backward(want) {
			q.Add(ref)
		}
		for _, ref := range want[:4] { // Those that return are not there twice.
			q.Remove(ref)
			q.Add(ref)
		}
	}
	if diff := cmp.Diff(want, q.All()); diff != "" || q.Len() != len(want) {
		t.Errorf("%d objects; -want +got:\n%s", q.Len(), diff)
	}
	for _, ref := range want {
		if !q.Has(ref) {
			t.Errorf("%s is not in the queue", ref)
		}
	}
}

// TestRemovedObjectsAreGone: a slice that was returned before keeps them.
func TestRemovedObjectsAreGone(t *testing.T) {
	one, two, three := app("acme", "shop", "a"), app("acme", "shop", "b"), app("acme", "shop", "c")
	q := New()
	for _, ref := range []identity.Ref{two, one, three} {
		q.Add(ref)
	}
	before := q.All()
	q.Remove(two)
	q.Remove(app("acme", "shop", "none"))
	if diff := cmp.Diff([]identity.Ref{one, two, three}, before); diff != "" {
		t.Errorf("the slice of before changed:\n%s", diff)
	}
	if q.Has(two) || q.Len() != 2 || !slices.Equal(q.All(), []identity.Ref{one, three}) {
		t.Errorf("%d objects: %v", q.Len(), q.All())
	}
	q.Add(two)
	if !q.Has(two) || !slices.Equal(q.All(), []identity.Ref{one, two, three}) {
		t.Errorf("when it returns: %v", q.All())
	}
}

// TestHeldObjectsAreKnownByTenant until none of the tenant is held back.
func TestHeldObjectsAreKnownByTenant(t *testing.T) {
	one, two, other := app("acme", "shop", "a"), app("acme", "shop", "b"), app("beta", "shop", "a")
	over := Over{}
	over.Drop(one)
	for _, ref := range []identity.Ref{one, two, other} {
		over.Add(ref)
	}
	over["acme"].Refusals = "kept"
	over.Add(one)
	over.Drop(two)
	if !over.Has(one) || over.Has(two) || !over.Has(other) || over.Has(app("rival", "shop", "a")) || over["acme"].Refusals != "kept" {
		t.Errorf("held back are %v", over)
	}
	over.Drop(one)
	if _, left := over["acme"]; left || !over.Has(other) {
		t.Errorf("held back are %v", over)
	}
}
