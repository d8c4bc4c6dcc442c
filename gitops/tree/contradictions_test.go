package tree

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/gitops/identity"
)

// TestContradictionsFollowThePolicies: they appear and go with the commit that changes a policy, and hold nothing back. Those of
// default policies are reported if a tenant is under them.
func TestContradictionsFollowThePolicies(t *testing.T) {
	for of, named := range map[string]string{"named": "{policies: [baseline, strict]}", "default": "{}"} {
		t.Run(of, func(t *testing.T) { followThePolicies(t, named, of == "default") })
	}
}

func followThePolicies(t *testing.T, named string, byDefault bool) {
	files := withPolicies()
	files["tenants/acme/tenant.yaml"] = declaration("Tenant", "acme", named)
	read := func(before *Tree, baseline, strict string) *Tree {
		t.Helper()
		files["policies/baseline.yaml"], files["policies/strict.yaml"] = declaration("Policy", "baseline", baseline), declaration("Policy", "strict", strict)
		tree := shared.Read(filesOf(files), Scope{}, before)
		if node, _ := tree.Find(identity.Ref{Tenant: "acme"}); !node.Declared() {
			t.Errorf("the tenant is refused: %v", problems(tree))
		}
		return tree
	}
	a, b := "{images: {allow: [a.example]}}", "{images: {allow: [b.example]}}"
	if byDefault {
		a, b = "{default: true, images: {allow: [a.example]}}", "{default: true, images: {allow: [b.example]}}"
	}
	tree := read(nil, a, a)
	for i, strict := range []string{b, b, a, b} {
		tree = read(tree, a, strict)
		if again := fresh(filesOf(files), Scope{}); !cmp.Equal(problems(again), problems(tree)) || len(problems(tree)) != map[string]int{a: 0, b: 1}[strict] {
			t.Errorf("commit %d: got %v, and anew %v", i, problems(tree), problems(again))
		}
	}
}

// TestDomainsThatAPolicyDoesNotAllowAreReported at the tenant, also of default policies, and follow both.
func TestDomainsThatAPolicyDoesNotAllowAreReported(t *testing.T) {
	for of, named := range map[string]string{"named": "policies: [strict], ", "default": ""} {
		files := withPolicies()
		delete(files, "policies/baseline.yaml")
		var tree *Tree
		for _, c := range []struct{ domain, suffix, want string }{
			{"a.example", "a.example", ""},
			{"a.example", "b.example", "spec.domains of tenant.yaml has a.example, and spec.hostnames.suffixes of policies/strict.yaml has b.example, so no host name is allowed"},
			{"www.b.example", "b.example", ""},
			{"www.b.example", "c.example", "spec.domains of tenant.yaml has www.b.example, and spec.hostnames.suffixes of policies/strict.yaml has c.example, so no host name is allowed"},
		} {
			files["tenants/acme/tenant.yaml"] = declaration("Tenant", "acme", "{"+named+"domains: ["+c.domain+"]}")
			files["policies/strict.yaml"] = declaration("Policy", "strict", "{default: true, hostnames: {suffixes: ["+c.suffix+"]}}")
			tree = shared.Read(filesOf(files), Scope{}, tree)
			found := fmt.Sprint(problems(tree))
			if node, _ := tree.Find(identity.Ref{Tenant: "acme"}); !node.Declared() || strings.Contains(found, "so no host name is allowed") != (c.want != "") || !strings.Contains(found, c.want) {
				t.Errorf("%s, %s below %s: got %q, want %q", of, c.domain, c.suffix, found, c.want)
			}
			if c.want != "" && !strings.Contains(found, "tenants/acme/tenant.yaml") {
				t.Errorf("%s: the finding is at %q", of, found)
			}
		}
	}
}
