package migrate

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/exit"
	"github.com/kubeop/kubeop/cmd/kubeop/output"
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

// TestAChartOfAnArtifactHasTheVersionThatFluxInstalls: the range if there is one, otherwise the tag.
func TestAChartOfAnArtifactHasTheVersionThatFluxInstalls(t *testing.T) {
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

// TestAnImportDoesNotWakeWhatIsSuspended: the release itself, or its source.
func TestAnImportDoesNotWakeWhatIsSuspended(t *testing.T) {
	suspended := strings.Replace(charts, "spec: {", "spec: {suspend: true, ", 1)
	for name, tc := range map[string]struct {
		file string
		want bool
	}{
		"neither":     {release + charts, false},
		"the release": {release + "  suspend: true\n" + charts, true},
		"its source":  {release + suspended, true},
	} {
		app, report := imported(t, tc.file)
		if app.Spec.Suspend != tc.want || strings.Contains(report, "the app is written as suspended") != tc.want {
			t.Errorf("%s: suspended is %t\n%s", name, app.Spec.Suspend, report)
		}
	}
}

// TestFieldsOfAReleaseKeepTheDefaultsOfFlux: those whose default or limit differs from kubeop's.
func TestFieldsOfAReleaseKeepTheDefaultsOfFlux(t *testing.T) {
	const disabled = "{disableHooks: true, disableWait: true, disableWaitForJobs: true, disableOpenAPIValidation: true, disableSchemaValidation: true}"
	usual := v1alpha1.HelmAction{CRDs: v1alpha1.CRDsCreate, TakeOwnership: true}
	less := usual
	less.DisableHooks, less.DisableWait, less.DisableWaitForJobs, less.DisableOpenAPIValidation, less.DisableSchemaValidation = true, true, true, true, true
	for name, tc := range map[string]struct {
		spec string
		want func(*v1alpha1.AppSpec) bool
	}{
		"nothing": {"", func(s *v1alpha1.AppSpec) bool {
			return s.Helm.Install.TakeOwnership && s.Helm.Upgrade.TakeOwnership && s.Helm.Upgrade.CRDs == "Create" && s.Helm.Remediation.Strategy == "" && s.Drift.Mode == ""
		}},
		"no ownership": {"  install: {disableTakeOwnership: true}\n", func(s *v1alpha1.AppSpec) bool { return !s.Helm.Install.TakeOwnership && s.Helm.Upgrade.TakeOwnership }},
		"retries": {"  upgrade: {remediation: {retries: 3, strategy: uninstall}}\n", func(s *v1alpha1.AppSpec) bool {
			return *s.Helm.Remediation.Retries == 3 && s.Helm.Remediation.Strategy == "Uninstall"
		}},
		"as many as possible":    {"  upgrade: {remediation: {retries: 10}}\n", func(s *v1alpha1.AppSpec) bool { return *s.Helm.Remediation.Retries == 10 }},
		"too many retries":       {"  upgrade: {remediation: {retries: 11}}\n", func(s *v1alpha1.AppSpec) bool { return *s.Helm.Remediation.Retries == 10 }},
		"the last failure stays": {"  upgrade: {remediation: {strategy: rollback, remediateLastFailure: false}}\n", func(s *v1alpha1.AppSpec) bool { return s.Helm.Remediation.Strategy == "None" }},
		"drift":                  {"  driftDetection: {mode: warn}\n", func(s *v1alpha1.AppSpec) bool { return s.Drift.Mode == v1alpha1.DriftWarn }},
		"drift corrected":        {"  driftDetection: {mode: enabled}\n", func(s *v1alpha1.AppSpec) bool { return s.Drift.Mode == v1alpha1.DriftCorrect }},
		"a plain install": {"  install: " + disabled + "\n", func(s *v1alpha1.AppSpec) bool {
			return s.Helm.Install.HelmAction == less && s.Helm.Upgrade.HelmAction == usual
		}},
		"a plain upgrade": {"  upgrade: " + disabled + "\n", func(s *v1alpha1.AppSpec) bool {
			return s.Helm.Install.HelmAction == usual && s.Helm.Upgrade.HelmAction == less
		}},
		"no drift": {"  driftDetection: {mode: disabled}\n", func(s *v1alpha1.AppSpec) bool { return s.Drift.Mode == v1alpha1.DriftOff }},
	} {
		if app, report := imported(t, release+tc.spec+charts); !tc.want(&app.Spec) {
			t.Errorf("%s: got %+v\n%s", name, app.Spec.Helm.HelmActions, report)
		}
	}
}

// TestOnlyANameWithADigestIsGenerated: a name without a hash suffix is an object of its own, which is written as it is.
func TestOnlyANameWithADigestIsGenerated(t *testing.T) {
	held := func(kind, name string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"kind": kind}}
		o.SetName(name)
		return o
	}
	of := &object{parent: &object{held: []*unstructured.Unstructured{held("ConfigMap", "settings-2kbm9h7ftd"), held("ConfigMap", "plain"), held("Secret", "keys-2kbm9h7ftd")}}}
	for name, want := range map[string]bool{"settings-2kbm9h7ftd": true, "plain": false, "keys-2kbm9h7ftd": false, "other-2kbm9h7ftd": false} {
		if got := of.generated("ConfigMap", name); got != want {
			t.Errorf("%s: got %t, want %t", name, got, want)
		}
	}
	if (&object{}).generated("ConfigMap", "settings-2kbm9h7ftd") {
		t.Error("an object without a parent has generated ones")
	}
}

// TestAReportThatCannotBeWrittenIsAFailure: a script that stores it must not take half of it for the list of what was left out.
func TestAReportThatCannotBeWrittenIsAFailure(t *testing.T) {
	for _, format := range []output.Format{output.Table, output.JSON, output.YAML} {
		printReport := func(w io.Writer, leftOut ...Entry) error {
			o := &options{Call: &call.Call{Out: w, Data: w}, format: format}
			return o.printReport(&Report{Written: []string{"kubeop.yaml"}, LeftOut: leftOut})
		}
		if err := printReport(io.Discard); err != nil {
			t.Errorf("%s: all was imported: %v", format, err)
		}
		if err := printReport(io.Discard, Entry{Object: "a", Do: "b"}); exit.Code(err) != exit.Differences || !strings.Contains(err.Error(), "Left out has 1 line") {
			t.Errorf("%s: something was left out: %v", format, err)
		}
		from, full := io.Pipe()
		if err := from.CloseWithError(syscall.ENOSPC); err != nil {
			t.Fatal(err)
		}
		if err := printReport(full, Entry{Object: "a", Do: "b"}); !errors.Is(err, syscall.ENOSPC) || exit.Code(err) == exit.Differences {
			t.Errorf("%s: there is no space for the report: %v", format, err)
		}
	}
}
