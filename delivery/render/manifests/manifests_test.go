package manifests

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/internal/testenv/rendering"
)

// folder reads a folder of a repository.
func folder(files fs.FS, path string) ([]*unstructured.Unstructured, error) {
	clean, err := render.Folder(files, path, "the repository")
	if err != nil {
		return nil, err
	}
	return Folder(files, clean, budget.App{})
}

func TestAFolderBecomesTheObjectsOfItsManifests(t *testing.T) {
	files := rendering.Repository(map[string]string{
		"app/b.yaml":          rendering.ConfigMap("b1") + "---\n" + rendering.ConfigMap("b2"),
		"app/a/c.yml":         rendering.ConfigMap("c"),
		"app/a/d.json":        "{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"d\"}}",
		"app/README.md":       "not: [a manifest",
		"app/.ci/build.yaml":  "not: a manifest",
		"app/.hidden.yaml":    "not: a manifest",
		"app/empty.yaml":      "# nothing\n---\n",
		"app/list.yaml":       "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: s}}\n",
		"other/outside.yaml":  rendering.ConfigMap("outside"),
		"application/no.yaml": rendering.ConfigMap("nope"),
	})
	tests := map[string][]string{
		"app":    {"ConfigMap/c", "ConfigMap/d", "ConfigMap/b1", "ConfigMap/b2", "Secret/s"},
		"app/":   {"ConfigMap/c", "ConfigMap/d", "ConfigMap/b1", "ConfigMap/b2", "Secret/s"},
		"app/a":  {"ConfigMap/c", "ConfigMap/d"},
		"./app/": {"ConfigMap/c", "ConfigMap/d", "ConfigMap/b1", "ConfigMap/b2", "Secret/s"},
		"":       {"ConfigMap/c", "ConfigMap/d", "ConfigMap/b1", "ConfigMap/b2", "Secret/s", "ConfigMap/nope", "ConfigMap/outside"},
	}
	for path, want := range tests {
		t.Run(path, func(t *testing.T) {
			got, err := folder(files, path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, rendering.Names(got)); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnUnusableFolderIsExplained(t *testing.T) {
	noObject := "apiVersion and kind are missing: not a Kubernetes object"
	tests := map[string]struct {
		files map[string]string
		path  string
		want  string
	}{
		"path that is not there":      {nil, "./nowhere", `the repository has no folder "nowhere"`},
		"path below a file":           {map[string]string{"app": ""}, "app/x", `the repository has no folder "app/x"`},
		"path to a file":              {map[string]string{"app": ""}, "app", "app: not a folder"},
		"path out of the repository":  {nil, "../app", `path "../app" must be relative and stay inside the repository`},
		"path from the root":          {nil, "/app", `path "/app" must be relative and stay inside the repository`},
		"not an object":               {map[string]string{"app/a.yaml": "# c\n---\na: b\n"}, "app", "app/a.yaml:3: " + noObject},
		"second document":             {map[string]string{"app/a.yaml": rendering.ConfigMap("a") + "---\n\na: b\n"}, "app", "app/a.yaml:7: " + noObject},
		"text":                        {map[string]string{"app/a.yaml": "hello"}, "app", "app/a.yaml:1: not a Kubernetes object: it must be a mapping with apiVersion, kind and metadata"},
		"no apiVersion":               {map[string]string{"app/a.yaml": "kind: Pod"}, "app", "app/a.yaml:1: Pod has no apiVersion"},
		"strange apiVersion":          {map[string]string{"app/a.yaml": "kind: Pod\napiVersion: a/b/c"}, "app", `app/a.yaml:1: Pod: apiVersion "a/b/c" must be <group>/<version> or v1`},
		"no metadata":                 {map[string]string{"app/a.yaml": "kind: Pod\napiVersion: v1"}, "app", "app/a.yaml:1: Pod has no metadata"},
		"no name":                     {map[string]string{"app/a.yaml": "{kind: Pod, apiVersion: v1, metadata: {}}"}, "app", "app/a.yaml:1: Pod: metadata.name is missing"},
		"name that is a number":       {map[string]string{"app/a.yaml": "{kind: Pod, apiVersion: v1, metadata: {name: 1}}"}, "app", "app/a.yaml:1: Pod: metadata.name must be a text; put it in quotes"},
		"label that is a number":      {map[string]string{"app/a.yaml": "{kind: Pod, apiVersion: v1, metadata: {name: a, labels: {x: 1}}}"}, "app", `app/a.yaml:1: Pod: metadata.labels: the value of "x" must be a text; put it in quotes`},
		"annotations that are a list": {map[string]string{"app/a.yaml": "{kind: Pod, apiVersion: v1, metadata: {name: a, annotations: [x]}}"}, "app", "app/a.yaml:1: Pod: metadata.annotations must be a mapping"},
		"namespace that is a number":  {map[string]string{"app/a.yaml": "{kind: Pod, apiVersion: v1, metadata: {name: a, namespace: 1}}"}, "app", "app/a.yaml:1: Pod: metadata.namespace must be a text; put it in quotes"},
		"a key twice":                 {map[string]string{"app/a.yaml": "kind: Pod\nkind: Job\n"}, "app", "app/a.yaml:1: yaml: unmarshal errors:\n  line 2: key \"kind\" already set in map"},
		"a key twice in JSON":         {map[string]string{"app/a.json": `{"kind": "Pod", "kind": "Job"}`}, "app", `app/a.json:1: duplicate field "kind"`},
		"two values in JSON":          {map[string]string{"app/a.json": `{} {}`}, "app", `app/a.json:1: invalid character '{' after top-level value`},
		"same object in two files":    {map[string]string{"app/a.yaml": rendering.ConfigMap("a"), "app/b.yaml": "# c\n" + rendering.ConfigMap("a")}, "app", "app/b.yaml:2: ConfigMap/a is already at app/a.yaml:1: keep one"},
		"same object, with a namespace": {map[string]string{"app/a.yaml": rendering.ConfigMap("a"), "app/b.yaml": rendering.ConfigMap("a") + "  namespace: x\n"},
			"app", "app/b.yaml:1: ConfigMap/a is already at app/a.yaml:1: keep one"},
		"kustomization further down": {map[string]string{"app/a/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"},
			"app", "app/a/kustomization.yaml:1: Kustomization is built with kustomize; it must be at the path of an app of type Git"},
		"several": {map[string]string{"app/a.yaml": "a: b", "app/b.yaml": "---\na: b"}, "app", "app/a.yaml:1: " + noObject + "\napp/b.yaml:2: " + noObject},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := folder(rendering.Repository(tc.files), tc.path)
			rendering.WantError(t, err, tc.want)
			if missing := strings.Contains(tc.want, "has no folder"); errors.Is(err, fs.ErrNotExist) != missing {
				t.Errorf("errors.Is(err, fs.ErrNotExist) = %t, want %t", !missing, missing)
			}
		})
	}
}

func TestObjectsDifferByGroupKindNamespaceAndName(t *testing.T) {
	files := rendering.Repository(map[string]string{
		"a.yaml": rendering.ConfigMap("a") + "  namespace: x\n",
		"b.yaml": rendering.ConfigMap("a") + "  namespace: z\n",
		"c.yaml": "{apiVersion: v1, kind: Secret, metadata: {name: a}}",
		"d.yaml": "{apiVersion: example.com/v1, kind: Secret, metadata: {name: a}}",
	})
	got, err := folder(files, ".")
	if err != nil || len(got) != 4 {
		t.Errorf("got %d objects and error %v, want 4", len(got), err)
	}
}

func TestLinksAndSubmodulesAreRefused(t *testing.T) {
	link := &fstest.MapFile{Data: []byte("../secret"), Mode: fs.ModeSymlink}
	submodule := &fstest.MapFile{Mode: fs.ModeIrregular}
	const isLink = ": is a symbolic link; only files and folders of the repository are read"
	const isSubmodule = ": is a submodule; only files and folders of the repository are read"
	tests := map[string]struct {
		files fstest.MapFS
		path  string
		want  string
	}{
		"link in the folder":       {fstest.MapFS{"app/a.yaml": link}, "app", "app/a.yaml" + isLink},
		"link without an ending":   {fstest.MapFS{"app/x/a": link}, "app", "app/x/a" + isLink},
		"the folder is a link":     {fstest.MapFS{"app": link}, "app", "app" + isLink},
		"link on the way":          {fstest.MapFS{"app": link, "secret/x/a.yaml": {}}, "app/x", "app" + isLink},
		"submodule in the folder":  {fstest.MapFS{"app/a": submodule}, "app", "app/a" + isSubmodule},
		"the folder is one":        {fstest.MapFS{"app": submodule}, "app", "app" + isSubmodule},
		"the kustomization is one": {fstest.MapFS{"app/kustomization.yaml": link}, "app", "app/kustomization.yaml" + isLink},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := folder(tc.files, tc.path)
			rendering.WantError(t, err, tc.want)
		})
	}
}

