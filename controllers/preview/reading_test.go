package preview

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/signature"
	"github.com/kubeop/kubeop/gitops/tree"
)

// web returns the app web of a preview, as the tree declares it.
func (f *fixture) web(name string) *v1alpha1.App {
	f.t.Helper()
	var found *v1alpha1.App
	f.before.Walk(func(n tree.Node) bool {
		if ref := n.Ref(); n.Declared() && ref.Project == name && ref.App == "web" {
			found = f.before.Object(n, "main@sha1:c0ffee").(*v1alpha1.App)
		}
		return true
	})
	if found == nil {
		f.t.Fatalf("there is no app web in %s", name)
	}
	return found
}

// TestAPreviewHasHostsOfItsOwn: with those of the project, its traffic would go to the preview.
func TestAPreviewHasHostsOfItsOwn(t *testing.T) {
	const hosted = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: web}\n" +
		"spec: {type: Image, host: web.example.com, image: {reference: \"registry.example.com/web:a\", ports: [{name: http, port: 80}]}}\n"
	f := newFixture(t)
	f.branch("f-a", hosted)
	f.has(f.read(), "shop-pr-f-a")
	if host := f.web("shop-pr-f-a").Spec.Host; host != "" {
		t.Errorf("without spec.previews.host, the preview has the host %s", host)
	}
	f.repo.Write("projects/shop/project.yaml", strings.Replace(project, "max: 2", "max: 2, host: \"{branch}-{host}\"", 1))
	f.repo.Push("hosts")
	f.has(f.read(), "shop-pr-f-a")
	if host := f.web("shop-pr-f-a").Spec.Host; host != "f-a-web.example.com" {
		t.Errorf("the host of the preview is %q", host)
	}
}

// TestTheStatusSaysWhichHostsBecomeOne: a pattern without {host} gives all hosts of a preview the same name.
func TestTheStatusSaysWhichHostsBecomeOne(t *testing.T) {
	const hosted = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: web}\n" +
		"spec: {type: Image, hosts: [{host: a.example.com}, {host: b.example.com}], image: {reference: \"registry.example.com/web:a\", ports: [{name: http, port: 80}]}}\n"
	f := newFixture(t)
	f.branch("f-a", hosted)
	for pattern, want := range map[string]string{
		"{branch}.example.com": `app web has f-a.example.com twice, because spec.previews.host in project.yaml makes one host of all: write {host} into it in Git, such as "{branch}-{host}"`,
		"{branch}-{host}":      "",
	} {
		f.repo.Write("projects/shop/project.yaml", strings.Replace(project, "max: 2", fmt.Sprintf("max: 2, host: %q", pattern), 1))
		f.repo.Push(pattern)
		result := f.read()
		f.has(result, "shop-pr-f-a")
		if got := said(result, "f-a"); got != want {
			t.Errorf("%s: the status says %q, want %q", pattern, got, want)
		}
	}
}

// TestAPreviewStaysWhoseBranchCannotBeFetched, with its earlier apps, while the branches are known.
func TestAPreviewStaysWhoseBranchCannotBeFetched(t *testing.T) {
	f := newFixture(t, running("shop-pr-f-a"))
	f.branch("f-a", fmt.Sprintf(app, "a"))
	f.has(f.read(), "shop-pr-f-a")
	f.branch("f-a", fmt.Sprintf(app, "b"))
	f.server.Set(func() {
		f.server.Wrap = func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if r.Method == http.MethodPost {
				http.Error(w, "away", http.StatusServiceUnavailable)
			}
			return r.Method == http.MethodPost
		}
	})
	result := f.read()
	f.has(result, "shop-pr-f-a")
	if got := f.web("shop-pr-f-a").Spec.Image.Reference; got != "registry.example.com/web:a" {
		t.Errorf("the image is %s", got)
	}
	if said(result, "f-a") == "" || !result.Keep(running("shop-pr-f-a")) {
		t.Errorf("the status says %q, and the preview is kept after a restart: %t", said(result, "f-a"), result.Keep(running("shop-pr-f-a")))
	}
}

