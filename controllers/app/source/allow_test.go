package source

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// ruled are the rules of one policy about sources.
func ruled(action v1alpha1.PolicyAction, rules v1alpha1.SourceRules) *v1alpha1.GuardrailsSpec {
	rules.Action = action
	spec := guardrails.Of([]v1alpha1.Policy{{ObjectMeta: metav1.ObjectMeta{Name: "from"}, Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{Sources: &rules}}}})
	return &spec
}

// remedy ends the refusal by a field of that policy.
const remedy = "; change that in Git, or ask an administrator of the cluster to change spec.%s of policies/from.yaml in the platform repository"

// TestASourceThatAPolicyDeniesIsNotFetched, also for an App that was delivered from it: it stays as it is, and is not ready.
func TestASourceThatAPolicyDeniesIsNotFetched(t *testing.T) {
	_, server, first := pushed(t, map[string]string{"a.yaml": "1"})
	w := newWorld(t)
	app := appOf("web", v1alpha1.AppSpec{Type: v1alpha1.AppGit, Git: &v1alpha1.GitSource{URL: server.RepoURL()}})
	w.guardrails = ruled(v1alpha1.WarnAction, v1alpha1.SourceRules{Git: &v1alpha1.URLPatterns{Allow: []string{"git.example.com"}}})
	found, end := w.fetch(app)
	if end != "done" || found.Revision != first || len(found.Broken) != 1 || found.Broken[0].Action != v1alpha1.WarnAction || found.Broken[0].Object != "App/web" {
		t.Errorf("with a warning: %s at %s, %v", end, found.Revision, found.Broken)
	}
	for name, delivered := range map[string]bool{"a new app": false, "an app that was delivered": true} {
		app := app.DeepCopy()
		if delivered {
			app.Status.LastAppliedRevision = first
			app.Status.AppliedGeneration = &app.Generation
		}
		w.guardrails = ruled(v1alpha1.DenyAction, v1alpha1.SourceRules{Git: &v1alpha1.URLPatterns{Allow: []string{"git.example.com"}}})
		found, end := w.fetch(app)
		want := fmt.Sprintf("stopped NotAllowed: App/web is fetched from %s, which is not among the allowed sources: git.example.com"+remedy, server.RepoURL(), "sources.git.allow")
		if end != want || found.Kept || found.Files.FS != nil || len(found.Broken) != 1 {
			t.Errorf("%s:\ngot  %s with %v\nwant %s", name, end, found.Broken, want)
		}
	}
	server.Close() // Nothing listens there: the refusal needs no request.
	if _, end := w.fetch(appOf("other", *app.Spec.DeepCopy())); !strings.HasPrefix(end, "stopped NotAllowed: App/other is fetched from ") {
		t.Error(end)
	}
}

// TestADependencyThatAPolicyDeniesIsNotFetched: the repository is not asked. A warning names it once.
func TestADependencyThatAPolicyDeniesIsNotFetched(t *testing.T) {
	helm := sources.ServeHelm(t)
	helm.Publish(t, "1.0.0")
	_, server, _ := pushed(t, map[string]string{"Chart.yaml": chartYAML + fmt.Sprintf("dependencies:\n- {name: web, version: 1.0.0, repository: %q}\n", helm.URL+"/stable")})
	w := newWorld(t)
	app := appOf("shop", v1alpha1.AppSpec{Type: v1alpha1.AppHelm, Helm: &v1alpha1.HelmSource{Git: &v1alpha1.ChartGitSource{URL: server.RepoURL()}}})
	only := v1alpha1.SourceRules{Helm: &v1alpha1.URLPatterns{Allow: []string{"charts.example.com"}}}
	helm.Requests()
	w.guardrails = ruled(v1alpha1.DenyAction, only)
	_, end := w.fetch(app)
	want := fmt.Sprintf("stopped NotAllowed: reading the chart's dependencies: .: dependency web: Chart/web is fetched from %s/stable, "+
		"which is not among the allowed sources: charts.example.com"+remedy, helm.URL, "sources.helm.allow")
	if asked := helm.Requests(); end != want || asked != "" {
		t.Errorf("got  %s after %q\nwant %s", end, asked, want)
	}
	w.guardrails = ruled(v1alpha1.WarnAction, only)
	for range 2 {
		if found, end := w.fetch(app); end != "done" || len(found.Broken) != 1 || found.Broken[0].Object != "Chart/web" {
			t.Errorf("with a warning: %s, %v", end, found.Broken)
		}
	}
	w.guardrails = ruled(v1alpha1.DenyAction, only)
	if _, end := w.fetch(app); end != want {
		t.Errorf("after it was fetched: %s", end)
	}
}

// TestAFluxSourceThatAPolicyDeniesIsNotUsed, also if its artifact was fetched before the policy.
func TestAFluxSourceThatAPolicyDeniesIsNotUsed(t *testing.T) {
	archive := sources.TarGz(t, sources.Entry{Name: "a.yaml", Text: "1"})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) }))
	t.Cleanup(server.Close)
	source := fluxSource(map[string]any{"artifact": map[string]any{
		"url": server.URL + "/gitrepository/ns/web/a.tar.gz", "revision": "main@sha1:1", "digest": sources.DigestOf(archive), "path": "p", "lastUpdateTime": "2026-01-01T00:00:00Z",
	}})
	source.Object["spec"] = map[string]any{"url": "https://evil.org/web"}
	w := newWorld(t, source)
	app := appOf("web", v1alpha1.AppSpec{Type: v1alpha1.AppGit, Git: &v1alpha1.GitSource{SourceRef: &v1alpha1.FluxSourceReference{Kind: "GitRepository", Name: "web"}}})
	if _, end := w.fetch(app); end != "done" {
		t.Fatal(end)
	}
	w.guardrails = ruled(v1alpha1.DenyAction, v1alpha1.SourceRules{Git: &v1alpha1.URLPatterns{Deny: []string{"evil.org"}}})
	want := fmt.Sprintf("stopped NotAllowed: GitRepository/web is fetched from https://evil.org/web, which is among the refused sources: evil.org"+remedy, "sources.git.deny")
	if _, end := w.fetch(app); end != want {
		t.Errorf("got  %s\nwant %s", end, want)
	}
	w.guardrails = ruled(v1alpha1.DenyAction, v1alpha1.SourceRules{Git: &v1alpha1.URLPatterns{Deny: []string{"evil.org/other"}}})
	if _, end := w.fetch(app); end != "done" {
		t.Errorf("under another policy: %s", end)
	}
	p := passOf(app)
	p.Client, p.Guardrails = w.api, w.guardrails
	if err := w.allowFlux(t.Context(), p, fluxKind, "none"); err == nil || !strings.HasPrefix(err.Error(), "reading GitRepository ns/none: ") {
		t.Errorf("a source that cannot be read: %v", err)
	}
}
