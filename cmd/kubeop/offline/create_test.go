package offline

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/exit"
)

// do runs a command in the current folder and returns what it prints.
func do(t *testing.T, of func(*call.Call) *cobra.Command, args ...string) (string, error) {
	t.Helper()
	streams, _, stdout, _ := genericiooptions.NewTestIOStreams()
	command := of(call.New(streams, clocktesting.NewFakeClock(time.Now())))
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs(args)
	command.SetOut(io.Discard)
	err := command.ExecuteContext(t.Context())
	return stdout.String(), err
}

func TestCreateWritesValidFiles(t *testing.T) {
	const head = "apiVersion: paas.kubeop.io/v1alpha1\nkind: "
	for name, tc := range map[string]struct {
		has  string // a file of the repository
		args []string
		file string
		want string
	}{
		"a project": {args: []string{"project", "shop"}, file: "projects/shop/project.yaml", want: head + "Project\nmetadata:\n  name: shop\n"},
		"a quota": {args: []string{"project", "shop", "--quota", "pods=20", "--quota", "requests.cpu=2"}, file: "projects/shop/project.yaml",
			want: head + "Project\nmetadata:\n  name: shop\nspec:\n  quota:\n    pods: \"20\"\n    requests.cpu: \"2\"\n"},
		"an image": {has: "projects/shop/project.yaml", args: []string{"app", "shop/web", "--image", "registry.example.com/web:1", "--port", "8080", "--host", "web.example.com", "--replicas", "2", "--env", "B=2", "--env", "A=1"},
			file: "projects/shop/apps/web/app.yaml", want: head + "App\nmetadata:\n  name: web\nspec:\n  host: web.example.com\n  image:\n    env:\n    - name: A\n      value: \"1\"\n    - name: B\n      value: \"2\"\n    ports:\n    - name: http\n      port: 8080\n    reference: registry.example.com/web:1\n    replicas: 2\n  type: Image\n"},
		"a chart": {has: "projects/shop/project.yaml", args: []string{"app", "shop/db", "--chart", "pg", "--chart-repository", "https://charts.example.com", "--version", "1.2.3", "--secret", "charts"},
			file: "projects/shop/apps/db/app.yaml", want: head + "App\nmetadata:\n  name: db\nspec:\n  helm:\n    chart: pg\n    repository: https://charts.example.com\n    secretRef:\n      name: charts\n    version: 1.2.3\n  type: Helm\n"},
		"a Git folder": {has: "projects/shop/project.yaml", args: []string{"app", "shop/docs", "--git", "https://git.example.com/docs.git", "--branch", "main", "--folder", "deploy"},
			file: "projects/shop/apps/docs/app.yaml", want: head + "App\nmetadata:\n  name: docs\nspec:\n  git:\n    path: deploy\n    ref:\n      branch: main\n    url: https://git.example.com/docs.git\n  type: Git\n"},
		"a tenant": {args: []string{"tenant", "acme", "--url", "https://git.example.com/acme.git", "--secret", "acme-git", "--hook-secret", "acme-hook", "--branch", "stable", "--owner", "User:ann:admin", "--owner", "Group:oidc:devs:edit"},
			file: "tenants/acme/tenant.yaml", want: head + "Tenant\nmetadata:\n  name: acme\nspec:\n  owners:\n  - kind: User\n    name: ann\n    role: admin\n  - kind: Group\n    name: oidc:devs\n    role: edit\n  repository:\n    hookSecretRef:\n      name: acme-hook\n    ref:\n      branch: stable\n    secretRef:\n      name: acme-git\n    url: https://git.example.com/acme.git\n"},
		"a policy": {args: []string{"policy", "baseline", "--default", "--image", "a.example.com", "--image", "b.example.com", "--require-digest", "--service", "ClusterIP", "--host", "example.com"},
			file: "policies/baseline.yaml", want: head + "Policy\nmetadata:\n  name: baseline\nspec:\n  default: true\n  hostnames:\n    suffixes:\n    - example.com\n  images:\n    allow:\n    - a.example.com\n    - b.example.com\n    requireDigest: true\n  services:\n    types:\n    - ClusterIP\n"},
		"a policy without rules": {args: []string{"policy", "baseline"}, file: "policies/baseline.yaml", want: head + "Policy\nmetadata:\n  name: baseline\n"},
		"a registry": {has: "tenants/acme/projects/shop/project.yaml", args: []string{"registry", "internal", "--host", "registry.example.com:5000", "--secret", "internal-pull", "--tenant", "acme", "--insecure", "--mirror", "mirror.example.com/internal"},
			file: "registries/internal.yaml", want: head + "Registry\nmetadata:\n  name: internal\nspec:\n  host: registry.example.com:5000\n  insecure: true\n  mirror: mirror.example.com/internal\n  secretRef:\n    name: internal-pull\n  tenants:\n  - acme\n"},
		"a registry for nobody": {args: []string{"registry", "ghcr", "--host", "ghcr.io", "--secret", "ghcr-pull"},
			file: "registries/ghcr.yaml", want: head + "Registry\nmetadata:\n  name: ghcr\nspec:\n  host: ghcr.io\n  secretRef:\n    name: ghcr-pull\n"},
		"a project of the platform": {args: []string{"project", "platform/ingress"}, file: "platform/ingress/project.yaml", want: head + "Project\nmetadata:\n  name: ingress\n"},
		"an app of a tenant in the platform repository": {has: "tenants/acme/projects/shop/project.yaml", args: []string{"app", "acme/shop/web", "--image", "a.example/b:1"},
			file: "tenants/acme/projects/shop/apps/web/app.yaml", want: head + "App\nmetadata:\n  name: web\nspec:\n  image:\n    reference: a.example/b:1\n  type: Image\n"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"kubeop.yaml": "layout: v1\n"}
			if tc.has != "" {
				files[tc.has] = "apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: shop}\n"
			}
			if strings.HasPrefix(tc.has, "tenants/") {
				files["tenants/acme/tenant.yaml"] = "apiVersion: paas.kubeop.io/v1alpha1\nkind: Tenant\nmetadata: {name: acme}\n"
			}
			t.Chdir(write(t, files))
			out, err := do(t, Create, tc.args...)
			if err != nil || out != "Wrote "+tc.file+".\n" {
				t.Fatalf("%v: %s", err, out)
			}
			text, err := os.ReadFile(filepath.FromSlash(tc.file))
			if diff := cmp.Diff(tc.want, string(text)); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if problems, _, err := run(t); err != nil {
				t.Errorf("%v\n%s", err, problems)
			}
			if _, err := do(t, Create, tc.args...); err == nil || !strings.Contains(err.Error(), tc.file+" exists: nothing is overwritten") {
				t.Errorf("a second time: %v", err)
			}
		})
	}
}

