package kustomize_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/build"
	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/internal/testenv/rendering"
)

const deploymentManifest = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: shop
spec:
  replicas: 1
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers:
      - name: shop
        image: shop:1
        ports:
        - {containerPort: 8080}
        envFrom:
        - configMapRef: {name: settings}
`

// shop is a repository with a base, two overlays, a component, and files beside them.
var shop = map[string]string{
	"base/kustomization.yaml":    "resources: [deployment.yaml]\nconfigMapGenerator:\n- name: settings\n  literals: [LEVEL=info]\n",
	"base/deployment.yaml":       deploymentManifest,
	"shared/replicas.yaml":       "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: shop}\nspec: {replicas: 4}\n",
	"parts/debug/Kustomization":  "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nconfigMapGenerator:\n- name: settings\n  behavior: merge\n  envs: [level.env]\n",
	"parts/debug/level.env":      "LEVEL=debug\n",
	"stage/kustomization.yml":    "resources: [../base]\nnameSuffix: -stage\nimages: [{name: shop, newTag: \"2\"}]\n",
	"deep/er/kustomization.yaml": "bases: [../../base]\ncomponents: [../../parts/debug]\npatches: [{path: ../../shared/replicas.yaml}]\nnamespace: kubeop-acme-web\n",
}

func with(more map[string]string) fstest.MapFS {
	files := maps.Clone(shop)
	maps.Copy(files, more)
	return rendering.Repository(files)
}

// folder makes the objects of a folder.
func folder(files fs.FS, path string) ([]*unstructured.Unstructured, error) {
	return built(files, path, &v1alpha1.Build{})
}

// built makes the objects of a folder with an App's spec on top.
func built(files fs.FS, path string, with *v1alpha1.Build) ([]*unstructured.Unstructured, error) {
	return build.Folder(files, path, with, budget.App{})
}

func TestABuildHasTheObjectsOfItsFolder(t *testing.T) {
	for name, path := range map[string]string{
		"base":                               "base",
		"overlay":                            "stage",
		"components and files of the parent": "deep/er",
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := folder(with(nil), path)
			if err != nil {
				t.Fatal(err)
			}
			rendering.Golden(t, filepath.Join("testdata", filepath.Base(path)+".golden.yaml"), rendering.Stream(t, objects))
		})
	}
}

func TestABuildExplainsWhatItCannotRead(t *testing.T) {
	link := &fstest.MapFile{Data: []byte("../base"), Mode: fs.ModeSymlink}
	long, aliases := strings.Repeat("x", 2000), strings.Repeat("*a, ", 1000)
	tests := map[string]struct {
		kustomization string
		want          string
	}{
		"resource that is not there":   {"resources: [a.yaml]", "app/kustomization.yaml: resources: app/a.yaml: not in the repository"},
		"base out of the repository":   {"resources: [../../base]", "app/kustomization.yaml: resources: ../../base: outside the repository"},
		"base at a root":               {"resources: [/base]", "app/kustomization.yaml: resources: /base: outside the repository"},
		"two are wrong":                {"resources: [a.yaml]\ncomponents: [../../b]", "app/kustomization.yaml: resources: app/a.yaml: not in the repository\napp/kustomization.yaml: components: ../../b: outside the repository"},
		"patch out of the repository":  {"resources: [../base]\npatches: [{path: ../../etc/patch.yaml}]", "/etc/patch.yaml: outside the repository"},
		"file out of the repository":   {"configMapGenerator: [{name: a, files: [x=/etc/passwd]}]", "/etc/passwd: outside the repository"},
		"env file out of it":           {"secretGenerator: [{name: a, envs: [../../../../etc/passwd]}]", "/etc/passwd: outside the repository"},
		"link":                         {"resources: [link]", "app/kustomization.yaml: resources: app/link: is a symbolic link; only files and folders of the repository are read"},
		"file behind a link":           {"configMapGenerator: [{name: a, files: [link/deployment.yaml]}]", "app/link: is a symbolic link; only files and folders of the repository are read"},
		"field that does not exist":    {"resource: [a.yaml]", `app/kustomization.yaml: invalid Kustomization: json: unknown field "resource"`},
		"not YAML":                     {"resources: [", "app/kustomization.yaml: invalid Kustomization: yaml: line 1: did not find expected node content"},
		"charts":                       {"helmCharts: [{name: a}]", "app/kustomization.yaml: helmCharts is refused: charts are delivered by apps of type Helm"},
		"charts, the old field":        {"helmChartInflationGenerator: [{chartName: a}]", "app/kustomization.yaml: helmCharts is refused: charts are delivered by apps of type Helm"},
		"charts, in another case":      {"HelmCharts: [{name: a}]", "app/kustomization.yaml: helmCharts is refused: charts are delivered by apps of type Helm"},
		"settings of charts alone":     {"helmGlobals: {chartHome: charts}", "app/kustomization.yaml: helmCharts is refused: charts are delivered by apps of type Helm"},
		"schema":                       {"openapi: {path: schema.json}", "app/kustomization.yaml: openapi is refused: the schemas of Kubernetes are built in"},
		"generator":                    {"generators: [a.yaml]", "app/kustomization.yaml: generators is refused: plugins can load from anywhere; use the fields of the kustomization instead"},
		"transformer":                  {"transformers: [a.yaml]", "app/kustomization.yaml: transformers is refused: plugins can load from anywhere; use the fields of the kustomization instead; of transformers, files with LabelTransformer and AnnotationsTransformer of apiVersion builtin can be used, but a.yaml: app/a.yaml: not in the repository"},
		"validator":                    {"validators: [a.yaml]", "app/kustomization.yaml: validators is refused: plugins can load from anywhere; use the fields of the kustomization instead"},
		"error in a base":              {"resources: [../broken]", "broken/kustomization.yml: resources: broken/a.yaml: not in the repository"},
		"too large a file":             {"configMapGenerator: [{name: a, files: [../large]}]", "large: has 1048577 bytes; a file may have 1048576: too large"},
		"aliases":                      {"resources: [../bomb.yaml]", "bomb.yaml: YAML aliases stand for more than 1048576 bytes: too large"},
		"aliases in the kustomization": {"commonAnnotations: {a: &a " + long + ", b: [" + aliases + "]}", "app/kustomization.yaml: YAML aliases stand for more than 1048576 bytes: too large"},
		"aliases in a written patch":   {"resources: [../base]\npatches: [{target: {kind: Deployment}, patch: '[{op: add, path: /x, value: [&a " + long + ", " + aliases + "]}]'}]", "app/kustomization.yaml: YAML aliases stand for more than 1048576 bytes: too large"},
		"aliases in one, older fields": {"resources: [../base]\npatchesJson6902: [{target: {kind: Deployment, name: shop, version: v1}, patch: '[{op: add, path: /x, value: [&a " + long + ", " + aliases + "]}]'}]", "app/kustomization.yaml: YAML aliases stand for more than 1048576 bytes: too large"},
		"aliases in one to merge":      {"resources: [../base]\npatchesStrategicMerge: ['{apiVersion: apps/v1, kind: Deployment, metadata: {name: shop}, x: [&a " + long + ", " + aliases + "]}']", "app/kustomization.yaml: YAML aliases stand for more than 1048576 bytes: too large"},
		"aliases in a text":            {"resources: [../text.yaml]", "text.yaml: YAML aliases stand for more than 1048576 bytes: too large"},
		"aliases before another one":   {"resources: [../texts.yaml]", "texts.yaml: YAML aliases stand for more than 1048576 bytes: too large"},
		"aliases after another one":    {"resources: [../texts-last.yaml]", "texts-last.yaml: YAML aliases stand for more than 1048576 bytes: too large"},
		"aliases in a text of a patch": {"resources: [../base]\npatchesStrategicMerge: ['{apiVersion: apps/v1, kind: Deployment, metadata: {name: shop, annotations: {x: \"{a: &a " + long + ", b: [" + aliases + "]}\"}}}']", "app/kustomization.yaml: YAML aliases stand for more than 1048576 bytes: too large"},
		"aliases in a literal":         {"configMapGenerator: [{name: a, literals: ['x={a: &a " + long + ", b: [" + aliases + "]}']}]", "app/kustomization.yaml: YAML aliases stand for more than 1048576 bytes: too large"},
		"aliases in a variable":        {"configMapGenerator: [{name: a, envs: [../bomb.env]}]", "bomb.env: YAML aliases stand for more than 1048576 bytes: too large"},
		"aliases in a patch file":      {"resources: [../base]\npatches: [{target: {kind: Deployment}, path: ../bomb.yaml}]", "bomb.yaml: YAML aliases stand for more than 1048576 bytes: too large"},
		"aliases in replacements":      {"resources: [../base]\nreplacements: [{path: ../bomb.yaml}]", "bomb.yaml: YAML aliases stand for more than 1048576 bytes: too large"},
		"aliases in a CRD":             {"resources: [../base]\ncrds: [../bomb.yaml]", "bomb.yaml: YAML aliases stand for more than 1048576 bytes: too large"},
		"aliases in configurations":    {"resources: [../base]\nconfigurations: [../bomb.yaml]", "bomb.yaml: YAML aliases stand for more than 1048576 bytes: too large"},
		"aliases in a base":            {"resources: [../bomb]", "bomb/kustomization.yaml: YAML aliases stand for more than 1048576 bytes: too large"},
		"endless alias":                {"resources: [../endless.yaml]", `endless.yaml: line 5: YAML anchor "a" contains itself: too large`},
		"object without a name":        {"resources: [../nameless.yaml]", "building app with kustomize: accumulating resources: accumulation err='accumulating resources from '../nameless.yaml': missing metadata.name in object {{example.com/v1 X} {{ } map[] map[]}}': must build at directory: '/repository/nameless.yaml': file is not directory"},
		"a folder without manifests":   {"resources: [../shared]", "building app with kustomize: accumulating resources: accumulation err='accumulating resources from '../shared': shared: is a folder, not a file': couldn't make target for path '/repository/shared': unable to find one of 'kustomization.yaml', 'kustomization.yml' or 'Kustomization' in directory '/repository/shared'"},
		"label that is not a text":     {"resources: [../number.yaml]", `app: X: metadata.labels: the value of "x" must be a text; put it in quotes`},
		"cycle":                        {"resources: [../app]", "building app with kustomize: accumulating resources: accumulation err='accumulating resources from '../app': app: is a folder, not a file': cycle detected: candidate root '/repository/app' contains visited root '/repository/app'"},
		"program of a function":        {"resources: [../function.yaml]\ntransformers: [../function.yaml]", "app/kustomization.yaml: transformers is refused: plugins can load from anywhere; use the fields of the kustomization instead; of transformers, files with LabelTransformer and AnnotationsTransformer of apiVersion builtin can be used, but ../function.yaml: it holds a X of apiVersion example.com/v1"},
		"configuration that is remote": {"configurations: ['https://example.com/a']", `app/kustomization.yaml: configurations: "https://example.com/a" is remote; only what is in the repository can be used`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			files := with(map[string]string{
				"app/kustomization.yaml":    tc.kustomization,
				"broken/kustomization.yml":  "resources: [a.yaml]",
				"large":                     strings.Repeat("x", render.MaxFileBytes+1),
				"bomb.yaml":                 "a: &a " + strings.Repeat("x", 2000) + "\nb: [" + strings.Repeat("*a, ", 1000) + "]\n",
				"bomb/kustomization.yaml":   "commonAnnotations: {a: &a " + long + ", b: [" + aliases + "]}",
				"bomb.env":                  "# [\nx={a: &a " + long + ", b: [" + aliases + "]}\n",
				"text.yaml":                 "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: '{a: &a " + long + ", b: [" + aliases + "]}'\n",
				"texts.yaml":                rendering.ConfigMap("a") + "data:\n  x: '{a: &a " + long + ", b: [" + aliases + "]}'\n---\n" + rendering.ConfigMap("b"),
				"texts-last.yaml":           rendering.ConfigMap("b") + "---\n" + rendering.ConfigMap("a") + "data:\n  x: '{a: &a " + long + ", b: [" + aliases + "]}'\n",
				"endless.yaml":              rendering.ConfigMap("a") + "data: &a {x: *a}\n",
				"nameless.yaml":             "apiVersion: example.com/v1\nkind: X\n",
				"number.yaml":               "apiVersion: example.com/v1\nkind: X\nmetadata: {name: a, labels: {x: 1}}\n",
				"function.yaml":             "apiVersion: example.com/v1\nkind: X\nmetadata: {name: a, annotations: {config.kubernetes.io/function: 'exec: {path: /bin/false}'}}\n",
				"unused/kustomization.yaml": "resources: ['https://example.com/never-read']",
			})
			files["app/link"] = link
			_, err := folder(files, "app")
			rendering.WantError(t, err, tc.want)
		})
	}
}

// Every field that kustomize loads from must refuse what kustomize would fetch, before anything is fetched.
func TestRemoteBasesAndFilesAreRefused(t *testing.T) {
	called := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { called <- r.URL.Path }))
	defer server.Close()
	fakeGit := t.TempDir()
	script := "#!/bin/sh\necho \"$@\" >> " + fakeGit + "/called\nexit 1\n"
	if err := os.WriteFile(filepath.Join(fakeGit, "git"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", fakeGit)
	url := server.URL + "/a.yaml"
	upper := "HTTP" + strings.TrimPrefix(url, "http")

	bases := []string{
		url, upper, url + "?a b", server.URL + "/org/repo//x?ref=main", "  " + url,
		"https://github.com/org/repo", "github.com/org/repo", "GitHub.com/org/repo", "github.com:org/repo.git",
		"git@127.0.0.1:org/repo.git", "git::git@127.0.0.1:org/repo", "git::https://127.0.0.1/org/repo", "ssh://127.0.0.1/org/repo",
		"file:///etc//x", "GIT::github.com/org/repo", "org-12@127.0.0.1:a/b", "https://127.0.0.1/a/b\nc",
	}
	var kustomizations []string
	for _, base := range bases {
		for _, field := range []string{"resources", "bases", "components", "Resources"} {
			kustomizations = append(kustomizations, fmt.Sprintf("%s: [%q]", field, base))
		}
	}
	for _, file := range []string{url, upper} {
		for _, format := range []string{
			"crds: [%q]", "configurations: [%q]", "patchesStrategicMerge: [%q]", "patches: [{path: %q}]", "patches: [{path: \" %s \"}]",
			"patchesJson6902: [{path: %q, target: {kind: Deployment, name: shop, version: v1}}]", "replacements: [{path: %q}]",
			"configMapGenerator: [{name: a, files: [%q]}]", "configMapGenerator: [{name: a, files: [\"x=%s\"]}]",
			"configMapGenerator: [{name: a, envs: [%q]}]", "configMapGenerator: [{name: a, env: %q}]",
			"secretGenerator: [{name: a, files: [%q]}]", "secretGenerator: [{name: a, env: %q}]", "openapi: {path: %q}",
			"generators: [%q]", "transformers: [%q]", "validators: [%q]",
		} {
			kustomizations = append(kustomizations, "resources: [../base]\n"+fmt.Sprintf(format, file))
		}
	}
	for _, kustomization := range kustomizations {
		files := with(map[string]string{
			"app/kustomization.yaml":           kustomization,
			"app/github.com/org/repo/x":        "",
			"above/kustomization.yaml":         "resources: [../app]",
			"github.com/org/repo/nothing.yaml": "",
		})
		for _, path := range []string{"app", "above"} {
			_, err := folder(files, path)
			if err == nil || !strings.HasPrefix(err.Error(), "app/kustomization.yaml: ") ||
				!strings.Contains(err.Error(), "is remote;") && !strings.Contains(err.Error(), "is refused:") {
				t.Errorf("%s: got %v, want it refused as remote", kustomization, err)
			}
		}
	}
	if len(called) > 0 {
		t.Errorf("fetched %s", <-called)
	}
	if calls, err := os.ReadFile(filepath.Join(fakeGit, "called")); err == nil {
		t.Errorf("ran git %s", calls)
	}
}

func TestPatchesMayMentionURLs(t *testing.T) {
	files := with(map[string]string{"app/kustomization.yaml": `