// TestOnlyTheFirstProblemOfAPreviewIsReported, and how many more there are.
func TestOnlyTheFirstProblemOfAPreviewIsReported(t *testing.T) {
	for want, lines := range map[string][]string{"a": {"a"}, "a (and 1 more)": {"a", "b"}, "a (and 2 more)": {"a", "b", "c"}} {
		if got := first(lines); got != want {
			t.Errorf("%v: got %q, want %q", lines, got, want)
		}
	}
}

// TestProblemsInTheClusterAreAddedToTheStatus of the preview that has them.
func TestProblemsInTheClusterAreAddedToTheStatus(t *testing.T) {
	statuses := []v1alpha1.PreviewStatus{{Project: "a"}, {Project: "b", Message: "old"}, {Project: "c", Message: "old"}}
	got := With(statuses, map[string][]string{"a": {"no rights"}, "b": {"no rights", "no quota"}})
	for i, want := range []string{"no rights", "old; no rights (and 1 more)", "old"} {
		if got[i].Message != want {
			t.Errorf("%s: got %q, want %q", got[i].Project, got[i].Message, want)
		}
	}
	if statuses[0].Message != "" {
		t.Error("the given statuses are changed")
	}
}

// TestABranchWithoutTheProjectHasNoPreview: one that ran goes, and the status says why.
func TestABranchWithoutTheProjectHasNoPreview(t *testing.T) {
	f := newFixture(t)
	f.branch("f-a", fmt.Sprintf(app, "a"))
	f.has(f.read(), "shop-pr-f-a")
	f.repo.Git("checkout", "--quiet", "f-a")
	f.repo.Git("rm", "--quiet", "-r", "projects/shop")
	f.repo.Push("f-a without the project")
	f.repo.Git("checkout", "--quiet", "main")
	result := f.read()
	f.has(result)
	if got := said(result, "f-a"); got != "the branch has no folder projects/shop" || result.Keep(running("shop-pr-f-a")) {
		t.Errorf("the status says %q, and the preview is kept: %t", got, result.Keep(running("shop-pr-f-a")))
	}
}

// TestTheStatusListsOnlySomePreviews, however many branches match.
func TestTheStatusListsOnlySomePreviews(t *testing.T) {
	f := newFixture(t)
	push := []string{"push", "--quiet", "origin"}
	for i := range maxReported + 5 {
		push = append(push, fmt.Sprintf("main:refs/heads/f-%d", i))
	}
	f.repo.Git(push...)
	if result := f.read(); len(result.Status) != maxReported {
		t.Errorf("the status lists %d branches", len(result.Status))
	}
}

// TestABranchThatIsNotSignedHasNoPreview once signatures are required, also if its commit was fetched before. One that runs stays as it was.
func TestABranchThatIsNotSignedHasNoPreview(t *testing.T) {
	f := newFixture(t, running("shop-pr-f-a"))
	f.branch("f-a", fmt.Sprintf(app, "a"))
	f.has(f.read(), "shop-pr-f-a")
	f.signers = &signature.Verification{}
	result := f.read()
	f.has(result, "shop-pr-f-a")
	if got := said(result, "f-a"); !strings.HasPrefix(got, "commit ") || !result.Keep(running("shop-pr-f-a")) {
		t.Errorf("the status says %q", got)
	}
	f.restart()
	result = f.read()
	f.has(result)
	if got := said(result, "f-a"); !strings.HasPrefix(got, "commit ") {
		t.Errorf("after a restart, the status says %q", got)
	}
}

// TestADeclaredProjectIsNoPreview, even if it has the name of one that is kept.
func TestADeclaredProjectIsNoPreview(t *testing.T) {
	f := newFixture(t)
	f.branch("f-a", fmt.Sprintf(app, "a"))
	f.has(f.read(), "shop-pr-f-a")
	f.repo.Write("projects/shop/project.yaml", "kind: nothing\n")
	f.repo.Write("projects/shop-pr-f-a/project.yaml", strings.ReplaceAll(strings.Split(project, "spec:")[0], "shop", "shop-pr-f-a"))
	f.repo.Push("a project of the name")
	f.has(f.read())
}
