package migrate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/cmd/kubeop/exit"
)

// TestArgoCDBecomesAPlatform imports an app of apps with charts, folders, several sources, and what cannot be imported.
func TestArgoCDBecomesAPlatform(t *testing.T) {
	root, out := clone(t, "argo"), t.TempDir()
	report, err := run(t, "argocd", root, "--tenant", "platform", "--out", out)
	if exit.Code(err) != exit.Differences {
		t.Fatalf("got %v", err)
	}
	files := everything(t, out)
	golden(t, "argo.txt", report+files)
	if strings.Contains(report, "written file") {
		t.Error("kubeop validate finds problems in what was written")
	}
	for _, secret := range []string{"hunter2", "s3cret"} {
		if strings.Contains(report+files, secret) {
			t.Errorf("the secret value %s was written", secret)
		}
	}
}

// TestImportOfArgoCDReportsEachThingThatItLeavesOut in one line.
func TestImportOfArgoCDReportsEachThingThatItLeavesOut(t *testing.T) {
	whole := sectionsOf(t, "argo-left-out.txt")
	const head = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web, namespace: argocd}\nspec:\n"
	const rest = "  destination: {namespace: web}\n  source: {repoURL: \"https://git.example.com/web.git\", path: deploy}\n"
	for name, tc := range map[string]struct{ file, want string }{
		"no namespace":        {head + "  source: {repoURL: \"https://git.example.com/web.git\"}\n", "a.yaml:1: Application argocd/web spec.destination.namespace: kubeop needs one namespace"},
		"by hand":             {head + rest, "Application argocd/web spec.syncPolicy: kubeop delivers each commit"},
		"an unknown field":    {head + rest + "  banana: 1\n", "a.yaml:7: Application argocd/web spec.banana: it has no counterpart"},
		"a plugin":            {strings.Replace(head+rest, "path: deploy", "path: deploy, plugin: {name: x}", 1), "spec.source.plugin.name: kubeop runs no plugins"},
		"a name with a path":  {strings.Replace(head+rest, "name: web,", "name: ../web,", 1), "metadata.name: this is no name of an object"},
		"broken values":       {strings.Replace(head+rest, "path: deploy", "path: deploy, helm: {values: \"a: [\"}", 1), "spec.source.helm.values: these are no values in YAML"},
		"a set":               {strings.Replace(head+rest, "kind: Application", "kind: ApplicationSet", 1), "ApplicationSet argocd/web: kubeop generates no apps"},
		"an object beside it": {head + rest + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", "a.yaml:8: ConfigMap a: no Application here applies it"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, "a.yaml"), []byte(tc.file), 0o644); err != nil {
				t.Fatal(err)
			}
			report, err := run(t, "argocd", folder, "--tenant", "acme", "--out", t.TempDir())
			whole.compare(t, name, report)
			if exit.Code(err) != exit.Differences || strings.Count(report, tc.want) != 1 {
				t.Errorf("%v\n%s\nwant once: %s", err, report, tc.want)
			}
		})
	}
}
