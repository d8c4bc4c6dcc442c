package kube

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
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

// ServerResourcesForGroupVersion serves every kind that the mapper finds.
func (c *counted) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Kind: "A"}, {Kind: "B"}, {Kind: "C"}}}, nil
}

func TestTheMapperAsksForAKindOnce(t *testing.T) {
	below := &counted{scope: meta.RESTScopeNamespace}
	m := &Mapper{ResettableRESTMapper: below, served: below, found: map[kindVersion]*meta.RESTMapping{}}
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
		t.Errorf("before a reset it is %s, want %s", got, meta.RESTScopeNameNamespace)
	}
	m.Reset()
	if got := scope("A", "v1"); got != meta.RESTScopeNameRoot || below.resets != 1 {
		t.Errorf("after %d resets it is %s", below.resets, got)
	}

	// What was asked before a reset and answered after it may be older.
	below.during = func() { below.scope, below.during = meta.RESTScopeNamespace, nil; m.Reset() }
	scope("C", "v1")
	if got := scope("C", "v1"); got != meta.RESTScopeNameNamespace {
		t.Errorf("after a reset in between it is %s, want %s", got, meta.RESTScopeNameNamespace)
	}
}

// ServerGroups implements resources.
func (c *counted) ServerGroups() (*metav1.APIGroupList, error) { return &metav1.APIGroupList{}, nil }

// broken is discovery in which one group and version fails, as while the server of an aggregated API is down.
type broken struct {
	discovery.DiscoveryInterface
	version string
	err     error
}

func (b broken) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	if version == b.version {
		return nil, b.err
	}
	return b.DiscoveryInterface.ServerResourcesForGroupVersion(version)
}

func TestAKindOfAGroupThatCannotBeDiscoveredIsNotUnserved(t *testing.T) {
	down := apierrors.NewServiceUnavailable("no endpoints")
	served := broken{version: "down.example.com/v1", err: down, DiscoveryInterface: &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "services", SingularName: "service", Kind: "Service", Namespaced: true}}},
		{GroupVersion: "down.example.com/v1", APIResources: []metav1.APIResource{{Name: "gauges", SingularName: "gauge", Kind: "Gauge"}}},
	}}}}
	for name, tc := range map[string]struct {
		kind     schema.GroupKind
		versions []string
		unserved bool
	}{
		"a version that fails":              {schema.GroupKind{Group: "down.example.com", Kind: "Gauge"}, []string{"v1"}, false},
		"any version, and the only fails":   {schema.GroupKind{Group: "down.example.com", Kind: "Gauge"}, nil, false},
		"another version of that group":     {schema.GroupKind{Group: "down.example.com", Kind: "Gauge"}, []string{"v2"}, true},
		"a group that is not served":        {schema.GroupKind{Group: "none.example.com", Kind: "Gauge"}, []string{"v1"}, true},
		"any version of a group not served": {schema.GroupKind{Group: "none.example.com", Kind: "Gauge"}, nil, true},
		"a group that works":                {schema.GroupKind{Kind: "Gauge"}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewMapper(memory.NewMemCacheClient(served)).RESTMapping(tc.kind, tc.versions...)
			if err == nil || meta.IsNoMatchError(err) != tc.unserved || errors.Is(err, down) == tc.unserved {
				t.Errorf("got %v, want the kind to be unserved: %t, and the failure of discovery otherwise", err, tc.unserved)
			}
		})
	}
}

// TestAKindHasTheSpellingOfDiscovery: client-go's mapper also takes a kind in lower case and, for each kind, its list.
func TestAKindHasTheSpellingOfDiscovery(t *testing.T) {
	served := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "services", SingularName: "service", Kind: "Service", Namespaced: true},
			{Name: "services/proxy", Kind: "ServiceProxyOptions", Namespaced: true},
			{Name: "namespaces", SingularName: "namespace", Kind: "Namespace"},
		}},
		{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{
			{Name: "priceLists", SingularName: "pricelist", Kind: "PriceList", Namespaced: true},
		}},
	}}}
	for name, c := range map[string]struct {
		kind    schema.GroupKind
		version string
		want    string
		meant   string
	}{
		"as it is spelled":       {schema.GroupKind{Kind: "Service"}, "v1", "services", ""},
		"whatever version":       {schema.GroupKind{Kind: "Service"}, "", "services", ""},
		"a kind of that name":    {schema.GroupKind{Group: "example.com", Kind: "PriceList"}, "v1", "priceLists", ""},
		"in lower case":          {schema.GroupKind{Kind: "service"}, "v1", "", "Service"},
		"so, whatever version":   {schema.GroupKind{Kind: "service"}, "", "", "Service"},
		"in upper case":          {schema.GroupKind{Kind: "SERVICE"}, "v1", "", "Service"},
		"the resource":           {schema.GroupKind{Kind: "services"}, "v1", "", "Service"},
		"a list":                 {schema.GroupKind{Kind: "ServiceList"}, "v1", "", "Service"},
		"a subresource":          {schema.GroupKind{Kind: "ServiceProxyOptions"}, "v1", "", ""},
		"no such kind":           {schema.GroupKind{Kind: "Unheard"}, "v1", "", ""},
		"no such group":          {schema.GroupKind{Group: "none.example.com", Kind: "Service"}, "v1", "", ""},
		"none, whatever version": {schema.GroupKind{Kind: "Unheard"}, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var versions []string
			if c.version != "" {
				versions = []string{c.version}
			}
			m := NewMapper(memory.NewMemCacheClient(served))
			for range 2 { // From discovery, and from memory.
				found, err := m.RESTMapping(c.kind, versions...)
				if c.want != "" {
					if err != nil || found.Resource.Resource != c.want {
						t.Errorf("got %+v, %v", found, err)
					}
					continue
				}
				var misspelled *MisspelledKindError
				errors.As(err, &misspelled)
				if !meta.IsNoMatchError(err) || c.meant == "" && misspelled != nil || c.meant != "" && (misspelled == nil || misspelled.Meant != c.meant) {
					t.Errorf("got %v, want %q meant", err, c.meant)
				}
			}
		})
	}
}
