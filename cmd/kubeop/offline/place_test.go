package offline

import (
	"encoding/xml"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/tree"
)

func TestTheNameOfAnObjectGivesTheFileToWrite(t *testing.T) {
	for name, want := range map[string]string{
		"acme/shop/web":     "tenants/acme/projects/shop/apps/web/app.yaml",
		"platform/shop/web": "platform/shop/apps/web/app.yaml",
	} {
		if got, err := placeOf(target.App, name, true); err != nil || got != want {
			t.Errorf("%s in the platform repository: got %s, %v; want %s", name, got, err, want)
		}
	}
	if got, err := placeOf(target.Policy, "baseline", true); err != nil || got != "policies/baseline.yaml" {
		t.Errorf("a policy: got %s, %v", got, err)
	}
	if got, err := placeOf(target.App, "shop/web", false); err != nil || got != "projects/shop/apps/web/app.yaml" {
		t.Errorf("in a tenant's repository: got %s, %v", got, err)
	}
}

// TestANameIsNotAPath: a name has the right number of parts and still leads to the file of another object, or out of the repository.
func TestANameIsNotAPath(t *testing.T) {
	for _, tc := range []struct {
		kind     target.Kind
		name     string
		platform bool
	}{
		{target.App, "shop/..", false},
		{target.App, "../web", false},
		{target.App, "acme/../web", true},
		{target.App, "../shop/web", true},
		{target.App, "shop/.", false},
		{target.App, "./web", false},
		{target.App, "shop/", false},
		{target.App, "/web", false},
		{target.App, `shop/..\web`, false},
		{target.App, "shop/c:", false},
		{target.Project, "..", false},
		{target.Tenant, "..", true},
		{target.Tenant, "", true},
		{target.Policy, "..", true},
		{target.Policy, "a/b", true},
		{target.Policy, "baseline", false},
	} {
		if got, err := placeOf(tc.kind, tc.name, tc.platform); err == nil {
			t.Errorf("%s %q, platform %t: got %s, want an error", tc.kind.Name, tc.name, tc.platform, got)
		}
	}
}

// TestTheFoldersSayWhichTenantTheRepositoryIsOf: one with tenants or parts of the platform is the platform's, unless a tenant is named. A tenant is often named as its
// repository is.
func TestTheFoldersSayWhichTenantTheRepositoryIsOf(t *testing.T) {
	for name, tc := range map[string]struct {
		tenant, base, folder string
		want                 tree.Scope
	}{
		"tenants":                     {"", "fleet", "tenants", tree.Scope{Repository: v1alpha1.PlatformRepository}},
		"parts of the platform":       {"", "fleet", "platform", tree.Scope{Repository: v1alpha1.PlatformRepository}},
		"policies":                    {"", "fleet", "policies", tree.Scope{Repository: v1alpha1.PlatformRepository}},
		"registries":                  {"", "fleet", "registries", tree.Scope{Repository: v1alpha1.PlatformRepository}},
		"policies beside projects":    {"", "acme", "policies projects", tree.Scope{Repository: "acme", Tenant: "acme"}},
		"the platform is named":       {v1alpha1.PlatformTenant, "fleet", "tenants", tree.Scope{Repository: v1alpha1.PlatformRepository}},
		"a tenant is named":           {"acme", "fleet", "tenants", tree.Scope{Repository: "acme", Tenant: "acme"}},
		"a name that a tenant has":    {"", "acme", "projects", tree.Scope{Repository: "acme", Tenant: "acme"}},
		"a name that no tenant has":   {"", "My-Repo", "projects", tree.Scope{Repository: "tenant", Tenant: "tenant"}},
		"a file in place of a folder": {"", "acme", "", tree.Scope{Repository: "acme", Tenant: "acme"}},
	} {
		files := fstest.MapFS{"tenants": {Data: []byte("a file")}}
		if tc.folder != "" {
			files = fstest.MapFS{}
		}
		for folder := range strings.FieldsSeq(tc.folder) {
			files[folder+"/a/b.yaml"] = &fstest.MapFile{}
		}
		v := &validate{Call: &call.Call{Connection: &target.Connection{Tenant: tc.tenant}}}
		if got := v.scope(tc.base, files); got != tc.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tc.want)
		}
	}
}

// TestAFolderEndsAtItsRoot: no path leads out of it, and a file is none.
func TestAFolderEndsAtItsRoot(t *testing.T) {
	root := write(t, repository(nil))
	w, err := openWorktree(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{"..", "../acme", "/etc", "projects/../.."} {
		if _, err := w.Sub(out); err == nil {
			t.Errorf("%s is a folder of it", out)
		}
		if _, err := w.Open(out); err == nil {
			t.Errorf("%s is a file of it", out)
		}
	}
	if _, err := openWorktree(t.Context(), root+"/kubeop.yaml"); err == nil || !strings.HasSuffix(err.Error(), "is not a folder") {
		t.Errorf("a file as a folder: %v", err)
	}
}

// TestTheTopFolderIsFoundFromBelow: the first one at or above a folder that has kubeop.yaml, or else the folder itself. A folder that cannot be read is
// an error, and nothing above it is taken.
func TestTheTopFolderIsFoundFromBelow(t *testing.T) {
	root, none := write(t, repository(nil)), t.TempDir()
	for folder, want := range map[string]string{root: root, filepath.Join(root, "projects", "shop"): root, none: none} {
		if got, err := topFolder(folder); err != nil || got != want {
			t.Errorf("of %s: got %s, %v, want %s", folder, got, err, want)
		}
	}
	if got, err := topFolder(filepath.Join(root, "kubeop.yaml", "x")); err == nil || got != "" {
		t.Errorf("below a file: got %s, %v", got, err)
	}
}

// TestAReportHasProblemsOfObjectsThatAreNotDeclared, after those of the tree.
func TestAReportHasProblemsOfObjectsThatAreNotDeclared(t *testing.T) {
	problem := func(project, app string) tree.Problem {
		return tree.Problem{Finding: document.Finding{File: "f", Why: "broken"}, Of: identity.Ref{Tenant: "acme", Project: project, App: app}}
	}
	var out strings.Builder
	err := writeJUnit(&out, &tree.Tree{}, []tree.Problem{problem("shop", "web"), problem("blog", "web"), problem("shop", "")})
	var suite junitSuite
	if xmlErr := xml.Unmarshal([]byte(out.String()), &suite); err != nil || xmlErr != nil {
		t.Fatal(err, xmlErr)
	}
	var got []string
	for _, c := range suite.Cases {
		got = append(got, fmt.Sprint(c.Class, " ", c.Name, " ", len(c.Failures)))
	}
	want := []string{"Repository repository 0", "App acme/blog/web 1", "Project acme/shop 1", "App acme/shop/web 1"}
	if !slices.Equal(got, want) || suite.Failures != 3 || suite.Tests != 4 {
		t.Errorf("got %q, want %q", got, want)
	}
}
