package offline

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	folderApp = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: web}\nspec: {type: Raw, raw: {path: m}}\n"
	chartApp  = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: web}\nspec: {type: Helm, helm: {path: chart, values: {color: red}}}\n"
	chartFile = "apiVersion: v2\nname: web\nversion: 1.0.0\n"
	settings  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {color: red}\n"
	hostPod   = "apiVersion: v1\nkind: Pod\nmetadata: {name: host}\nspec: {hostNetwork: true, containers: [{name: a, image: registry.example.com/a:1}]}\n"
	role      = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: all}\n"
)

// inApp returns a repository with one app, and files in its folder.
func inApp(app string, files map[string]string) map[string]string {
	more := map[string]string{"projects/shop/apps/web/app.yaml": app}
	for name, text := range files {
		more["projects/shop/apps/web/"+name] = text
	}
	return repository(more)
}

func TestAppsMadeFromTheirFolderAreRendered(t *testing.T) {
	chart := func(template string) map[string]string {
		return map[string]string{"chart/Chart.yaml": chartFile, "chart/templates/all.yaml": template}
	}
	for name, c := range map[string]struct {
		files map[string]string
		// known: the settings of the tenant are given.
		known bool
		// want is part of the problem. If it ends in "rendered.", the command succeeds.
		want string
	}{
		"an image":                 {files: repository(nil), want: "1 app, 1 of them rendered."},
		"manifests":                {files: inApp(folderApp, map[string]string{"m/a.yaml": settings}), want: "1 app, 1 of them rendered."},
		"a chart":                  {files: inApp(chartApp, chart(strings.Replace(settings, "red", "{{ .Values.color }}", 1))), want: "1 app, 1 of them rendered."},
		"broken YAML":              {files: inApp(folderApp, map[string]string{"m/a.yaml": settings + "   x: y\n"}), want: "projects/shop/apps/web/app.yaml: m/a.yaml:5:4: broken YAML: "},
		"a file that is no object": {files: inApp(folderApp, map[string]string{"m/a.yaml": "a: b\n"}), want: "m/a.yaml:1: apiVersion and kind are missing: not a Kubernetes object [render-failed]"},
		"a template that fails":    {files: inApp(chartApp, chart(`{{ fail "set a color" }}`)), want: "rendering the chart: execution error at (web/templates/all.yaml:1:3): set a color [render-failed]"},
		"a chart for other clusters": {files: inApp(chartApp, map[string]string{
			"chart/Chart.yaml": chartFile + "kubeVersion: <1.20.0\n", "chart/templates/all.yaml": settings}), want: "[render-failed]"},
		"a kind that clusters may have": {files: inApp(folderApp, map[string]string{"m/a.yaml": "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\n"}), want: "1 app, 1 of them rendered."},
		"what a tenant may allow":       {files: inApp(folderApp, map[string]string{"m/a.yaml": hostPod + "---\n" + role}), want: "1 app, 1 of them rendered."},
		"what this tenant does not allow": {
			files: inApp(folderApp, map[string]string{"m/a.yaml": hostPod + "---\n" + role}), known: true, want: "projects/shop/apps/web/m/a.yaml:6: ClusterRole/all is cluster-scoped; ",
		},
		"a pod of a chart that this tenant does not allow": {
			files: inApp(chartApp, chart(hostPod)), known: true, want: "Pod/host breaks rule hostNamespaces of the Pod Security level restricted",
		},
		"what no tenant allows": {files: inApp(folderApp, map[string]string{"m/a.yaml": chartApp}), want: "[not-allowed]"},
		"values from a Secret": {
			files: inApp(strings.Replace(chartApp, "values: {color: red}", "valuesFrom: [{kind: Secret, name: colors}]", 1), chart("broken: {{")), want: "1 app, 0 of them rendered.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := write(t, c.files)
			args := []string{root}
			if c.known {
				tenant := filepath.Join(t.TempDir(), "tenant.yaml")
				if err := os.WriteFile(tenant, []byte("apiVersion: paas.kubeop.io/v1alpha1\nkind: Tenant\nmetadata: {name: acme}\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				args = append(args, "--tenant-file", tenant)
			}
			out, complaint, err := run(t, args...)
			if good := strings.HasSuffix(c.want, "rendered."); good != (err == nil) || !strings.Contains(out+complaint, c.want) {
				t.Errorf("got %v, %q, %q; want %q", err, out, complaint, c.want)
			}
		})
	}
}

func TestThePlatformsRepositoryHasTheSettingsOfItsTenants(t *testing.T) {
	tenant := "apiVersion: paas.kubeop.io/v1alpha1\nkind: Tenant\nmetadata: {name: acme}\nspec: {clusterKinds: [IngressClass.networking.k8s.io]}\n"
	class := "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: acme}\n"
	at := "tenants/acme/projects/shop/"
	root := write(t, map[string]string{
		"kubeop.yaml": "layout: v1\n", "tenants/acme/tenant.yaml": tenant, at + "project.yaml": repository(nil)["projects/shop/project.yaml"],
		at + "apps/web/app.yaml": folderApp, at + "apps/web/m/a.yaml": class,
		at + "apps/api/app.yaml": strings.Replace(folderApp, "web", "api", 1), at + "apps/api/m/a.yaml": class + "---\n" + role,
	})
	out, _, err := run(t, root)
	if err == nil || strings.Count(out, "[not-allowed]") != 1 || !strings.Contains(err.Error(), "; valid are 1 tenant, 1 project, 2 apps") || !strings.Contains(out, at+"apps/api/m/a.yaml:5: ClusterRole/all is cluster-scoped; ") || strings.Contains(out, "IngressClass") {
		t.Errorf("got %v, %q", err, out)
	}
}

// TestThePlatformsRepositoryHasThePoliciesOfItsTenants: apps are checked against the policies that their tenant names, and not against those of other tenants.
func TestThePlatformsRepositoryHasThePoliciesOfItsTenants(t *testing.T) {
	policy := func(name, spec string) string {
		return "apiVersion: paas.kubeop.io/v1alpha1\nkind: Policy\nmetadata: {name: " + name + "}\nspec: " + spec + "\n"
	}
	at := "tenants/acme/projects/shop/"
	root := write(t, map[string]string{
		"kubeop.yaml": "layout: v1\n", "policies/acme.yaml": policy("acme", "{images: {allow: [registry.example.com/acme]}}"),
		"policies/others.yaml":     policy("others", "{default: true, images: {deny: [\"*\"]}}"),
		"tenants/acme/tenant.yaml": "apiVersion: paas.kubeop.io/v1alpha1\nkind: Tenant\nmetadata: {name: acme}\nspec: {policies: [acme]}\n",
		at + "project.yaml":        repository(nil)["projects/shop/project.yaml"],
		at + "apps/web/app.yaml":   "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: web}\nspec: {type: Image, image: {reference: registry.example.com/acme/web:1}}\n",
		at + "apps/api/app.yaml":   "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: api}\nspec: {type: Image, image: {reference: evil.org/api:1}}\n",
	})
	out, _, err := run(t, root)
	want := at + "apps/api/app.yaml:4:29: Deployment/api has the image evil.org/api:1, which is not among the allowed ones: registry.example.com/acme; "
	if err == nil || strings.Count(out, "[not-allowed]") != 1 || !strings.Contains(out, want) {
		t.Errorf("got %v, %q", err, out)
	}
}

func TestRenderingCanBeLeftOut(t *testing.T) {
	out, complaint, err := run(t, "--render=false", write(t, inApp(folderApp, map[string]string{"m/a.yaml": "a: b\n"})))
	if err != nil || !strings.HasSuffix(complaint, "1 project, 1 app.\n") {
		t.Errorf("got %v, %q, %q", err, out, complaint)
	}
}

// TestProblemsAreInTheOrderOfTheFiles although apps are rendered at once, and nothing is passed over.
func TestProblemsAreInTheOrderOfTheFiles(t *testing.T) {
	files := repository(nil)
	var want []string
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		at := "projects/shop/apps/" + name + "/"
		files[at+"app.yaml"], files[at+"m/a.yaml"] = strings.Replace(folderApp, "web", name, 1), "a: b\n"
		want = append(want, at+"app.yaml")
	}
	out, _, err := run(t, write(t, files))
	var got []string
	for line := range strings.Lines(out) {
		file, _, _ := strings.Cut(line, ":")
		got = append(got, file)
	}
	if err == nil || !slices.Equal(got, want) {
		t.Errorf("%v: got %v", err, got)
	}
}

func TestTheTenantFileMustDeclareATenant(t *testing.T) {
	root := write(t, repository(nil))
	for file, want := range map[string]string{filepath.Join(root, "none.yaml"): "no such file", filepath.Join(root, "kubeop.yaml"): "is no tenant.yaml"} {
		if _, _, err := run(t, root, "--tenant-file", file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
