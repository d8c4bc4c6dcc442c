package tree

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/identity"
)

// shopFiles is a tenant's repository with the project shop and these other files.
func shopFiles(others ...string) repository {
	files := mainFiles()
	for _, name := range others {
		files[name] = text("a: b\n")
	}
	return files
}

func strayFiles(t *Tree) (files []string) {
	for _, p := range problems(t) {
		if p.Code == code.MisplacedFile {
			files = append(files, p.File)
		}
	}
	return files
}

// TestOnlyTheFolderAppsHasApps: every other folder of a project, and a file named apps, is reported as misplaced, with all below it.
func TestOnlyTheFolderAppsHasApps(t *testing.T) {
	files := shopFiles("projects/shop/dns/zone/www.yaml", "projects/shop/dns/zone/deep/app.yaml", "projects/shop/web/app.yaml")
	tree := fresh(files, ofTeam)
	if diff := cmp.Diff([]string{"projects/shop/dns/zone/deep/app.yaml", "projects/shop/dns/zone/www.yaml", "projects/shop/web/app.yaml"}, strayFiles(tree)); diff != "" {
		t.Errorf("misplaced (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Project kubeop-team/shop", "App kubeop-team-shop/web"}, refs(tree)); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	noApps := shopFiles("projects/shop/apps")
	delete(noApps, "projects/shop/apps/web/app.yaml")
	if got := fresh(noApps, ofTeam); len(problems(got)) != 0 || !got.Covers(identity.Ref{Tenant: "team", Project: "shop", App: "web"}) {
		t.Errorf("a file named apps: %v", problems(got))
	}
}

// TestSomeOfManyMisplacedFilesAreReported, by folder.
func TestSomeOfManyMisplacedFilesAreReported(t *testing.T) {
	files := mainFiles()
	for i := range maxStray + 5 {
		files[fmt.Sprintf("scripts/%03d.yaml", i)] = text("a: b\n")
	}
	for i := range 3 {
		files[fmt.Sprintf("other/%03d.yaml", i)] = text("a: b\n")
	}
	if got := strayFiles(fresh(files, ofTeam)); len(got) != maxStray+3 {
		t.Errorf("%d files are reported", len(got))
	}
}

// TestStrayFilesOfAPreviewAreReportedWithItsBranch.
func TestStrayFilesOfAPreviewAreReportedWithItsBranch(t *testing.T) {
	got := readPreview(t, shopFiles("projects/shop/dns/www.yaml", "projects/shop/foo.yaml"), previewOf("a", ""), nil)
	var files []string
	for _, p := range got.AllProblems() {
		if !strings.HasPrefix(p.Why, "in branch feature/a: ") {
			t.Errorf("%s", p)
		}
		files = append(files, p.File)
	}
	slices.Sort(files)
	if diff := cmp.Diff([]string{"projects/shop/dns/www.yaml", "projects/shop/foo.yaml"}, files); diff != "" {
		t.Errorf("misplaced (-want +got):\n%s", diff)
	}
}

