package tree

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/gitops/identity"
)

// TestTenantsAreRefusedAsLongAsTheirDomainsOverlap, both of them, and only they. Files that did not change are not read again.
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
	for name, declared := range map[string]bool{"acme": false, "rival": false, "third": true} {
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
	if diff := cmp.Diff(describe(fresh(filesOf(texts), Scope{})), describe(again)); diff != "" {
		t.Errorf("read after an earlier tree, it differs (-want +got):\n%s", diff)
	}
	texts["tenants/rival/tenant.yaml"] = rival
	mended := shared.Read(filesOf(texts), Scope{}, again)
	if diff := cmp.Diff(describe(sound), describe(mended)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
