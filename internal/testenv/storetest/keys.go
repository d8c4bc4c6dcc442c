package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/internal/store"
)

func signingKey(id string, from, until time.Duration) store.SigningKey {
	return store.SigningKey{
		Private: store.Sealed{Kind: store.KindSigningKey, ID: id, Key: "k1", Data: []byte("\x00sealed " + id)}, Created: now, From: now.Add(from), Until: now.Add(until),
	}
}

func addKey(t *testing.T, s store.Store, k store.SigningKey, want bool) {
	t.Helper()
	if added, err := s.AddSigningKey(t.Context(), k); err != nil || added != want {
		t.Fatalf("adding %s: %t, %v", k.Private.ID, added, err)
	}
}

func keysOf(t *testing.T, s store.Store) []store.SigningKey {
	t.Helper()
	all, err := s.ListSigningKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func signingKeys(t *testing.T, s store.Store) {
	second, first := signingKey("a", time.Hour, 2*time.Hour), signingKey("b", 0, time.Hour)
	addKey(t, s, first, true)
	addKey(t, s, signingKey("c", 0, 2*time.Hour), false) // Another manager was first.
	addKey(t, s, second, true)
	addKey(t, s, signingKey("d", time.Hour, 2*time.Hour), false)
	if diff := cmp.Diff([]store.SigningKey{first, second}, keysOf(t, s)); diff != "" {
		t.Errorf("-added +listed:\n%s", diff)
	}
	if err := s.DropSigningKeys(t.Context(), now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]store.SigningKey{second}, keysOf(t, s)); diff != "" {
		t.Errorf("-kept +listed:\n%s", diff)
	}
	if left, err := s.ListSealed(t.Context(), store.Sealed{}, 10); err != nil || len(left) != 1 {
		t.Errorf("the private key of what was dropped is left: %v, %v", left, err)
	}
}

func sealed(t *testing.T, s store.Store) {
	for i, id := range []string{"a", "b", "c"} {
		addKey(t, s, signingKey(id, time.Duration(i)*time.Hour, time.Duration(i+1)*time.Hour), true)
	}
	var after store.Sealed
	for _, id := range []string{"a", "b", "c"} {
		page, err := s.ListSealed(t.Context(), after, 1)
		if err != nil || len(page) != 1 || page[0].ID != id {
			t.Fatalf("after %q: %v, %v", after.ID, page, err)
		}
		after = page[0]
	}
	was := signingKey("b", 0, 0).Private
	is := was
	is.Key, is.Data = "k2", []byte("again")
	for i, want := range []bool{true, false} { // The second time it is not as it was.
		if replaced, err := s.ReplaceSealed(t.Context(), was, is); err != nil || replaced != want {
			t.Errorf("time %d: %t, %v", i, replaced, err)
		}
	}
	if diff := cmp.Diff(is, keysOf(t, s)[1].Private); diff != "" {
		t.Errorf("-replaced +listed:\n%s", diff)
	}
	is.ID = "missing"
	if replaced, err := s.ReplaceSealed(t.Context(), is, was); err != nil || replaced {
		t.Errorf("one that is not there: %t, %v", replaced, err)
	}
}
