package migrate

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/exit"
	"github.com/kubeop/kubeop/cmd/kubeop/offline"
	"github.com/kubeop/kubeop/delivery/render/kustomize"
	"github.com/kubeop/kubeop/gitops/slug"
)

// clone copies a folder of testdata into a new repository of Git.
func clone(t *testing.T, from string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "fleet")
	if err := os.CopyFS(root, os.DirFS(filepath.Join("testdata", from))); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"remote", "add", "origin", "git@git.example.com:acme/fleet.git"}} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", root}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return root
}

// run runs import and returns what it prints.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	streams, _, stdout, _ := genericiooptions.NewTestIOStreams()
	c := call.New(streams, clocktesting.NewFakeClock(time.Now()))
	command := Import(c, offline.Problems)
	c.AddFlags(command.PersistentFlags())
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs(args)
	command.SetOut(io.Discard)
	err := command.ExecuteContext(t.Context())
	return stdout.String(), err
}

// everything returns the files of a folder as one text.
func everything(t *testing.T, folder string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		relative, _ := filepath.Rel(folder, name)
		all.WriteString("==> " + filepath.ToSlash(relative) + "\n" + string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// TestFluxBecomesAPlatform imports the folder of a cluster with tenants, overlays, values of ConfigMaps and Secrets, and a chart of a registry.
func TestFluxBecomesAPlatform(t *testing.T) {
	for name, tenant := range map[string]string{"platform": "platform", "tenant": "acme"} {
		t.Run(name, func(t *testing.T) {
			root, out := clone(t, "fleet"), t.TempDir()
			report, err := run(t, "flux", filepath.Join(root, "clusters", "production"), "--tenant", tenant, "--out", out)
			if exit.Code(err) != exit.Differences {
				t.Fatalf("got %v", err)
			}
			files := everything(t, out)
			golden(t, "fleet-"+name+".txt", strings.ReplaceAll(report, out, "OUT")+files)
			if strings.Contains(report, "written file") {
				t.Error("kubeop validate finds problems in what was written")
			}
			for _, secret := range []string{"hunter2", "s3cret"} {
				if strings.Contains(report+files, secret) {
					t.Errorf("the secret value %s was written", secret)
				}
			}
			again, err := run(t, "flux", filepath.Join(root, "clusters", "production"), "--tenant", tenant, "--out", out)
			if exit.Code(err) != exit.Differences || strings.Contains(again, "Wrote") || everything(t, out) != files {
				t.Errorf("a second time: %v\n%s", err, again)
			}
		})
	}
}

// TestImportedFoldersHoldTheirNamespaceOnly builds the Git apps that were made of the repository's own folders: none has an object of Flux, of
// another namespace, or a namespace itself.
func TestImportedFoldersHoldTheirNamespaceOnly(t *testing.T) {
	root, out := clone(t, "fleet"), t.TempDir()
	if _, err := run(t, "flux", filepath.Join(root, "clusters", "production"), "--tenant", "platform", "--out", out); exit.Code(err) != exit.Differences {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(out, "platform", "*", "apps", "*", "app.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	built := 0
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var app v1alpha1.App
		if err := yaml.UnmarshalStrict(text, &app); err != nil {
			t.Fatal(err)
		}
		if app.Spec.Git == nil || !strings.Contains(app.Spec.Git.URL, "fleet") {
			continue
		}
		objects, err := kustomize.BuildWith(os.DirFS(root), app.Spec.Git.Path, []string{app.Spec.Git.Path}, &app.Spec.Git.Build)
		if err != nil || len(objects) == 0 {
			t.Errorf("%s: %d objects, %v", name, len(objects), err)
		}
		namespace := filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(name))))
		for _, o := range objects {
			built++
			if strings.HasSuffix(o.GroupVersionKind().Group, fluxDomain) || o.GetKind() == "Namespace" || o.GetNamespace() != namespace && o.GetNamespace() != "" {
				t.Errorf("%s has %s %s/%s", name, o.GetKind(), o.GetNamespace(), o.GetName())
			}
		}
	}
	if built != 4 {
		t.Errorf("%d objects were built, want 4", built)
	}
}

const release = `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: shop}
spec:
  interval: 5m
  chart: {spec: {chart: web, version: 1.0.0, sourceRef: {kind: HelmRepository, name: charts}}}
`

const charts = `---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: shop}
spec: {url: "https://charts.example.com"}
`

