package render

import (
	"bytes"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// whole reports what every object that leaves this package must have.
func whole(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range objects {
		if o.GetAPIVersion() == "" || o.GetKind() == "" || o.GetName() == "" {
			t.Errorf("%v lacks apiVersion, kind or name", o.Object)
		}
		if isList(o.Object) {
			t.Errorf("%v is a List", o.Object)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "---\n---\n", manifest("a") + "---\n" + manifest("b"), "--- {apiVersion: v1, kind: List, items: [{}]}\n...\n# Source: x\n",
		"a: &a [*a]", "a: &a b\nc: *a\n", "\ufeff%YAML 1.2\n---\n- 1", "{apiVersion: v1, kind: AList, items: [{metadata: {name: a}}]}",
		"x: |\n ---\n---\r\ny: \"\n---\n\"", "<<: 1", "? a\n: b", "!!binary x",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		objects, err := Parse(stream)
		if err == nil {
			whole(t, objects)
		}
		again, errAgain := Parse(bytes.Clone(stream))
		if (err == nil) != (errAgain == nil) || !cmp.Equal(objects, again) {
			t.Errorf("parsed differently the second time: %v, then %v", err, errAgain)
		}
	})
}

// FuzzDocuments: no line with content is lost or moved.
func FuzzDocuments(f *testing.F) {
	f.Add([]byte("a\n---\nb\n...\nc\n--- d\n# e\n"))
	f.Add([]byte("\ufeff---\r\n\r\na"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		lines := bytes.SplitAfter(bytes.TrimPrefix(stream, []byte("\ufeff")), []byte("\n"))
		after := 0
		for _, doc := range documents(stream) {
			if doc.line <= after {
				t.Fatalf("document at line %d begins before line %d", doc.line, after+1)
			}
			count := bytes.Count(doc.data, []byte("\n"))
			if !bytes.HasSuffix(doc.data, []byte("\n")) {
				count++
			}
			after = doc.line + count - 1
			if got := bytes.Join(lines[doc.line-1:after], nil); !bytes.Equal(got, doc.data) {
				t.Fatalf("document at line %d holds %q, the stream has %q there", doc.line, doc.data, got)
			}
		}
	})
}

func FuzzDir(f *testing.F) {
	x := []byte(manifest("x"))
	f.Add("a.yaml", []byte(manifest("a")), x)
	f.Add("a.json", []byte(`{"apiVersion": "v1", "kind": "List", "items": [{}]}`), x)
	f.Add("a.json", []byte(`[{}]`), x)
	f.Add("kustomization.yaml", []byte("resources: [../base, x.yaml]\nnamePrefix: a-"), []byte(deploymentManifest))
	f.Add("kustomization.yaml", []byte("resources: [x.yaml]\nnamespace: n"), []byte(manifest("x")+"data: &a {x: &b [1], y: *b, <<: {}}\n---\n"+manifest("y")))
	f.Add("Kustomization", []byte("resources: [x.yaml]\npatches:\n- patch: '[{op: replace, path: /metadata/name, value: a}]'\n  target: {kind: ConfigMap}"), x)
	f.Add("kustomization.yml", []byte("resources: [../base]\npatches: [{path: x.yaml}]"), []byte(deploymentManifest))
	f.Add("kustomization.yml", []byte("configMapGenerator: [{name: a, literals: [x=y], files: [x.yaml]}]\nreplacements: [{source: {kind: ConfigMap}, targets: []}]"), x)
	f.Add("kustomization.yaml", []byte("vars: [{name: a, objref: {kind: ConfigMap, name: x, apiVersion: v1}}]\nresources: [x.yaml]\ncommonLabels: {a: b}"), x)
	f.Fuzz(func(t *testing.T, name string, data, resource []byte) {
		if !fs.ValidPath(name) {
			t.Skip("fstest.MapFS has no such names")
		}
		files := with(map[string]string{"app/x.yaml": string(resource), "app/" + name: string(data)})
		objects, err := Dir(files, "app")
		if err == nil {
			whole(t, objects)
		}
	})
}

func FuzzSetPath(f *testing.F) {
	for _, seed := range []string{"a.b", `a\.b[0].c`, "a[65536]", "[0]", "a[0][0]", `\`, "a.b.c[1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		values := map[string]any{}
		if err := setPath(values, path, "X"); err != nil {
			return
		}
		steps, err := parsePath(path)
		if err != nil {
			t.Fatalf("path was set, and does not parse: %v", err)
		}
		var at any = values
		for _, s := range steps {
			if s.index < 0 {
				at = at.(map[string]any)[s.key]
			} else {
				at = at.([]any)[s.index]
			}
		}
		if at != "X" {
			t.Errorf("found %v at the path", at)
		}
	})
}
