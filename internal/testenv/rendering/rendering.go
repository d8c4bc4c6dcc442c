// Package rendering has helpers of tests of rendered objects.
package rendering

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Repository returns a file system with the files, by path.
func Repository(files map[string]string) fstest.MapFS {
	made := fstest.MapFS{}
	for name, content := range files {
		made[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return made
}

// ConfigMap returns the manifest of a ConfigMap.
func ConfigMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n"
}

// Names lists objects as "<kind>/<name>".
func Names(objects []*unstructured.Unstructured) []string {
	var all []string
	for _, o := range objects {
		all = append(all, o.GetKind()+"/"+o.GetName())
	}
	return all
}

// App parses an App as the API server would return it.
func App(t *testing.T, manifest string) *v1alpha1.App {
	t.Helper()
	app := &v1alpha1.App{}
	if err := yaml.UnmarshalStrict([]byte(manifest), app); err != nil {
		t.Fatal(err)
	}
	return app
}

// Stream returns objects as YAML documents.
func Stream(t *testing.T, objects []*unstructured.Unstructured) []byte {
	t.Helper()
	var docs [][]byte
	for _, o := range objects {
		doc, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, doc)
	}
	return bytes.Join(docs, []byte("---\n"))
}

// Golden compares with a file. The flag -update rewrites the file.
func Golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// WantError fails unless the error's message is exactly want.
func WantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %q", want)
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

// Whole fails unless each object has an apiVersion, a kind and a name, and is no List, as all rendered objects.
func Whole(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range objects {
		if o.GetAPIVersion() == "" || o.GetKind() == "" || o.GetName() == "" {
			t.Errorf("%v lacks apiVersion, kind or name", o.Object)
		}
		if _, items := o.Object["items"]; o.GetKind() == "List" || items && strings.HasSuffix(o.GetKind(), "List") {
			t.Errorf("%v is a List", o.Object)
		}
	}
}