// TestALinkInThePlaceOfATenantSaysNothingOfItsProjects: in the place of the platform, it is only reported.
func TestALinkInThePlaceOfATenantSaysNothingOfItsProjects(t *testing.T) {
	link := &fstest.MapFile{Data: []byte("elsewhere"), Mode: fs.ModeSymlink}
	files := platformFiles()
	delete(files, "tenants/acme/tenant.yaml")
	files["tenants/acme"], files["tenants/platform"] = link, link
	tree := platformReader().Read(files, platformScope, nil)
	var got []string
	for _, p := range problems(tree) {
		got = append(got, p.File+" holds "+p.Of.Path())
	}
	if diff := cmp.Diff([]string{"tenants/acme holds acme", "tenants/platform holds "}, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if tree.Covers(identity.Ref{Tenant: "acme", Project: "shop"}) {
		t.Error("a link in the place of the tenant's folder counts as the removal of its projects")
	}
	if ref := (identity.Ref{Tenant: "platform", Project: "ingress", App: "nginx"}); !tree.Covers(ref) || refs(tree)[len(refs(tree))-1] != "App ingress/nginx" {
		t.Errorf("read are %v", refs(tree))
	}
}

// TestTheFolderOfThePlatformHasItsOwnLimitOfEntries, and one that cannot be read says nothing of its projects.
func TestTheFolderOfThePlatformHasItsOwnLimitOfEntries(t *testing.T) {
	var folders []string
	platformReader().Read(limited{platformFiles(), "", &folders}, platformScope, nil)
	if !slices.Contains(folders, "platform") {
		t.Errorf("folders with their own limits are %v", folders)
	}
	tree := platformReader().Read(noFolder{platformFiles(), "platform"}, platformScope, nil)
	ref := identity.Ref{Tenant: "platform", Project: "ingress"}
	if file, err := tree.Unread(); err == nil || file != "platform" || tree.Covers(ref) {
		t.Errorf("unread is %q, %v; the removal is known: %t", file, err, tree.Covers(ref))
	}
}

// noFolder cannot open one folder.
type noFolder struct {
	Files
	path string
}

func (f noFolder) Sub(path string) (Files, error) {
	if path == f.path {
		return nil, fs.ErrPermission
	}
	return f.Files.Sub(path)
}

// TestATenantOrAppWhoseFolderCannotBeOpenedStaysAsItWas.
func TestATenantOrAppWhoseFolderCannotBeOpenedStaysAsItWas(t *testing.T) {
	for path, want := range map[string]string{"tenants/acme": "acme", "tenants/acme/projects/shop/apps/web": "acme/shop/web"} {
		tree := fresh(noFolder{filesOf(twoTenants()), path}, Scope{})
		found := problems(tree)
		if len(found) != 1 || found[0].Of.Path() != want || found[0].File != path || found[0].Err == nil {
			t.Errorf("%s: the problems are %v", path, found)
		}
	}
}

// tooLarge fails as a store does for a file that is too large.
type tooLarge struct {
	Files
	path string
}

func (f tooLarge) Open(name string) (fs.File, error) {
	if name == f.path {
		return nil, failure.New(failure.ErrTooLarge, "the file has 2 GiB")
	}
	return f.Files.Open(name)
}

func (f tooLarge) Sub(path string) (Files, error) { return sub{f, path}, nil }

// TestAFileThatIsTooLargeForTheStoreIsAProblemOfTheCommit: to read it again would not help.
func TestAFileThatIsTooLargeForTheStoreIsAProblemOfTheCommit(t *testing.T) {
	const path = "tenants/acme/projects/shop/project.yaml"
	found := problems(fresh(tooLarge{filesOf(twoTenants()), path}, Scope{}))
	if len(found) != 1 || found[0].Code != code.OverLimit || found[0].Err != nil || found[0].File != path || found[0].Why != "the file has 2 GiB" {
		t.Errorf("the problems are %+v", found)
	}
}

// TestAFileHasTheNextBestName: one with another extension or case is reported, and not taken for the file itself if that is there.
func TestAFileHasTheNextBestName(t *testing.T) {
	const other, right = "projects/shop/Project.yml", "projects/shop/project.yaml"
	files := shopFiles()
	files[other] = files[right]
	if got := fresh(files, ofTeam); len(problems(got)) != 1 || problems(got)[0].File != other || !got.Tenants[0].Projects[0].Declared() {
		t.Errorf("beside the file itself: %v", problems(got))
	}
	delete(files, right)
	if got := fresh(files, ofTeam); len(problems(got)) != 1 || problems(got)[0].Code != code.MisnamedFile || problems(got)[0].Of.Path() != "team/shop" {
		t.Errorf("alone: %v", problems(got))
	}
}

// known has the digests of entries, which then are not asked for.
type known struct {
	repository
	asked *int
}

func (k known) Sub(path string) (Files, error) { return sub{k, path}, nil }

func (k known) Digest(path string) (string, error) {
	*k.asked++
	return k.repository.Digest(path)
}

func (k known) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(fstest.MapFS(k.repository), name)
	for i, e := range entries {
		entries[i] = digested{e, fmt.Sprintf("digest of %s", e.Name())}
	}
	return entries, err
}

type digested struct {
	fs.DirEntry
	digest string
}

func (d digested) Digest() string { return d.digest }