// odd is a repository with one folder more, of a name that only Git's own objects can have, which holds the same again.
type odd struct {
	fstest.MapFS
	name string
}

func (o odd) ReadDir(string) ([]fs.DirEntry, error) { return []fs.DirEntry{o}, nil }
func (o odd) Name() string                          { return o.name }
func (o odd) IsDir() bool                           { return true }
func (o odd) Type() fs.FileMode                     { return fs.ModeDir }
func (o odd) Info() (fs.FileInfo, error)            { return nil, fs.ErrInvalid }

func TestNamesThatLoopAreRefused(t *testing.T) {
	for name, want := range map[string]string{
		".":   `app: holds a file with a name that no file can have: "."`,
		"":    `app: holds a file with a name that no file can have: ""`,
		"..":  `.: holds a file with a name that no file can have: ".."`,
		"a/b": `app/a/b: holds a file with a name that no file can have: "a/b"`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := folder(odd{rendering.Repository(map[string]string{"app/x": ""}), name}, "app")
			rendering.WantError(t, err, want)
		})
	}
	_, err := folder(odd{rendering.Repository(map[string]string{"app/x": ""}), "a"}, "app")
	if err == nil || !strings.HasPrefix(err.Error(), "app/a/a/a/") {
		t.Errorf("got %v, want the length of paths limited", err)
	}
}