func TestCreateRefusesWrongArguments(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no source":             {[]string{"app", "shop/web"}, "at least one of the flags"},
		"two sources":           {[]string{"app", "shop/web", "--image", "a", "--git", "b"}, "none of the others can be"},
		"a flag of another":     {[]string{"app", "shop/web", "--git", "https://a/b.git", "--port", "80"}, "--port goes with --image"},
		"a short name":          {[]string{"app", "web", "--image", "a"}, `"web" does not name one app of this repository: write PROJECT/APP`},
		"a name with a tenant":  {[]string{"app", "acme/shop/web", "--image", "a"}, "write PROJECT/APP"},
		"a way out of the tree": {[]string{"app", "../../web", "--image", "a"}, `"../../web" does not name one app`},
		"a tenant":              {[]string{"tenant", "beta", "--url", "https://a/b.git"}, "tenants are declared in the platform repository"},
		"no URL":                {[]string{"tenant", "beta"}, `required flag(s) "url" not set`},
		"a registry":            {[]string{"registry", "ghcr", "--host", "ghcr.io", "--secret", "pull"}, "registries are declared in the platform repository"},
		"a registry, no Secret": {[]string{"registry", "ghcr", "--host", "ghcr.io"}, `required flag(s) "secret" not set`},
		"a registry's password": {[]string{"registry", "ghcr", "--host", "ghcr.io", "--secret", "pull", "--password", "x"}, "unknown flag: --password"},
		"an owner without role": {[]string{"tenant", "beta", "--url", "https://a/b.git", "--owner", "User:ann"}, "write KIND:NAME:ROLE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(write(t, repository(nil)))
			if out, err := do(t, Create, tc.args...); err == nil || out != "" || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s\n%s", err, tc.want, out)
			}
		})
	}
}

