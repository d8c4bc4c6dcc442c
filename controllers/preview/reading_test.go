package preview

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
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