// TestImportOfFluxReportsEachThingThatItLeavesOut in one line.
func TestImportOfFluxReportsEachThingThatItLeavesOut(t *testing.T) {
	whole := sectionsOf(t, "flux-left-out.txt")
	for name, tc := range map[string]struct {
		file string
		want []string
	}{
		"an unknown field":     {release + "  banana: {size: 3}\n" + charts, []string{"a.yaml:7: HelmRelease shop/web spec.banana.size: it has no counterpart in kubeop"}},
		"a missing source":     {release, []string{"a.yaml:6: HelmRelease shop/web spec.chart.spec.sourceRef: there is no HelmRepository shop/charts here"}},
		"another cluster":      {release + "  kubeConfig: {secretRef: {name: far}}\n" + charts, []string{"a.yaml:7: HelmRelease shop/web spec.kubeConfig: kubeop delivers to its own cluster only"}},
		"a long timeout":       {release + "  timeout: 3h\n" + charts, []string{"a.yaml:7: HelmRelease shop/web spec.timeout: kubeop waits at most one hour"}},
		"endless retries":      {release + "  upgrade: {remediation: {retries: -1}}\n" + charts, []string{"spec.upgrade.remediation.retries: kubeop retries an upgrade at most 10 times"}},
		"an unknown kind":      {"apiVersion: notification.toolkit.fluxcd.io/v1beta3\nkind: Alert\nmetadata: {name: all, namespace: shop}\n", []string{"a.yaml:1: Alert shop/all: a Tenant has notifications"}},
		"a name with a path":   {strings.Replace(release, "name: web,", "name: ../../etc,", 1) + charts, []string{"a.yaml:3: HelmRelease shop/../../etc metadata.name: this is no name of an object"}},
		"a name with a line":   {strings.Replace(release, "name: web,", `name: "a\nb",`, 1) + charts, []string{`HelmRelease "shop/a\nb" metadata.name: this is no name`}},
		"a namespace of paths": {strings.Replace(release, "namespace: shop", "namespace: ../shop", 1) + strings.Replace(charts, "namespace: shop", "namespace: ../shop", 1), []string{"metadata.name: this is no name of an object with a namespace (../shop)"}},
		"a bucket": {strings.Replace(release, "kind: HelmRepository", "kind: Bucket", 1),
			[]string{"kubeop reads no charts from a Bucket, so the release is left out"}},
		"a chart of a Bucket": {"apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web, namespace: shop}\nspec: {interval: 5m, chartRef: {kind: Bucket, name: charts}}\n",
			[]string{"spec.chartRef: kubeop reads no charts from a Bucket, so the release is left out"}},
		"an object without a Kustomization": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n", []string{"a.yaml:1: ConfigMap shop/a: no Kustomization of Flux here applies it"}},
		"twice":                             {release + charts + "---\n" + release, []string{"HelmRelease shop/web: it is declared twice"}},
		"the health of other apps": {
			"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps, namespace: shop}\nspec:\n  path: ./\n  prune: true\n" +
				"  sourceRef: {kind: GitRepository, name: fleet}\n  healthChecks:\n  - {kind: HelmRelease, name: db}\n  - {kind: Kustomization, name: base}\n  - {kind: Deployment, name: web}\n" +
				"---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: fleet, namespace: shop}\nspec: {url: \"https://git.example.com/fleet.git\"}\n",
			[]string{"spec.healthChecks: the HelmRelease db is an app of its own", "spec.healthChecks: the Kustomization base is an app of its own"},
		},
		"a wrong type": {release + "  timeout: [1]\n" + charts, []string{"spec.timeout: it has no counterpart"}},
	} {
		t.Run(name, func(t *testing.T) {
			folder, out := t.TempDir(), t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, "a.yaml"), []byte(tc.file), 0o644); err != nil {
				t.Fatal(err)
			}
			report, err := run(t, "flux", folder, "--tenant", "acme", "--project", "shop", "--out", out)
			whole.compare(t, name, report)
			for _, want := range tc.want {
				if strings.Count(report, want) != 1 || exit.Code(err) != exit.Differences {
					t.Errorf("%v\n%s\nwant once: %s", err, report, want)
				}
			}
			if outside, err := filepath.Glob(filepath.Join(filepath.Dir(out), "*")); err != nil || strings.Contains(strings.Join(outside, " "), "etc") {
				t.Errorf("something was written outside: %v, %v", outside, err)
			}
		})
	}
}

func TestImportReportsEachHostileFileAndWritesNothing(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for i, last := 0, "a"; i < 8; i++ {
		next := string(rune('b' + i))
		bomb += next + ": &" + next + " [" + strings.TrimSuffix(strings.Repeat("*"+last+",", 10), ",") + "]\n"
		last = next
	}
	for name, tc := range map[string]struct {
		file []byte
		want string
	}{
		"broken":         {[]byte("a: [\n"), "a.yaml:"},
		"aliases":        {[]byte(bomb), "a.yaml: YAML aliases stand for more than"},
		"a huge file":    {bytes.Repeat([]byte("a"), 2<<20), "a.yaml: has 2097152 bytes"},
		"many entries":   {[]byte("a: [" + strings.Repeat("1,", 200_000) + "1]\n"), "a.yaml: "},
		"nothing":        {nil, "there is nothing to import here"},
		"other manifest": {[]byte("replicas: 3\n"), "there is nothing to import here"},
	} {
		t.Run(name, func(t *testing.T) {
			folder, out := t.TempDir(), filepath.Join(t.TempDir(), "new")
			if err := os.WriteFile(filepath.Join(folder, "a.yaml"), tc.file, 0o644); err != nil {
				t.Fatal(err)
			}
			report, err := run(t, "flux", folder, "--tenant", "acme", "--out", out)
			if exit.Code(err) != exit.Failure || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") || report != "" {
				t.Errorf("got %v\n%s\nwant %s", err, report, tc.want)
			}
			if _, err := os.Stat(out); !os.IsNotExist(err) {
				t.Errorf("the folder was written: %v", err)
			}
		})
	}
}

