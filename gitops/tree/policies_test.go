package tree

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/identity"
)

var baseline = identity.Ref{Policy: "baseline"}

// withPolicies is a platform repository with a tenant that is under one of its two policies, and a tenant that names none.
func withPolicies() map[string]string {
	return map[string]string{
		"kubeop.yaml":                            "layout: v1\n",
		"policies/baseline.yaml":                 declaration("Policy", "baseline", "{default: true}"),
		"policies/strict.yaml":                   declaration("Policy", "strict", "{images: {requireDigest: true}}"),
		"tenants/acme/tenant.yaml":               declaration("Tenant", "acme", "{policies: [strict]}"),
		"tenants/acme/projects/web/project.yaml": declaration("Project", "web", "{}"),
		"tenants/rival/tenant.yaml":              declaration("Tenant", "rival", "{}"),
	}
}

func TestAPolicyIsStampedWithItsRepositoryAndItsFile(t *testing.T) {
	tree := fresh(filesOf(withPolicies()), Scope{Repository: "platform", Path: "deploy"})
	if found := problems(tree); len(found) > 0 {
		t.Fatalf("problems: %v", found)
	}
	node, there := tree.Find(baseline)
	if !there {
		t.Fatal("the policy is not read")
	}
	policy, is := tree.Object(node, revision).(*v1alpha1.Policy)
	if !is || policy.Name != "baseline" || policy.Namespace != "" || !policy.Spec.Default {
		t.Errorf("the object is %+v", policy)
	}
	if diff := cmp.Diff(map[string]string{v1alpha1.RepositoryLabel: "platform"}, policy.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	want := map[string]string{v1alpha1.FolderAnnotation: "deploy/policies/baseline.yaml", v1alpha1.TreeAnnotation: node.self().file}
	if diff := cmp.Diff(want, policy.Annotations); diff != "" || node.self().file == "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if got := tree.File(node); got != "deploy/policies/baseline.yaml" {
		t.Errorf("its file is %s", got)
	}
	if got := tree.Counts(); got != (Counts{Policies: 2, Tenants: 2, Projects: 1}) || got.Objects() != 5 {
		t.Errorf("counted %+v, %d objects", got, got.Objects())
	}
}

