package access

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/api/roles.md")

const page = "../../../docs/api/roles.md"

// TestTheTableIsPrinted compares docs/api/roles.md with the table, so that a change of who may do what is seen in two files.
func TestTheTableIsPrinted(t *testing.T) {
	var out strings.Builder
	out.WriteString("# Roles\n\nWho may do what through the [management API](../manager.md), as `go test ./internal/manager/access -update` prints it from the table that decides.\n" +
		"A role of tenants or projects counts only in its own tenant or project. What a caller may not read is not there for it: 404 instead of 403.\n\n| resource | verb |")
	for _, role := range Roles {
		fmt.Fprintf(&out, " %s |", role)
	}
	out.WriteString("\n|---|---|" + strings.Repeat("---|", len(Roles)) + "\n")
	for _, resource := range slices.Sorted(maps.Keys(table)) {
		for _, verb := range slices.Sorted(maps.Keys(table[resource])) {
			fmt.Fprintf(&out, "| %s | %s |", resource, verb)
			for _, role := range Roles {
				fmt.Fprintf(&out, " %s |", map[bool]string{true: "yes", false: "no"}[table[resource][verb][role]])
			}
			out.WriteString("\n")
		}
	}
	if *update {
		if err := os.WriteFile(page, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(text), out.String()); diff != "" {
		t.Errorf("run go test ./internal/manager/access -update (-page +table):\n%s", diff)
	}
}

// TestEachRowCountsOnlyWhereItsScopeReaches tries every role with every resource and verb: at the platform, in its own tenant and project, in another
// project of its tenant, and in another tenant.
func TestEachRowCountsOnlyWhereItsScopeReaches(t *testing.T) {
	scopes := map[Role]Scope{
		Admin: {Role: Admin}, TenantView: {TenantView, "acme", ""}, TenantEdit: {TenantEdit, "acme", ""}, TenantAdmin: {TenantAdmin, "acme", ""},
		ProjectView: {ProjectView, "acme", "shop"}, ProjectEdit: {ProjectEdit, "acme", "shop"}, ProjectDeploy: {ProjectDeploy, "acme", "shop"},
	}
	reach := map[string]struct{ tenant, project string }{
		"platform": {"", ""}, "tenant": {"acme", ""}, "project": {"acme", "shop"}, "sibling": {"acme", "blog"}, "foreign": {"beta", ""}, "foreign project": {"beta", "shop"},
	}
	counts := map[string][]string{"admin": slices.Sorted(maps.Keys(reach)), "tenant": {"project", "sibling", "tenant"}, "project": {"project"}}
	tried := 0
	for _, role := range Roles {
		kind, _, _ := strings.Cut(string(role), ":")
		for resource, verbs := range table {
			for _, verb := range []Verb{Read, Create, Update, Delete, "unknown"} {
				for name, place := range reach {
					tried++
					want := verbs[verb][role] && slices.Contains(counts[kind], name)
					if got := (Grant{scopes[role]}).May(resource, verb, place.tenant, place.project); got != want {
						t.Errorf("%s may %s %s at %s: %v, want %v", scopes[role], verb, resource, name, got, want)
					}
				}
			}
		}
	}
	if tried != len(Roles)*len(table)*5*len(reach) || (Grant{{Role: Admin}}).May("unknown", Read, "", "") {
		t.Errorf("%d were tried", tried)
	}
}

func TestScopesAreReadAndWritten(t *testing.T) {
	for _, text := range []string{"admin", "tenant:acme:view", "tenant:a1:admin", "project:acme/web-shop:deploy", "project:acme/9:view"} {
		if scope, err := ParseScope(text); err != nil || scope.String() != text {
			t.Errorf("%s becomes %v: %v", text, scope, err)
		}
	}
	for _, text := range []string{
		"", "root", "admin ", "admin:acme", "tenant:acme", "tenant:acme:deploy", "tenant:Acme:view", "tenant:a-b:view", "tenant::view", "tenant:*:view",
		"project:acme:view", "project:acme/shop", "project:acme/shop:admin", "project:acme/-x:view", "project:acme/a/b:view", "tenant:acme:view\n", "tenant:" + strings.Repeat("a", 21) + ":view",
		"tenant:platform:view", "project:platform/edge:view", "tenant:system:admin", "project:system/shop:edit",
	} {
		if scope, err := ParseScope(text); err == nil {
			t.Errorf("%q is taken for %v", text, scope)
		}
	}
}

func TestNobodyPassesOnMoreThanItHas(t *testing.T) {
	wanted := []string{"admin", "tenant:acme:view", "tenant:acme:admin", "project:acme/shop:deploy", "tenant:beta:view", "project:beta/shop:view"}
	for holder, may := range map[string]int{
		"admin": 6, "tenant:acme:admin": 3, "tenant:acme:edit": 0, "tenant:acme:view": 0, "project:acme/shop:edit": 0, "project:acme/shop:deploy": 0, "project:acme/shop:view": 0,
	} {
		grant, err := Parse([]string{holder})
		if err != nil {
			t.Fatal(err)
		}
		covered := 0
		for _, text := range wanted {
			scope, err := ParseScope(text)
			if err != nil {
				t.Fatal(err)
			}
			if grant.Covers(scope) {
				covered++
				if holder != "admin" && scope.Tenant != "acme" {
					t.Errorf("%s passes on %s", holder, text)
				}
			}
		}
		if covered != may {
			t.Errorf("%s passes on %d of %q, want %d", holder, covered, wanted, may)
		}
	}
}

func TestScopesOfATokenAreOfOneTenant(t *testing.T) {
	for texts, want := range map[string]struct {
		tenant string
		ok     bool
	}{
		"": {}, "admin": {"", true}, "tenant:acme:view project:acme/shop:deploy": {"acme", true}, "tenant:acme:view tenant:beta:view": {},
		"admin tenant:acme:view": {}, "tenant:acme:view admin": {}, "admin admin": {},
	} {
		grant, err := Parse(strings.Fields(texts))
		if err != nil {
			t.Fatal(err)
		}
		if tenant, ok := grant.Tenant(); tenant != want.tenant || ok != want.ok {
			t.Errorf("%q: %q %v", texts, tenant, ok)
		}
	}
}