func TestCreateSaysWhoMayNotUseARegistry(t *testing.T) {
	t.Chdir(write(t, map[string]string{"kubeop.yaml": "layout: v1\n", "tenants/acme/tenant.yaml": "apiVersion: paas.kubeop.io/v1alpha1\nkind: Tenant\nmetadata: {name: acme}\n"}))
	out, err := do(t, Create, "registry", "ghcr", "--host", "ghcr.io", "--secret", "pull", "--tenant", "acme", "--policy", "none")
	if exit.Code(err) != exit.Differences || !strings.Contains(out, "registries/ghcr.yaml:") || !strings.Contains(out, `there is no policy "none"`) || strings.Contains(out, "no tenant") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestCreateSaysWhatIsWrongWithWhatItWrote(t *testing.T) {
	// The problems of other files are not those of the new one.
	t.Chdir(write(t, repository(map[string]string{"projects/shop/apps/api-2/app.yaml": "spec: {typo: 1}\n"})))
	out, err := do(t, Create, "app", "shop/api", "--image", "not an image")
	if exit.Code(err) != exit.Differences || err.Error() != "1 problem in projects/shop/apps/api" || !strings.HasPrefix(out, "Wrote projects/shop/apps/api/app.yaml.\nprojects/shop/apps/api/app.yaml:") || !strings.Contains(out, "spec.image.reference") || strings.Contains(out, "api-2") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestInitBeginsAValidRepository(t *testing.T) {
	for _, what := range []string{"tenant", "platform"} {
		folder := filepath.Join(t.TempDir(), "new")
		out, err := do(t, Init, what, folder)
		if err != nil || strings.Count(out, "Wrote ") != 3 || !strings.Contains(out, "git init") {
			t.Fatalf("%s: %v\n%s", what, err, out)
		}
		if problems, _, err := run(t, folder); err != nil {
			t.Errorf("%s: %v\n%s", what, err, problems)
		}
		own := filepath.Join(folder, "README.md")
		if err := os.WriteFile(own, []byte("mine"), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := do(t, Init, what, folder); err != nil || strings.Count(out, "Left as it is: ") != 3 {
			t.Errorf("%s, a second time: %v\n%s", what, err, out)
		}
		if text, err := os.ReadFile(own); err != nil || string(text) != "mine" {
			t.Errorf("%s: the README was overwritten: %q, %v", what, text, err)
		}
	}
	cloned := t.TempDir()
	if err := os.Mkdir(filepath.Join(cloned, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := do(t, Init, "tenant", cloned); err != nil || strings.Contains(out, "git init") {
		t.Errorf("in a clone: %v\n%s", err, out)
	}
	if _, err := do(t, Init, "shop"); err == nil || !strings.Contains(err.Error(), "write platform or tenant") {
		t.Errorf("got %v", err)
	}
}

func TestSchemaInstallsForTheEditor(t *testing.T) {
	root := write(t, repository(nil))
	t.Chdir(filepath.Join(root, "projects", "shop"))
	out, err := do(t, Schema, "--install")
	if err != nil || !strings.Contains(out, "settings.json") {
		t.Fatalf("%v\n%s", err, out)
	}
	settings := filepath.Join(root, ".vscode", "settings.json")
	text, err := os.ReadFile(settings)
	if err != nil || !strings.Contains(string(text), `".kubeop/schema/app.json": "**/app.yaml"`) {
		t.Errorf("%v\n%s", err, text)
	}
	if strings.Contains(string(text), "policy.json") {
		t.Errorf("the schema of policies is for a tenant's repository, too:\n%s", text)
	}
	if schema, err := os.ReadFile(filepath.Join(root, ".kubeop", "schema", "tenant.json")); err != nil || !strings.Contains(string(schema), `"title": "kubeop Tenant"`) {
		t.Error(err)
	}
	if problems, _, err := run(t, root); err != nil {
		t.Errorf("the schemas are problems of the repository: %v\n%s", err, problems)
	}
	if err := os.WriteFile(settings, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := do(t, Schema, "--install"); err != nil || !strings.Contains(out, "exists and is left as it is. Add to it:") {
		t.Errorf("%v\n%s", err, out)
	}
	if text, err := os.ReadFile(settings); err != nil || string(text) != "{}" {
		t.Errorf("the settings were overwritten: %s, %v", text, err)
	}
	for _, taken := range []string{".kubeop", ".vscode"} {
		t.Chdir(write(t, repository(map[string]string{taken: "a file"})))
		if out, err := do(t, Schema, "--install"); err == nil || strings.Contains(out, "settings.json") {
			t.Errorf("%s is a file: %v\n%s", taken, err, out)
		}
	}
	t.Chdir(write(t, map[string]string{"kubeop.yaml": "layout: v1\n", "policies/a.yaml": declares("Policy", "a", "{}")}))
	if _, err := do(t, Schema, "--install"); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(".vscode/settings.json"); err != nil || !strings.Contains(string(text), `".kubeop/schema/policy.json": "**/policies/*.yaml"`) {
		t.Errorf("the platform's: %v\n%s", err, text)
	}
	if out, err := do(t, Schema, "kubeop"); err != nil || !strings.Contains(out, `"const": "v1"`) {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := do(t, Schema); err == nil || !strings.Contains(err.Error(), "which schema?") {
		t.Errorf("got %v", err)
	}
	if _, err := do(t, Schema, "pod"); err == nil {
		t.Error("an unknown schema is printed")
	}
}

func TestEachFlagGoesWithOneKindOfApp(t *testing.T) {
	kinds := map[string]appFlags{"image": {image: "a"}, "chart": {chart: "a"}, "git": {git: "a"}, "manifests": {manifests: "a"}}
	for flag, tc := range map[string]struct {
		set func(*appFlags)
		of  string
	}{
		"port": {func(f *appFlags) { f.port = 80 }, "image"}, "host": {func(f *appFlags) { f.host = "a" }, "image"}, "replicas": {func(f *appFlags) { f.replicas = 2 }, "image"},
		"env": {func(f *appFlags) { f.env = map[string]string{"A": "b"} }, "image"}, "chart-repository": {func(f *appFlags) { f.charts = "a" }, "chart"},
		"version": {func(f *appFlags) { f.version = "1" }, "chart"}, "values": {func(f *appFlags) { f.values = "a" }, "chart"},
		"branch": {func(f *appFlags) { f.branch = "a" }, "git"}, "folder": {func(f *appFlags) { f.folder = "a" }, "git"}, "secret": {func(f *appFlags) { f.secret = "a" }, "git"},
	} {
		for kind, f := range kinds {
			tc.set(&f)
			if err := f.fits(); (err == nil) != (kind == tc.of) || err != nil && !strings.HasPrefix(err.Error(), "--"+flag+" goes with --"+tc.of) {
				t.Errorf("--%s with --%s: %v", flag, kind, err)
			}
		}
	}
}

func TestFlagsBecomeTheSpecOfAnApp(t *testing.T) {
	for name, tc := range map[string]struct {
		flags appFlags
		want  fields
	}{
		"manifests": {appFlags{manifests: "deploy"}, fields{"type": "Raw", "raw": fields{"path": "deploy"}}},
		"a chart beside it": {appFlags{chart: "chart", values: "values.yaml"},
			fields{"type": "Helm", "helm": fields{"path": "chart", "valuesFiles": []any{"values.yaml"}}}},
		"a chart of a repository": {appFlags{chart: "pg", charts: "https://charts.example.com", version: "1", secret: "s"},
			fields{"type": "Helm", "helm": fields{"chart": "pg", "repository": "https://charts.example.com", "version": "1", "secretRef": fields{"name": "s"}}}},
		"a Git folder": {appFlags{git: "https://git.example.com/a.git", secret: "s"},
			fields{"type": "Git", "git": fields{"url": "https://git.example.com/a.git", "secretRef": fields{"name": "s"}}}},
	} {
		got, err := tc.flags.spec()
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestARepositoryWithPricesAloneIsThePlatforms(t *testing.T) {
	t.Chdir(write(t, map[string]string{"kubeop.yaml": "layout: v1\n", "prices/a.yaml": declares("PriceList", "a", "{}")}))
	if _, err := do(t, Schema, "--install"); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(".vscode/settings.json"); err != nil || !strings.Contains(string(text), `".kubeop/schema/pricelist.json": "**/prices/*.yaml"`) {
		t.Errorf("the schemas are %v\n%s", err, text)
	}
}