// TestARegistryKnowsTheLineOfItsSecret, also when its file is not read again, and when it moved in the file.
func TestARegistryKnowsTheLineOfItsSecret(t *testing.T) {
	files := withPolicies()
	at := func(before *Tree) (string, *Tree) {
		t.Helper()
		tree := shared.Read(filesOf(files), Scope{Repository: "platform", Path: "deploy"}, before)
		node, there := tree.Find(identity.Ref{Registry: "ghcr"})
		if !there || !node.Declared() {
			t.Fatalf("the registry is not read: %v", problems(tree))
		}
		if got := tree.File(node); got != "deploy/registries/ghcr.yaml" {
			t.Errorf("its file is %s", got)
		}
		return tree.Object(node, revision).GetAnnotations()[v1alpha1.SecretRefAnnotation], tree
	}
	files["registries/ghcr.yaml"] = declaration("Registry", "ghcr", "\n  host: ghcr.io\n  secretRef: {name: ghcr}")
	first, before := at(nil)
	again, before := at(before)
	files["registries/ghcr.yaml"] = "# Moved.\n" + files["registries/ghcr.yaml"]
	moved, _ := at(before)
	if diff := cmp.Diff([]string{"deploy/registries/ghcr.yaml:6:3", "deploy/registries/ghcr.yaml:6:3", "deploy/registries/ghcr.yaml:7:3"}, []string{first, again, moved}); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestATenantKnowsTheLineOfItsBudget, also when its file is not read again, when it moved in the file, and when another file of its folder changed. Without a budget there is none.
func TestATenantKnowsTheLineOfItsBudget(t *testing.T) {
	files := withPolicies()
	at := func(before *Tree) (string, *Tree) {
		t.Helper()
		tree := shared.Read(filesOf(files), Scope{Repository: "platform", Path: "deploy"}, before)
		node, there := tree.Find(identity.Ref{Tenant: "acme"})
		if !there || !node.Declared() {
			t.Fatalf("the tenant is not read: %v", problems(tree))
		}
		return tree.Object(node, revision).GetAnnotations()[v1alpha1.BudgetAnnotation], tree
	}
	none, before := at(nil)
	files["tenants/acme/tenant.yaml"] = declaration("Tenant", "acme", "\n  frozen: false\n  budget: {pods: 10}")
	first, before := at(before)
	again, before := at(before)
	files["tenants/acme/projects/other/project.yaml"] = declaration("Project", "other", "{}")
	beside, before := at(before)
	files["tenants/acme/tenant.yaml"] = "# Moved.\n" + files["tenants/acme/tenant.yaml"]
	moved, _ := at(before)
	const sixth, seventh = "deploy/tenants/acme/tenant.yaml:6:3", "deploy/tenants/acme/tenant.yaml:7:3"
	if diff := cmp.Diff([]string{"", sixth, sixth, sixth, seventh}, []string{none, first, again, beside, moved}); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPoliciesComeBeforeTenants(t *testing.T) {
	tree := fresh(filesOf(withPolicies()), Scope{})
	want := []string{"Policy baseline", "Policy strict", "Tenant acme", "Project kubeop-acme/web", "Tenant rival"}
	if diff := cmp.Diff(want, refs(tree)); diff != "" {
		t.Errorf("walked (-want +got):\n%s", diff)
	}
	n := 0
	tree.Walk(func(Node) bool { n++; return false })
	if n != 1 {
		t.Errorf("the walk visited %d nodes, and had to stop at the first", n)
	}
}

// TestOnlyAChangedPolicyIsReadAgain: unchanged files are the same nodes, and the tenants are not touched.
func TestOnlyAChangedPolicyIsReadAgain(t *testing.T) {
	gone := func(m map[string]string) { delete(m, "policies/strict.yaml") }
	for name, c := range map[string]struct {
		change func(map[string]string)
		want   []string
		read   []string
	}{
		"nothing": {func(map[string]string) {}, nil, nil},
		"a policy": {func(m map[string]string) { m["policies/baseline.yaml"] += "# more\n" }, []string{"Policy baseline"},
			[]string{"policies/baseline.yaml"}},
		"a new policy":               {func(m map[string]string) { m["policies/a.yaml"] = declaration("Policy", "a", "{}") }, []string{"Policy a"}, []string{"policies/a.yaml"}},
		"a policy that is invalid":   {func(m map[string]string) { m["policies/strict.yaml"] = "a: b\n" }, []string{"Policy strict"}, []string{"policies/strict.yaml"}},
		"a deleted policy":           {func(m map[string]string) { delete(m, "policies/baseline.yaml") }, []string{"Policy baseline"}, nil},
		"a policy that a tenant has": {gone, []string{"Policy strict", "Tenant acme"}, []string{"tenants/acme/tenant.yaml"}},
		"a tenant": {func(m map[string]string) {
			m["tenants/rival/tenant.yaml"] = declaration("Tenant", "rival", "{policies: [baseline]}")
		},
			[]string{"Tenant rival"}, []string{"tenants/rival/tenant.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			texts := withPolicies()
			before := fresh(filesOf(texts), Scope{})
			c.change(texts)
			counted := &counting{Files: filesOf(texts), opened: map[string]int{}}
			after := shared.Read(counted, Scope{}, before)
			var got, read []string
			Changes(before, after, func(ref identity.Ref) { got = append(got, ref.String()) })
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("changed (-want +got):\n%s", diff)
			}
			for file := range counted.opened {
				read = append(read, file)
			}
			slices.Sort(read)
			if diff := cmp.Diff(c.read, read); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(describe(fresh(filesOf(texts), Scope{})), describe(after)); diff != "" {
				t.Errorf("read after an earlier tree, it differs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestATenantIsRefusedAsLongAsItsPolicyIsMissing, with its projects as they are.
func TestATenantIsRefusedAsLongAsItsPolicyIsMissing(t *testing.T) {
	texts := withPolicies()
	sound := fresh(filesOf(texts), Scope{})
	strict := texts["policies/strict.yaml"]
	delete(texts, "policies/strict.yaml")
	refused := shared.Read(filesOf(texts), Scope{}, sound)
	acme, _ := refused.Find(identity.Ref{Tenant: "acme"})
	if acme.Declared() || len(acme.Problems()) != 1 || acme.Problems()[0].Of != (identity.Ref{Tenant: "acme"}) {
		t.Errorf("it is declared: %t, with %v", acme.Declared(), acme.Problems())
	}
	if web, _ := refused.Find(identity.Ref{Tenant: "acme", Project: "web"}); !web.Declared() {
		t.Error("its project is refused, too")
	}
	if rival, _ := refused.Find(identity.Ref{Tenant: "rival"}); !rival.Declared() {
		t.Error("another tenant is refused, too")
	}
	again := shared.Read(filesOf(texts), Scope{}, refused)
	if changed := changes(refused, again); len(changed) > 0 {
		t.Errorf("nothing changed, and yet: %v", changed)
	}
	texts["policies/strict.yaml"] = strict
	mended := shared.Read(filesOf(texts), Scope{}, again)
	if diff := cmp.Diff([]string{"strict", "acme"}, changes(again, mended)); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(describe(sound), describe(mended)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAPolicyIsNotLostWhileItsFileOrFolderCannotBeRead: then the commit does not say that there is none.
func TestAPolicyIsNotLostWhileItsFileOrFolderCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct {
		change        func(repository) Files
		there, covers bool
	}{
		"it is there":           {func(r repository) Files { return r }, true, true},
		"it is gone":            {func(r repository) Files { delete(r, "policies/baseline.yaml"); return r }, false, true},
		"it is a link":          {func(r repository) Files { r["policies/baseline.yaml"] = link("strict.yaml"); return r }, true, true},
		"it has another ending": {func(r repository) Files { rename(r, "policies/baseline.yaml", "policies/baseline.yml"); return r }, true, true},
		"the folder is gone": {func(r repository) Files {
			delete(r, "policies/baseline.yaml")
			delete(r, "policies/strict.yaml")
			return r
		}, false, true},
		"the folder is a link": {func(r repository) Files {
			delete(r, "policies/baseline.yaml")
			delete(r, "policies/strict.yaml")
			r["policies"] = link("elsewhere")
			return r
		}, false, false},
		"the store has the folder not": {func(r repository) Files { return &failing{r, "policies"} }, false, false},
		"no layout":                    {func(r repository) Files { delete(r, "kubeop.yaml"); return r }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			tree := fresh(c.change(filesOf(withPolicies())), Scope{})
			if file, err := tree.Unread(); (err != nil) != (name == "the store has the folder not") || err != nil && file != "policies" {
				t.Errorf("unread is %q, %v", file, err)
			}
			if _, there := tree.Find(baseline); there != c.there || tree.Covers(baseline) != c.covers {
				t.Errorf("there %t, covered %t, want %t and %t", there, tree.Covers(baseline), c.there, c.covers)
			}
			acme, there := tree.Find(identity.Ref{Tenant: "acme"})
			if refused := there && !acme.Declared(); refused != (name == "the folder is gone") {
				t.Errorf("the tenant is refused: %t", refused)
			}
		})
	}
}

func link(to string) *fstest.MapFile { return &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte(to)} }

func rename(r repository, from, to string) {
	r[to] = r[from]
	delete(r, from)
}

// TestPoliciesHaveALimitOfTheirOwn, so that they take no memory without end, and nothing from the tenants.
func TestPoliciesHaveALimitOfTheirOwn(t *testing.T) {
	files := filesOf(withPolicies())
	long := declaration("Policy", "large", "{}") + "# " + strings.Repeat("x", 3000) + "\n"
	files["policies/large.yaml"] = text(strings.Replace(long, "metadata: {", "metadata: {annotations: {note: "+strings.Repeat("y", 30_000)+"}, ", 1))
	tree := bounded(20_000).Read(files, Scope{}, nil)
	found := problems(tree)
	if len(found) == 0 || found[0].File != "policies/large.yaml" || !strings.Contains(found[0].Why, "the files of policies/ take too much") {
		t.Errorf("problems: %v", found)
	}
	if large, there := tree.Find(identity.Ref{Policy: "large"}); !there || large.Declared() {
		t.Error("the policy over the limit is declared, or lost")
	}
	for _, ref := range []identity.Ref{baseline, {Tenant: "acme", Project: "web"}} {
		if node, there := tree.Find(ref); !there || !node.Declared() {
			t.Errorf("%s is not declared", ref)
		}
	}
}

func TestAMovedPolicyIsFound(t *testing.T) {
	for file, want := range map[string]string{"policies/baseline.yaml": "", "policies/old/baseline.yaml": "policies/old/baseline.yaml", "tenants/acme/policy.yaml": "tenants/acme/policy.yaml"} {
		files := filesOf(withPolicies())
		rename(files, "policies/baseline.yaml", file)
		if got := fresh(files, Scope{}).Misplaced(); got != want {
			t.Errorf("%s: found %q, want %q", file, got, want)
		}
	}
	files := filesOf(withPolicies())
	files["a.yaml"] = text("a: b\n")
	rename(files, "policies/baseline.yaml", "policies/old/baseline.yaml")
	if got := fresh(files, Scope{}).Misplaced(); got != "policies/old/baseline.yaml" {
		t.Errorf("after another problem found %q", got)
	}
	own := repository{"kubeop.yaml": text("layout: v1\n"), "policies/kyverno.yaml": text("a: b\n")}
	if got := fresh(own, Scope{Tenant: "acme"}).Misplaced(); got != "" {
		t.Errorf("%s of a tenant's repository is taken for a moved policy", got)
	}
}
