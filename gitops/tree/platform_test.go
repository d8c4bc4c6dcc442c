package tree

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/gitops/identity"
)

// platformReader reads the projects of the platform itself, too.
func platformReader() *Reader {
	r := *shared
	r.Platform = true
	return &r
}

func text(content string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(content)} }

// platformFiles is a platform repository with a tenant, and a project of the platform with one app.
func platformFiles() repository {
	return repository{
		"kubeop.yaml":                   text("layout: v1\n"),
		"tenants/acme/tenant.yaml":      text("apiVersion: paas.kubeop.io/v1alpha1\nkind: Tenant\nmetadata: {name: acme}\n"),
		"platform/ingress/project.yaml": text("apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: ingress}\n"),
		"platform/ingress/apps/nginx/app.yaml": text("apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: nginx}\n" +
			"spec: {type: Raw, raw: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}}\n"),
	}
}

var platformScope = Scope{Repository: "platform"}

func refs(t *Tree) (all []string) {
	t.Walk(func(n Node) bool {
		all = append(all, n.Ref().String())
		return true
	})
	return all
}

func TestTheProjectsOfThePlatformAreReadFromItsFolder(t *testing.T) {
	tree := platformReader().Read(platformFiles(), platformScope, nil)
	if found := problems(tree); len(found) > 0 {
		t.Fatalf("problems: %v", found)
	}
	want := []string{"Tenant acme", "Project kubeop-platform/ingress", "App ingress/nginx"}
	if diff := cmp.Diff(want, refs(tree)); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	if _, there := tree.Find(identity.Ref{Tenant: "platform"}); there {
		t.Error("a Tenant named platform is declared")
	}
	if got := tree.Counts(); got.Tenants != 1 || got.Projects != 1 || got.Apps != 1 {
		t.Errorf("counted %+v", got)
	}
}

func TestWithoutPlatformAppsNothingIsReadFromTheFolder(t *testing.T) {
	tree := shared.Read(platformFiles(), platformScope, nil)
	if diff := cmp.Diff([]string{"Tenant acme"}, refs(tree)); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	if len(tree.Strays) != 2 || !strings.Contains(tree.Strays[0].Why, "as platformApps of the values of kubeop's chart") {
		t.Errorf("strays: %v, want both files of the folder, and how to turn platform apps on", tree.Strays)
	}
	if tree.Covers(identity.Ref{Tenant: "platform", Project: "ingress"}) {
		t.Error("platform apps that are turned off count as removed")
	}
}

func TestATenantsRepositoryDeclaresNothingOfThePlatform(t *testing.T) {
	files := platformFiles()
	delete(files, "tenants/acme/tenant.yaml")
	tree := platformReader().Read(files, Scope{Repository: "acme", Tenant: "acme"}, nil)
	if all := refs(tree); len(all) > 0 {
		t.Errorf("read %v", all)
	}
	if len(tree.Strays) != 2 {
		t.Errorf("strays: %v, want both files of the folder", tree.Strays)
	}
}

func TestThePlatformIsNoTenant(t *testing.T) {
	files := platformFiles()
	files["tenants/platform/tenant.yaml"] = text("apiVersion: paas.kubeop.io/v1alpha1\nkind: Tenant\nmetadata: {name: platform}\n")
	files["tenants/platform/projects/shop/project.yaml"] = text("apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: shop}\n")
	tree := platformReader().Read(files, platformScope, nil)
	var got []string
	for _, p := range problems(tree) {
		got = append(got, p.String())
	}
	want := []string{
		"tenants/platform/projects/shop/project.yaml: nothing is read from here; a Project belongs in platform/<project>/project.yaml [misplaced-file]",
		"tenants/platform/tenant.yaml: nothing is read from here; the platform itself is no tenant: its projects belong in platform/<project>/project.yaml, without a tenant.yaml [misplaced-file]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if slices.Contains(refs(tree), "Project kubeop-platform/shop") {
		t.Error("a project of a tenant became the platform's")
	}
}

func TestOnlyWhatChangedOfThePlatformIsReported(t *testing.T) {
	reader := platformReader()
	before := reader.Read(platformFiles(), platformScope, nil)
	same := reader.Read(platformFiles(), platformScope, before)
	changes := func(a, b *Tree) (all []string) {
		Changes(a, b, func(ref identity.Ref) { all = append(all, ref.String()) })
		return all
	}
	if got := changes(before, same); len(got) > 0 {
		t.Errorf("the same commit changed %v", got)
	}
	files := platformFiles()
	delete(files, "platform/ingress/apps/nginx/app.yaml")
	less := reader.Read(files, platformScope, before)
	if diff := cmp.Diff([]string{"App ingress/nginx"}, changes(before, less)); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	delete(files, "platform/ingress/project.yaml")
	none := reader.Read(files, platformScope, less)
	if diff := cmp.Diff([]string{"Project kubeop-platform/ingress"}, changes(less, none)); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	if !none.Covers(identity.Ref{Tenant: "platform", Project: "ingress"}) {
		t.Error("the tree does not say that the project is gone")
	}
}

func TestAnUnusableFolderOfThePlatformSaysNothingOfItsProjects(t *testing.T) {
	files := platformFiles()
	delete(files, "platform/ingress/project.yaml")
	delete(files, "platform/ingress/apps/nginx/app.yaml")
	files["platform"] = &fstest.MapFile{Data: []byte("elsewhere"), Mode: fs.ModeSymlink}
	tree := platformReader().Read(files, platformScope, nil)
	if tree.Covers(identity.Ref{Tenant: "platform", Project: "ingress"}) {
		t.Error("a symlink in the place of the folder counts as the removal of its projects")
	}
	if !tree.Covers(identity.Ref{Tenant: "acme", Project: "shop"}) {
		t.Error("it holds up the tenants")
	}
}
