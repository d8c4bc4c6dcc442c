// Package rendering has what tests of rendered objects share.
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

// Repository makes a file system of the files, by path.
func Repository(files map[string]string) fstest.MapFS {
	made := fstest.MapFS{}
	for name, content := range files {
		made[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return made
}

// ConfigMap is a ConfigMap of a name.
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

// App reads an App the way the API server would hand it out.
func App(t *testing.T, manifest string) *v1alpha1.App {
	t.Helper()
	app := &v1alpha1.App{}
	if err := yaml.UnmarshalStrict([]byte(manifest), app); err != nil {
		t.Fatal(err)
	}
	return app
}

// Stream writes objects as documents of YAML.
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

// Golden compares with a file, which -update writes anew.
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

// WantError wants an error of exactly these words.
func WantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %q", want)
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

// Whole wants of every object what each that is rendered has: apiVersion, kind and name, and that it is no List.
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
