package tree

import (
	"errors"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/gitops/identity"
)

// TestOnlyTheTenantThatBringsADomainWhichOverlapsIsRefused: one that had its domain before the commit, by the tree before or in the cluster, keeps it and
// can be changed.
func TestOnlyTheTenantThatBringsADomainWhichOverlapsIsRefused(t *testing.T) {
	had := withPolicies()
	had["tenants/acme/tenant.yaml"] = declaration("Tenant", "acme", "{domains: [shop.example.com]}")
	texts := maps.Clone(had)
	texts["tenants/acme/tenant.yaml"] = declaration("Tenant", "acme", "{domains: [eu.shop.example.com], weight: 2}")
	texts["tenants/rival/tenant.yaml"] = declaration("Tenant", "rival", "{domains: [rival.example.com, example.com]}")
	live := func(domains map[string][]string, err error) func() (map[string][]string, error) {
		return func() (map[string][]string, error) { return domains, err }
	}
	for name, c := range map[string]struct {
		before  *Tree
		live    func() (map[string][]string, error)
		refused []string
	}{
		"it is in the tree before":                  {before: fresh(filesOf(had), Scope{}), refused: []string{"rival"}},
		"it is in the cluster":                      {live: live(map[string][]string{"acme": {"shop.example.com"}, "rival": {"rival.example.com"}}, nil), refused: []string{"rival"}},
		"it is in neither":                          {live: live(nil, nil), refused: []string{"acme", "rival"}},
		"the cluster is not known":                  {refused: []string{"acme", "rival"}},
		"both have theirs, and the cluster decides": {live: live(map[string][]string{"acme": {"shop.example.com"}, "rival": {"example.com"}}, nil)},
	} {
		reader := shared.Within(shared.Limits)
		reader.Domains = c.live
		read := reader.Read(filesOf(texts), Scope{}, c.before)
		var refused []string
		for _, tenant := range []string{"acme", "rival"} {
			if node, _ := read.Find(identity.Ref{Tenant: tenant}); !node.Declared() {
				refused = append(refused, tenant)
			}
		}
		if diff := cmp.Diff(c.refused, refused); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%v", name, diff, problems(read))
		}
	}
	away := errors.New("away")
	reader := shared.Within(shared.Limits)
	reader.Domains = live(nil, away)
	if _, err := reader.Read(filesOf(texts), Scope{}, nil).Unread(); !errors.Is(err, away) {
		t.Errorf("while the domains in the cluster are not known: %v", err)
	}
}

// TestTenantsAreRefusedAsLongAsTheirDomainsOverlap: both of them if both bring theirs, else the one that does. Files that did not change are not read again.
func TestTenantsAreRefusedAsLongAsTheirDomainsOverlap(t *testing.T) {
	texts := withPolicies()
	texts["tenants/acme/tenant.yaml"] = declaration("Tenant", "acme", "{domains: [shop.example.com]}")
	texts["tenants/third/tenant.yaml"] = declaration("Tenant", "third", "{domains: [third.example.com]}")
	sound := fresh(filesOf(texts), Scope{})
	if found := problems(sound); len(found) > 0 {
		t.Fatalf("problems: %v", found)
	}
	rival := texts["tenants/rival/tenant.yaml"]
	texts["tenants/rival/tenant.yaml"] = declaration("Tenant", "rival", "{domains: [a.shop.example.com]}")
	refused := shared.Read(filesOf(texts), Scope{}, sound)
	for name, declared := range map[string]bool{"acme": true, "rival": false, "third": true} {
		if node, _ := refused.Find(identity.Ref{Tenant: name}); node.Declared() != declared {
			t.Errorf("%s is declared: %t, with %v", name, node.Declared(), node.Problems())
		}
	}
	if web, _ := refused.Find(identity.Ref{Tenant: "acme", Project: "web"}); !web.Declared() {
		t.Error("the project of a refused tenant is refused, too")
	}
	again := shared.Read(filesOf(texts), Scope{}, refused)
	if changed := changes(refused, again); len(changed) > 0 {
		t.Errorf("nothing changed, and yet: %v", changed)
	}
	texts["tenants/rival/tenant.yaml"] = rival
	mended := shared.Read(filesOf(texts), Scope{}, again)
	if diff := cmp.Diff(describe(sound), describe(mended)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