func TestDigestsOfEntriesAreNotAskedForAgain(t *testing.T) {
	asked := 0
	tree := fresh(known{mainFiles(), &asked}, ofTeam)
	if node, _ := tree.Find(identity.Ref{Tenant: "team", Project: "shop", App: "web"}); asked != 0 || node.self().digest != "digest of web" {
		t.Errorf("asked %d times; the digest is %q", asked, node.self().digest)
	}
}

// TestProblemsAreReportedUntilTheCallerHasEnough, in the tenants, projects and apps.
func TestProblemsAreReportedUntilTheCallerHasEnough(t *testing.T) {
	files := filesOf(twoTenants())
	maps.DeleteFunc(files, func(name string, _ *fstest.MapFile) bool { return strings.HasPrefix(name, "tenants/rival/projects") })
	for _, name := range []string{"a.yaml", "tenants/acme/a.yaml", "tenants/acme/projects/shop/a.yaml", "tenants/rival/a.yaml"} {
		files[name] = text("a: b\n")
	}
	for _, app := range []string{"api", "web"} {
		files["tenants/acme/projects/shop/apps/"+app+"/app.yaml"] = text(declaration("App", app, "{type: Nonsense}"))
	}
	tree := fresh(files, Scope{})
	all := len(problems(tree))
	if all != 6 || tree.Counts().Problems != all {
		t.Fatalf("the problems are %v", problems(tree))
	}
	for most := 1; most <= all; most++ {
		calls := 0
		if tree.All(func(Problem) bool { calls++; return calls < most }); calls != most {
			t.Errorf("at most %d: called %d times", most, calls)
		}
	}
	if file, err := tree.Unread(); file != "" || err != nil {
		t.Errorf("everything could be read, and unread is %q, %v", file, err)
	}
}

// TestProjectsBeyondTheLimitAreNotRead: they do not count as removed.
func TestProjectsBeyondTheLimitAreNotRead(t *testing.T) {
	files := repository{"kubeop.yaml": text("layout: v1\n")}
	for i := range 300 {
		name := fmt.Sprintf("p%04d", i)
		files["projects/"+name+"/project.yaml"] = text(declaration("Project", name, "{}"))
	}
	tree := bounded(64<<10).Read(files, acme, nil)
	got := messages(tree)
	if i := slices.IndexFunc(got, func(m string) bool { return strings.Contains(m, "folders after it are not read: ") }); i < 0 || !tree.Tenants[0].Unknown {
		t.Errorf("nothing says that there are more: %v", got)
	}
	if n := tree.Counts().Projects; n == 0 || n >= 100 || tree.Covers(identity.Ref{Tenant: "acme", Project: "p0299"}) {
		t.Errorf("%d projects are declared, and one that was not read counts as removed", n)
	}
}

// TestOnlyProjectsOfPreviewsComeFromABranch.
func TestOnlyProjectsOfPreviewsComeFromABranch(t *testing.T) {
	main := fresh(mainFiles(), ofTeam)
	both := main.With([]*Project{readPreview(t, mainFiles(), previewOf("a", ""), nil)})
	for ref, want := range map[identity.Ref]bool{
		{Tenant: "team", Project: "shop-pr-a"}: true, {Tenant: "team", Project: "shop-pr-a", App: "web"}: true,
		{Tenant: "team", Project: "shop"}: false, {Tenant: "team"}: false, {Tenant: "team", Project: "none"}: false, {Tenant: "none", Project: "shop-pr-a"}: false,
	} {
		if got := both.OriginOf(ref); (got != nil) != want || want && got.Branch != "feature/a" {
			t.Errorf("%s comes from %+v", ref.Path(), got)
		}
	}
	platform := fresh(filesOf(twoTenants()), Scope{})
	if platform.With(both.Previews()) != platform {
		t.Error("the platform repository has previews")
	}
	broken := mainFiles()
	broken["projects/bad/project.yaml"] = text("kind: nothing\n")
	parents := fresh(broken, ofTeam).With(both.Previews()).Parents()
	if bad, there := parents["bad"]; len(parents) != 2 || !there || bad != nil || parents["shop"] == nil || parents["shop"].Name != "shop" {
		t.Errorf("the parents are %v", parents)
	}
}
