package kube

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// counted is a mapper below that counts, and does something while it is asked.
type counted struct {
	meta.RESTMapper
	scope  meta.RESTScope
	asked  int
	resets int
	during func()
}

func (c *counted) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	c.asked++
	if kind.Kind == "None" {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	found := &meta.RESTMapping{GroupVersionKind: kind.WithVersion("v1"), Scope: c.scope}
	if c.during != nil {
		c.during()
	}
	return found, nil
}

func (c *counted) Reset() { c.resets++ }

func TestMapper(t *testing.T) {
	below := &counted{scope: meta.RESTScopeNamespace}
	m := &Mapper{ResettableRESTMapper: below, found: map[asked]*meta.RESTMapping{}}
	scope := func(kind string, versions ...string) meta.RESTScopeName {
		t.Helper()
		mapping, err := m.RESTMapping(schema.GroupKind{Kind: kind}, versions...)
		if err != nil {
			t.Fatal(err)
		}
		return mapping.Scope.Name()
	}
	wantAsked := func(when string, want int) {
		t.Helper()
		if below.asked != want {
			t.Errorf("%s: asked %d times, want %d", when, below.asked, want)
		}
	}
	for range 3 {
		scope("A", "v1")
	}
	wantAsked("the same again", 1)
	scope("A", "v2")
	scope("B", "v1")
	wantAsked("another version, and another kind", 3)
	scope("A")
	scope("A")
	wantAsked("whatever version there is", 5)
	for range 2 {
		if _, err := m.RESTMapping(schema.GroupKind{Kind: "None"}, "v1"); !meta.IsNoMatchError(err) {
			t.Errorf("got %v, want no match", err)
		}
	}
	wantAsked("what is not served", 7)

	below.scope = meta.RESTScopeRoot
	if got := scope("A", "v1"); got != meta.RESTScopeNameNamespace {
		t.Errorf("before a reset it is %s", got)
	}
	m.Reset()
	if got := scope("A", "v1"); got != meta.RESTScopeNameRoot || below.resets != 1 {
		t.Errorf("after %d resets it is %s", below.resets, got)
	}

	// What was asked before a reset and answered after it may be older.
	below.during = func() { below.scope, below.during = meta.RESTScopeNamespace, nil; m.Reset() }
	scope("C", "v1")
	if got := scope("C", "v1"); got != meta.RESTScopeNameNamespace {
		t.Errorf("after a reset in between it is %s", got)
	}
}
