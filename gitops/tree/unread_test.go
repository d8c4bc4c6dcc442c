package tree

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/gitops/identity"
)

// undigested is a store that has lost the digest of one path.
type undigested struct {
	repository
	path string
}

func (u undigested) Sub(path string) (Files, error) { return sub{u, path}, nil }

func (u undigested) Digest(path string) (string, error) {
	if path == u.path {
		return "", fs.ErrPermission
	}
	return u.repository.Digest(path)
}

// TestAFileWhoseDigestCannotBeReadKeepsItsObject: it is not declared, and yet it does not count as removed.
func TestAFileWhoseDigestCannotBeReadKeepsItsObject(t *testing.T) {
	for file, ref := range map[string]identity.Ref{
		"tenants/acme/tenant.yaml":               {Tenant: "acme"},
		"tenants/acme/projects/web/project.yaml": {Tenant: "acme", Project: "web"},
		"policies/baseline.yaml":                 baseline,
	} {
		tree := fresh(undigested{filesOf(withPolicies()), file}, Scope{})
		node, there := tree.Find(ref)
		if !there || node.Declared() || !tree.Covers(ref) || tree.Declared(ref) != nil {
			t.Errorf("%s: there %t, covered %t, as %v", file, there, tree.Covers(ref), tree.Declared(ref))
			continue
		}
		found := node.Problems()
		if len(found) != 1 || found[0].File != file || found[0].Why != "reading it from the repository: permission denied" || found[0].Of != ref {
			t.Errorf("%s: problems %v", file, found)
		}
		if unread, err := tree.Unread(); unread != file || err == nil {
			t.Errorf("%s: unread is %s, %v", file, unread, err)
		}
	}
}

// TestALinkInThePlaceOfAProjectSaysNothingOfItsApps: it is reported as a problem of that project only.
func TestALinkInThePlaceOfAProjectSaysNothingOfItsApps(t *testing.T) {
	files := filesOf(twoTenants())
	for name := range files {
		if strings.HasPrefix(name, "tenants/acme/projects/shop/") {
			delete(files, name)
		}
	}
	files["tenants/acme/projects/shop"] = link("elsewhere")
	tree := fresh(files, Scope{})
	shop := identity.Ref{Tenant: "acme", Project: "shop"}
	found := problems(tree)
	if len(found) != 1 || found[0].Of != shop || found[0].Why != "symlinks are not followed; commit the file itself" {
		t.Errorf("problems: %v", found)
	}
	if tree.Counts().Problems != 1 || tree.Covers(identity.Ref{Tenant: "acme", Project: "shop", App: "web"}) || !tree.Covers(identity.Ref{Tenant: "acme", Project: "blog"}) {
		t.Errorf("counted %+v; a link in the place of the project's folder must not count as the removal of its apps", tree.Counts())
	}
	if got := tree.ProjectsOf("acme"); len(got) != 1 || got[0].Ref() != shop || tree.ProjectsOf("none") != nil {
		t.Errorf("the projects are %v", got)
	}
}

// TestPoliciesBeyondTheLimitAreNotRead: they do not count as removed.
func TestPoliciesBeyondTheLimitAreNotRead(t *testing.T) {
	files := filesOf(withPolicies())
	for i := range 300 {
		name := fmt.Sprintf("p%04d", i)
		files["policies/"+name+".yaml"] = text(declaration("Policy", name, "{}"))
	}
	tree := bounded(64<<10).Read(files, Scope{}, nil)
	got := messages(tree)
	last := tree.Policies[len(tree.Policies)-1].Ref().Policy
	n := 0
	if _, err := fmt.Sscanf(last, "p%04d", &n); err != nil || n >= 298 {
		t.Fatalf("the last policy that is read is %s, %v", last, err)
	}
	// The last of the folder is strict.yaml.
	if want := fmt.Sprintf("this and the %d files after it are not read: with this file of 0 bytes and those before it, the files of policies/ take too much", 300-n-1); !strings.Contains(strings.Join(got, "\n"), want) {
		t.Errorf("got %v, want %s", got, want)
	}
	if tree.Covers(identity.Ref{Policy: "p0299"}) || !tree.Covers(identity.Ref{Tenant: "rival", Project: "gone"}) {
		t.Error("a policy that was not read counts as removed")
	}
}

// TestADeclaredObjectIsFoundByItsRef, as the object that the cluster would get.
func TestADeclaredObjectIsFoundByItsRef(t *testing.T) {
	files := filesOf(withPolicies())
	files["policies/broken.yaml"] = text(declaration("Policy", "broken", "{nonsense: 1}"))
	tree := fresh(files, Scope{})
	var policies []string
	for _, p := range tree.DeclaredPolicies() {
		policies = append(policies, fmt.Sprint(p.Name, " ", p.Spec.Default))
	}
	if diff := cmp.Diff([]string{"baseline true", "strict false"}, policies); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
	for ref, want := range map[identity.Ref]string{
		{Tenant: "acme", Project: "web"}: "kubeop-acme/web", {Tenant: "rival"}: "/rival", {Policy: "strict"}: "/strict", {Policy: "broken"}: "", {Tenant: "none"}: "",
	} {
		got := ""
		if o := tree.Declared(ref); o != nil {
			got = o.GetNamespace() + "/" + o.GetName()
		}
		if got != want {
			t.Errorf("%s is declared as %q, want %q", ref, got, want)
		}
	}
}