resources: [../base]
patchesStrategicMerge:
- |-
  apiVersion: apps/v1
  kind: Deployment
  metadata: {name: shop, annotations: {docs: "https://example.com/a"}}
configMapGenerator:
- name: links
  literals: ["docs=https://example.com"]
`})
	if _, err := folder(files, "app"); err != nil {
		t.Error(err)
	}
}

func TestTwoKustomizationsInAFolderAreRefused(t *testing.T) {
	_, err := folder(with(map[string]string{"base/kustomization.yml": "resources: [deployment.yaml]"}), "base")
	if err == nil || !strings.Contains(err.Error(), "multiple kustomization files under: /repository/base") {
		t.Errorf("got %v, want two kustomizations refused", err)
	}
}

// Each level uses the one below twice, so the objects double level by level.
func TestBasesThatDoubleEachOtherAreRefused(t *testing.T) {
	files := map[string]string{"0/kustomization.yaml": "resources: [a.yaml]", "0/a.yaml": rendering.ConfigMap("a")}
	for level := 1; level <= 30; level++ {
		files[fmt.Sprintf("%d/kustomization.yaml", level)] = "resources: [left, right]"
		files[fmt.Sprintf("%d/left/kustomization.yaml", level)] = fmt.Sprintf("namePrefix: l\nresources: [../../%d]", level-1)
		files[fmt.Sprintf("%d/right/kustomization.yaml", level)] = fmt.Sprintf("namePrefix: r\nresources: [../../%d]", level-1)
	}
	_, err := folder(rendering.Repository(files), "30")
	if !errors.Is(err, render.ErrTooLarge) {
		t.Errorf("got %v, want a limit", err)
	}
}

func TestABuildBeyondTheLimitsIsRefused(t *testing.T) {
	many := strings.Repeat(rendering.ConfigMap("a")+"---\n", 1000)
	items := "apiVersion: v1\nkind: List\nitems:\n" + strings.Repeat("- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n", 1000+1)
	generators := "configMapGenerator:\n" + strings.Repeat("- {name: a, literals: [x=y]}\n", 1000+1)
	const tooMany = "a kustomize build may read 1000 objects, counted each time a base is used: too large"
	tests := map[string]struct {
		files map[string]string
		want  string
	}{
		"objects of a file":    {map[string]string{"kustomization.yaml": "resources: [a.yaml]", "a.yaml": many + rendering.ConfigMap("b")}, "a.yaml: " + tooMany},
		"objects of two":       {map[string]string{"kustomization.yaml": "resources: [b.yaml, a.yaml]", "a.yaml": many, "b.yaml": rendering.ConfigMap("b")}, "a.yaml: " + tooMany},
		"items of a List":      {map[string]string{"kustomization.yaml": "resources: [a.yaml]", "a.yaml": items}, "a.yaml: " + tooMany},
		"generated objects":    {map[string]string{"kustomization.yaml": generators}, "kustomization.yaml: " + tooMany},
		"no object too many":   {map[string]string{"kustomization.yaml": "resources: [a.yaml]", "a.yaml": many}, "building . with kustomize: "},
		"files of a generator": {generated(1000), "f999: a kustomize build may read 1000 files, counted each time a base is used: too large"},
		"no files too many":    {generated(1000 - 1), ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := folder(rendering.Repository(tc.files), ".")
			if got := fmt.Sprint(err); tc.want != "" && !strings.HasPrefix(got, tc.want) || tc.want == "" && err != nil {
				t.Errorf("got %.200s, want %s", got, tc.want)
			}
		})
	}
}

// TestTextsThatMayBeYAMLWithAliasesAreBounded: checking each takes a parser. The file is one of them.
func TestTextsThatMayBeYAMLWithAliasesAreBounded(t *testing.T) {
	for n, want := range map[int]string{10_000 - 1: "", 10_000: "a.yaml: more than 10000 texts within it, or 16777216 bytes of them, look like YAML with aliases: too large"} {
		object := "apiVersion: example.com/v1\nkind: X\nmetadata: {name: a}\nspec: [" + strings.Repeat("'[&a x, *a]', ", n) + "]\n"
		objects, err := folder(rendering.Repository(map[string]string{"kustomization.yaml": "resources: [a.yaml]", "a.yaml": object}), ".")
		if got := fmt.Sprint(err); want != "" && got != want || want == "" && (err != nil || len(objects) != 1) {
			t.Errorf("%d texts: got %.300s, want %s", n, got, want)
		}
	}
}

// generated is a kustomization of one ConfigMap of n files.
func generated(n int) map[string]string {
	files := map[string]string{}
	kustomization := "configMapGenerator:\n- name: a\n  files:\n"
	for i := range n {
		files[fmt.Sprintf("f%d", i)] = "x"
		kustomization += fmt.Sprintf("  - f%d\n", i)
	}
	files["kustomization.yaml"] = kustomization
	return files
}

func TestBuildsRunAtTheSameTime(t *testing.T) {
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for path := range map[string]bool{"base": true, "stage": true, "deep/er": true} {
				if _, err := folder(with(nil), path); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}

func BenchmarkBuild(b *testing.B) {
	files := with(nil)
	for b.Loop() {
		if _, err := folder(files, "deep/er"); err != nil {
			b.Fatal(err)
		}
	}
}