// TestNothingIsOverwritten: a file with another content stops the import before anything is written.
func TestNothingIsOverwritten(t *testing.T) {
	folder, out := t.TempDir(), t.TempDir()
	place := filepath.Join(out, "projects", "shop", "apps", "web", "app.yaml")
	if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{filepath.Join(folder, "a.yaml"): release + charts, place: "mine"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, err := run(t, "flux", folder, "--tenant", "acme", "--out", out)
	if exit.Code(err) != exit.Failure || err.Error() != "projects/shop/apps/web/app.yaml exists with another content: nothing is overwritten" {
		t.Errorf("got %v", err)
	}
	if got := everything(t, out); got != "==> projects/shop/apps/web/app.yaml\nmine" {
		t.Errorf("the folder has\n%s", got)
	}
}

func TestImportRefusesWrongArguments(t *testing.T) {
	for args, want := range map[string]string{
		"flux --out x":                               "--tenant is required: the name of a tenant, or platform",
		"flux --tenant ../x --out x":                 "--tenant is required: the name of a tenant, or platform",
		"flux --tenant acme":                         `required flag(s) "out" not set`,
		"flux --tenant platform --project a --out x": "--project is not for the platform: its projects have the names of their namespaces",
		"flux . --cluster --tenant acme --out x":     "name a folder or --cluster, not both",
		"flux nowhere --tenant acme --out x":         "stat nowhere: no such file or directory",
		"flux a.yaml --tenant acme --out x":          "a.yaml is not a folder",
	} {
		t.Chdir(t.TempDir())
		if err := os.WriteFile("a.yaml", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := run(t, strings.Fields(args)...); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", args, err, want)
		}
	}
}

// TestAnImportFromABrokenCloneIsRefusedAsGitRefusesIt: without the top of the clone, the paths of apps are unknown.
func TestAnImportFromABrokenCloneIsRefusedAsGitRefusesIt(t *testing.T) {
	clone := t.TempDir()
	if err := os.Mkdir(filepath.Join(clone, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, "flux", clone, "--tenant", "acme", "--out", t.TempDir()); err == nil || !strings.HasPrefix(err.Error(), "git rev-parse: ") {
		t.Errorf("got %v", err)
	}
}

func TestReleaseNamesAreThoseOfFlux(t *testing.T) {
	long := strings.Repeat("a", 60)
	for _, tc := range [][4]string{
		{"", "", "web", "web"}, {"given", "shop", "web", "given"}, {"", "shop", "web", "shop-web"},
		{"", "", long, long[:40] + "-" + "11ee391211c6"},
	} {
		if got := releaseName(tc[0], tc[1], tc[2]); got != tc[3] {
			t.Errorf("releaseName(%q, %q, %q) = %s, want %s", tc[0], tc[1], tc[2], got, tc[3])
		}
	}
}

// TestNamesThatKubeopRefusesAreChanged: the result is a valid name, and other names are kept.
func TestNamesThatKubeopRefusesAreChanged(t *testing.T) {
	for name, want := range map[string]string{
		"web": "web", "Web.Shop": "web-shop", "1a": "app-1a", "a1": "a1", "-": "app", "_x_": "x", "aa..z": "aa-z",
		strings.Repeat("a", 53): strings.Repeat("a", 53), strings.Repeat("b", 54): strings.Repeat("b", 53), strings.Repeat("c", 52) + ".d": strings.Repeat("c", 52),
	} {
		if got := slug.Name(name, "app", longest); got != want {
			t.Errorf("the name of %q is %q, want %q", name, got, want)
		}
	}
}

// TestObjectsOfAKustomizationAreInItsNamespace if they name none, as in Flux.
func TestObjectsOfAKustomizationAreInItsNamespace(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "apps"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"a.yaml": "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps, namespace: shop}\nspec: {path: ./apps, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}\n" +
			"---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: flux-system, namespace: shop}\nspec: {url: \"https://git.example.com/fleet.git\"}\n---\n" + charts,
		"apps/web.yaml": strings.Replace(release, ", namespace: shop}", "}", 1) + "  banana: {size: 3}\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	report, err := run(t, "flux", folder, "--tenant", "acme", "--project", "shop", "--out", t.TempDir())
	if !strings.Contains(report, "HelmRelease shop/web spec.banana.size") {
		t.Errorf("%v\n%s", err, report)
	}
}
