package migrate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// imported imports a file of Flux into the project shop, and returns the App web and the report.
func imported(t *testing.T, file string) (*v1alpha1.App, string) {
	t.Helper()
	folder, out := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "a.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	report, err := run(t, "flux", folder, "--tenant", "acme", "--project", "shop", "--out", out)
	text, unread := os.ReadFile(filepath.Join(out, "projects", "shop", "apps", "web", "app.yaml"))
	if unread != nil {
		t.Fatalf("%v, %v\n%s", unread, err, report)
	}
	app := &v1alpha1.App{}
	if err := yaml.UnmarshalStrict(text, app); err != nil {
		t.Fatal(err)
	}
	return app, report
}

// TestAnImportKeepsTheCheckOfSignatures: an app that Flux delivers only from signed commits is not delivered from others by kubeop.
func TestAnImportKeepsTheCheckOfSignatures(t *testing.T) {
	const kustomization = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: web, namespace: shop}\n" +
		"spec: {path: ./, prune: true, sourceRef: {kind: GitRepository, name: code}}\n"
	const repository = "---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: code, namespace: shop}\nspec:\n  url: \"https://git.example.com/code.git\"\n"
	for mode, want := range map[string]string{"HEAD": "HEAD", "head": "HEAD", "Tag": "Tag", "TagAndHEAD": "TagAndHEAD"} {
		app, report := imported(t, kustomization+repository+"  verify: {mode: "+mode+", secretRef: {name: keys}}\n")
		got := app.Spec.Git.Verify
		if got == nil || string(got.Mode) != want || got.SecretRef.Name != "keys" || strings.Contains(report, "spec.verify") {
			t.Errorf("mode %s: got %+v\n%s", mode, got, report)
		}
	}
	app, report := imported(t, kustomization+repository)
	if app.Spec.Git.Verify != nil || strings.Contains(report, "spec.verify") {
		t.Errorf("without verify: got %+v\n%s", app.Spec.Git.Verify, report)
	}
	const chart = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web, namespace: shop}\n" +
		"spec: {interval: 5m, chart: {spec: {chart: ./web, sourceRef: {kind: GitRepository, name: code}}}}\n"
	_, report = imported(t, chart+repository+"  verify: {mode: HEAD, secretRef: {name: keys}}\n")
	if want := "GitRepository shop/code spec.verify: kubeop verifies no commits of charts"; !strings.Contains(report, want) {
		t.Errorf("a chart:\n%s\nwant: %s", report, want)
	}
}

// TestAChartOfAnArtifact has the version that Flux installs: the range if there is one, otherwise the tag.
func TestAChartOfAnArtifact(t *testing.T) {
	const chart = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web, namespace: shop}\n" +
		"spec: {interval: 5m, chartRef: {kind: OCIRepository, name: chart}}\n" +
		"---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: chart, namespace: shop}\nspec:\n  url: \"oci://registry.example.com/charts/web\"\n"
	for name, tc := range map[string]struct{ ref, version, leftOut string }{
		"a tag":                {"{tag: 1.2.3}", "1.2.3", ""},
		"a range":              {"{semver: 1.x}", "1.x", ""},
		"a range beside a tag": {"{tag: 1.2.3, semver: 1.x}", "1.x", ""},
		"a digest":             {"{digest: \"sha256:aa\"}", "", "write helm.version, or the newest version is installed"},
		"a digest and a tag":   {"{tag: 1.2.3, digest: \"sha256:aa\"}", "1.2.3", "it is the digest of the manifest"},
	} {
		app, report := imported(t, chart+"  ref: "+tc.ref+"\n")
		got := app.Spec.Helm
		if diff := cmp.Diff([]string{"oci://registry.example.com/charts", "web", tc.version, ""}, []string{got.Repository, got.Chart, got.Version, got.Digest}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if tc.leftOut != "" && !strings.Contains(report, tc.leftOut) || tc.leftOut == "" && strings.Contains(report, "spec.ref") {
			t.Errorf("%s:\n%s", name, report)
		}
		if tc.version != "" && strings.Contains(report, "or the newest version is installed") {
			t.Errorf("%s: the newest version is not what is installed:\n%s", name, report)
		}
	}
}
