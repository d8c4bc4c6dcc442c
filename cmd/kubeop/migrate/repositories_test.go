package migrate

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/cmd/kubeop/exit"
)

// fleet is the Kustomization of a folder of the cluster's own repository.
func fleet(name, folder, fields string) string {
	return "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: " + name + ", namespace: flux-system}\n" +
		"spec:\n  path: " + folder + "\n  prune: true\n  sourceRef: {kind: GitRepository, name: flux-system}\n" + fields
}

const (
	fluxSystem = "---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: flux-system, namespace: flux-system}\n" +
		"spec: {url: \"ssh://git@git.example.com/acme/fleet.git\", secretRef: {name: flux-system}}\n"
	configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %, namespace: &}\n"
)

func config(name, namespace string) string {
	return strings.NewReplacer("%", name, "&", namespace).Replace(configMap)
}

// TestAnImportWritesTheAppsOfSeveralFiles: everything that an import of several files says and writes.
func TestAnImportWritesTheAppsOfSeveralFiles(t *testing.T) {
	whole := sectionsOf(t, "repositories.txt")
	artifact := "---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: code, namespace: shop}\n" +
		"spec: {provider: generic, url: \"oci://registry.example.com/deploy\", insecure: true, ref: {tag: '1.2', semver: 1.x, digest: \"sha256:aa\"}, secretRef: {name: token}}\n"
	chartOfArtifact := "---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: chart, namespace: shop}\n" +
		"spec: {chartRef: {kind: OCIRepository, name: code}}\n"
	argo := func(name, fields string) string {
		return "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: " + name + ", namespace: argocd}\n" +
			"spec:\n  destination: {namespace: web}\n  syncPolicy: {automated: {}}\n  source: {repoURL: \"https://git.example.com/acme/fleet.git\", " + fields + "}\n"
	}
	for name, tc := range map[string]struct {
		tool  string
		files map[string]string
		args  string
	}{
		"objects in two namespaces": {"flux", map[string]string{
			"cluster/a.yaml": fleet("apps", "./apps", "  patches: [{patch: '[{\"op\": \"add\", \"path\": \"/metadata/labels\", \"value\": {\"a\": \"b\"}}]', target: {kind: ConfigMap}}]\n") + fluxSystem,
			"apps/a.yaml": config("a", "shop") + "---\n" + config("b", "pay") + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n" +
				"---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: reader}\n",
		}, "--tenant platform"},
		"a namespace for all": {"flux", map[string]string{
			"cluster/a.yaml": fleet("apps", "./apps", "  targetNamespace: shop\n") + fluxSystem,
			"apps/a.yaml":    config("a", "other") + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: mine}\n",
			"apps/b.yaml":    charts[4:] + "---\n" + release,
		}, "--tenant acme --project shop"},
		"a folder that is gone": {"flux", map[string]string{"cluster/a.yaml": fleet("apps", "./apps", "") + fluxSystem}, "--tenant acme"},
		"the whole repository":  {"flux", map[string]string{"cluster/a.yaml": fleet("apps", "./", "") + fluxSystem, "b.yaml": config("b", "shop")}, "--tenant acme"},
		"variables": {"flux", map[string]string{
			"cluster/a.yaml": fleet("apps", "./apps", "  postBuild: {substitute: {own: here}, substituteFrom: [{kind: ConfigMap, name: vars}, {kind: Secret, name: keys}, {kind: ConfigMap, name: gone}]}\n") + fluxSystem,
			"vars.yaml":      config("vars", "flux-system") + "data: {own: there, version: 2.0.0}\n",
			"apps/a.yaml":    charts[4:] + "---\n" + strings.Replace(release, "version: 1.0.0", "version: \"${version}\"", 1) + "  values: {own: \"${own}\", broken: \"${lost:?}\"}\n",
		}, "--tenant acme"},
		"variables that are known": {"flux", map[string]string{
			"cluster/a.yaml": fleet("apps", "./apps", "  postBuild: {substitute: {own: here}, substituteFrom: [{kind: ConfigMap, name: vars}]}\n") + fluxSystem,
			"vars.yaml":      config("vars", "flux-system") + "data: {own: there, version: 2.0.0}\n",
			"apps/a.yaml":    charts[4:] + "---\n" + strings.Replace(release, "version: 1.0.0", "version: \"${version}\"", 1) + "  values: {own: \"${own}\"}\n",
		}, "--tenant acme"},
		"components of a plain folder": {"flux", map[string]string{
			"cluster/a.yaml":              fleet("apps", "./apps", "  components: [../more]\n") + fluxSystem,
			"apps/a.yaml":                 config("a", "shop"),
			"apps/sub/kustomization.yaml": "resources: [b.yaml]\n", "apps/sub/b.yaml": config("b", "shop"),
			"more/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamespace: pay\n",
		}, "--tenant acme"},
		"a kustomization below a plain folder": {"flux", map[string]string{
			"cluster/a.yaml": fleet("apps", "./apps", "") + fluxSystem, "apps/a.yaml": charts[4:],
			"apps/sub/kustomization.yaml": "namePrefix: my-\nresources: [b.yaml]\n", "apps/sub/b.yaml": release,
		}, "--tenant acme"},
		"fields of a wrong type": {"flux", map[string]string{"cluster/a.yaml": fleet("apps", "./apps", "  patches: [{patch: [1]}]\n") + fluxSystem, "apps/a.yaml": config("a", "shop")}, "--tenant acme"},
		"a folder that does not build": {"flux", map[string]string{
			"cluster/a.yaml": fleet("apps", "./apps", "") + fluxSystem, "apps/kustomization.yaml": "resources: [gone.yaml]\n"}, "--tenant acme"},
		"a number that is no JSON": {"flux", map[string]string{"a.yaml": release + "  values: {a: .nan}\n"}, "--tenant acme"},
		"an artifact of manifests and of a chart": {"flux", map[string]string{
			"a.yaml": strings.Replace(kustomization, "GitRepository", "OCIRepository", 1) + artifact + chartOfArtifact}, "--tenant acme"},
		"an artifact with certificates": {"flux", map[string]string{
			"a.yaml": strings.Replace(kustomization, "GitRepository", "OCIRepository", 1) + strings.Replace(artifact, "secretRef", "certSecretRef", 1)}, "--tenant acme --project shop"},
		"a chart of an artifact that is gone": {"flux", map[string]string{"a.yaml": chartOfArtifact[4:]}, "--tenant acme"},
		"charts of a registry without TLS": {"flux", map[string]string{
			"a.yaml": release + strings.Replace(charts, "spec: {url: \"https://charts", "spec: {insecure: true, url: \"oci://charts", 1)}, "--tenant acme"},
		"records in another namespace": {"flux", map[string]string{"a.yaml": release + "  targetNamespace: prod\n" + charts}, "--tenant platform"},
		"records named elsewhere":      {"flux", map[string]string{"a.yaml": release + "  storageNamespace: records\n" + charts}, "--tenant platform"},
		"a field of valuesFrom":        {"flux", map[string]string{"a.yaml": release + "  valuesFrom: [{kind: ConfigMap, name: a, literal: true}]\n" + charts}, "--tenant acme"},
		"the same dependency twice": {"flux", map[string]string{
			"a.yaml": release + "  dependsOn: [{name: db}, {name: db}, {name: db, namespace: pay}, {name: web}]\n" + "---\n" + strings.Replace(release, "name: web,", "name: db,", 1) +
				"---\n" + strings.NewReplacer("name: web,", "name: db,", "namespace: shop", "namespace: pay").Replace(release) + charts + strings.Replace(charts, "namespace: shop", "namespace: pay", 1)},
			"--tenant acme"},
		"long names": {"flux", map[string]string{
			"a.yaml": strings.NewReplacer("name: web,", "name: 1."+strings.Repeat("a", 49)+".bcdef,").Replace(release) + "---\n" + strings.Replace(release, "name: web,", "name: x..y,", 1) + charts}, "--tenant acme"},
		"a namespace of the tenant":      {"flux", map[string]string{"a.yaml": strings.ReplaceAll(release+charts, "namespace: shop", "namespace: kubeop-acme-front")}, "--tenant acme"},
		"a namespace with the tenant":    {"flux", map[string]string{"a.yaml": strings.ReplaceAll(release+charts, "namespace: shop", "namespace: acme-front")}, "--tenant acme"},
		"a namespace that is no project": {"flux", map[string]string{"a.yaml": strings.ReplaceAll(release+charts, "namespace: shop", "namespace: a"+strings.Repeat("-long", 9))}, "--tenant acme"},
		"kinds without a counterpart":    {"flux", map[string]string{"a.yaml": fluxKindsWithoutCounterpart}, "--tenant acme"},
		"a file of kubeop that is wrong": {"flux", map[string]string{"a.yaml": release + "  interval: -5m\n  timeout: 1m\n" + charts,
			"out/projects/shop/project.yaml": "kind: Project\n"}, "--tenant acme"},
		"as JSON": {"flux", map[string]string{"a.yaml": release + "  banana: 1\n" + charts}, "--tenant acme -o json"},
		"a chart in its own repository": {"argocd", map[string]string{
			"apps/a.yaml": argo("web", "path: chart"), "chart/Chart.yaml": "name: web\nversion: 1.0.0\n", "chart/templates/a.yaml": "{{ broken\n"}, "--tenant acme"},
		"apps of apps with patches": {"argocd", map[string]string{
			"apps/a.yaml": argo("root", "path: more, kustomize: {patches: [{patch: '[]', target: {kind: ConfigMap}}]}"), "more/b.yaml": argo("leaf", "path: leaf") + "---\n" + config("held", "web"),
			"leaf/c.yaml": config("c", "web")}, "--tenant acme"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, text := range tc.files {
				file = filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, args := range []string{"init -q -b main", "remote add origin git@git.example.com:acme/fleet.git"} {
				if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", root}, strings.Fields(args)...)...).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			folder, out := root, filepath.Join(root, "out")
			for _, entry := range []string{"cluster", "apps"} {
				if _, err := os.Stat(filepath.Join(root, entry)); err == nil {
					folder = filepath.Join(root, entry)
					break
				}
			}
			report, err := run(t, append([]string{tc.tool, folder, "--out", out}, strings.Fields(tc.args)...)...)
			said := report
			if err != nil && exit.Code(err) != exit.Differences {
				said += "Error: " + err.Error() + "\n"
			}
			if _, err := os.Stat(out); err == nil {
				said += everything(t, out)
			}
			whole.compare(t, name, strings.ReplaceAll(said, root, "ROOT"))
		})
	}
}

// fluxKindsWithoutCounterpart has an object of each group that kubeop has something else for.
const fluxKindsWithoutCounterpart = `apiVersion: image.toolkit.fluxcd.io/v1
kind: ImagePolicy
metadata: {name: a, namespace: shop}
---
apiVersion: notification.toolkit.fluxcd.io/v1
kind: Receiver
metadata: {name: b, namespace: shop}
---
apiVersion: fluxcd.controlplane.io/v1
kind: FluxInstance
metadata: {name: c, namespace: shop}
---
apiVersion: source.extensions.toolkit.fluxcd.io/v1
kind: ArtifactGenerator
metadata: {name: d, namespace: shop}
`