func TestAFolderBeyondTheLimitsIsRefused(t *testing.T) {
	large := rendering.Repository(map[string]string{"app/a.yaml": rendering.ConfigMap("a") + strings.Repeat("#", render.MaxFileBytes)})
	_, err := folder(large, "app")
	rendering.WantError(t, err, fmt.Sprintf("app/a.yaml: has %d bytes; a file may have 1048576: too large", len(large["app/a.yaml"].Data)))
	if !errors.Is(err, render.ErrTooLarge) {
		t.Error("not an render.ErrTooLarge")
	}
	many := map[string]string{}
	for i := range int(budget.Default().App.Objects) + 1 {
		many[fmt.Sprintf("%d.yaml", i)] = rendering.ConfigMap(fmt.Sprintf("c%d", i))
	}
	_, err = folder(rendering.Repository(many), ".")
	rendering.WantError(t, err, "objects of the app: 5001, and more than 5000 are not possible; remove some in Git")
}

// TestNothingIsReadAfterALimit: neither the file that exceeds it nor a later one is parsed, so only the limit is reported.
func TestNothingIsReadAfterALimit(t *testing.T) {
	files := rendering.Repository(map[string]string{"a.yaml": rendering.ConfigMap("a"), "b.yaml": "not: [a manifest", "c.yaml": "neither: [is this"})
	limits := budget.Default().App
	limits.Bytes = int64(len(files["a.yaml"].Data)) + 1
	got, err := Folder(files, ".", limits)
	if got != nil || err == nil || !strings.HasPrefix(err.Error(), "b.yaml: ") || !strings.Contains(err.Error(), "the manifests of the app up to this file") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%d objects, %v", len(got), err)
	}
}
