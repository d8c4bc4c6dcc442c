package repository

import (
	"fmt"
	"slices"
	"testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/tree"
)

// TestNewAppsDoNotMakeDeletionsSmall: how large a part of a tenant's apps leaves is counted without those that the same commit, or one after it,
// creates, also in a process that begins while it is applied.
func TestNewAppsDoNotMakeDeletionsSmall(t *testing.T) {
	named := func(name string, n int) (names []string) {
		for i := range n {
			names = append(names, fmt.Sprint(name, i))
		}
		return names
	}
	k := reading(t, fromAcme(project("kubeop-acme", "shop")))
	add := func(revision string, names ...string) {
		t.Helper()
		for _, name := range names {
			k.create(fromAcme(app("kubeop-acme-shop", name), func(a *v1alpha1.App) {
				a.Generation, a.Annotations = 1, map[string]string{v1alpha1.RevisionAnnotation: revision}
			}))
		}
	}
	read := func(before *tree.Tree, names ...string) *tree.Tree {
		specs := map[string]string{}
		for _, name := range names {
			specs[name] = nginx
		}
		return k.Tree.Read(inMemory(acmeFiles(specs)), tree.Scope{Repository: "acme", Tenant: "acme"}, before)
	}
	p := newProgress()
	wantHeld := func(name, revision string, found *tree.Tree) {
		t.Helper()
		s := k.scope(found)
		s.progress, s.commit.Revision = p, revision
		if err := k.look(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		lost, _, err := k.lost(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		v, err := k.verdict(t.Context(), s, lost, "")
		if err != nil || len(v.Go) > 0 || len(v.Held) != 6 || v.Why != "it removes 6 of 10 apps of tenant acme" {
			t.Errorf("%s: %d go and %d are held: %q, %v", name, len(v.Go), len(v.Held), v.Why, err)
		}
	}
	old := named("old", 10)
	add("main@sha1:1", old...)
	first := read(nil, old...)
	p.tree, p.revision = first, "main@sha1:1"

	second := read(first, append(named("new", 60), old[:4]...)...)
	wantHeld("before the new apps are there", "main@sha1:2", second)
	add("main@sha1:2", named("new", 60)...)
	wantHeld("after", "main@sha1:2", second)
	third := read(second, slices.Concat(named("new", 60), named("more", 60), old[:4])...)
	add("main@sha1:3", named("more", 60)...)
	wantHeld("with more of another commit", "main@sha1:3", third)

	for _, name := range named("more", 60) {
		if err := k.api.Delete(t.Context(), app("kubeop-acme-shop", name)); err != nil {
			t.Fatal(err)
		}
	}
	p = newProgress()
	wantHeld("after a restart", "main@sha1:2", read(nil, append(named("new", 60), old[:4]...)...))

	// What is resolved counts no more.
	p.Gone.Clear()
	s := k.scope(read(p.tree, append(named("new", 60), old[:3]...)...))
	s.progress = p
	if err := k.look(t.Context(), s); err != nil || p.formerApps["acme"] != 64 {
		t.Errorf("the next commit counts %v, want 64; %v", p.formerApps, err)
	}
}
