package document

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const two = `# The first.
kind: Deployment
metadata:
  name: web
spec: {replicas: 3, ratio: 1.5}
---
kind: Service
metadata: {name: web}
---
- a list
---
`

func TestReadFindsTheDocumentsOfAFolder(t *testing.T) {
	files := fstest.MapFS{
		"app/two.yaml": {Data: []byte(two)}, "other.yml": {Data: []byte("kind: Service\nmetadata: {name: web}\n")}, "app/values.yaml": {Data: []byte("replicas: 3\n")},
		"application/x.yaml": {Data: []byte("kind: Service\nmetadata: {name: web}\n")}, "app/sub/y.yaml": {Data: []byte("kind: Service\nmetadata: {name: web}\n")},
		"broken.yaml": {Data: []byte("kind: [\n")}, "notes.txt": {Data: []byte(two)}, "app/nameless.yaml": {Data: []byte("kind: Service\n")},
	}
	found, err := Read(files)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for key, of := range found {
		got[key] = len(of)
	}
	if diff := cmp.Diff(map[string]int{"Deployment/web": 1, "Service/web": 4}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	service := &unstructured.Unstructured{}
	service.SetKind("Service")
	service.SetName("web")
	for folder, want := range map[string]string{
		"app": "app/sub/y.yaml app/two.yaml application/x.yaml other.yml", ".": "app/sub/y.yaml app/two.yaml application/x.yaml other.yml",
		"application": "application/x.yaml app/sub/y.yaml app/two.yaml other.yml", "app/sub": "app/sub/y.yaml app/two.yaml application/x.yaml other.yml",
	} {
		var names []string
		for _, d := range found.Of(service, folder) {
			names = append(names, d.File)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("in %s: got %s, want %s", folder, got, want)
		}
	}
}

func TestADocumentKnowsTheLinesOfItsFields(t *testing.T) {
	nodes, err := Nodes(fstest.MapFS{"two.yaml": {Data: []byte(two)}}, "two.yaml")
	if err != nil || len(nodes) != 2 {
		t.Fatal(nodes, err)
	}
	d := &Document{File: "two.yaml", Node: nodes[0]}
	for field, want := range map[string]string{
		"": "2 ", "kind": "2 Deployment", "metadata": "3 ", "metadata name": "4 web", "spec replicas": "5 3", "metadata none": "0 ", "none": "0 ", "kind name": "0 ",
	} {
		path := strings.Fields(field)
		if got := fmt.Sprint(d.Line(path...), " ", Scalar(d.Node, path...)); got != want {
			t.Errorf("%q: got %q, want %q", field, got, want)
		}
	}
	object, err := Decode(nodes[0])
	want := map[string]any{"kind": "Deployment", "metadata": map[string]any{"name": "web"}, "spec": map[string]any{"replicas": int64(3), "ratio": 1.5}}
	if diff := cmp.Diff(want, object.Object); diff != "" || err != nil {
		t.Errorf("%v; -want +got:\n%s", err, diff)
	}
}

func TestAFileThatCannotBeParsedIsNamed(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\n" +
		"d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\ne: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\nf: &f [*e, *e, *e, *e, *e, *e, *e, *e, *e, *e]\n"
	files := fstest.MapFS{"broken.yaml": {Data: []byte("kind: a\nb: [\n")}, "bomb.yaml": {Data: []byte(bomb)}}
	for name, want := range map[string]string{"broken.yaml": "broken.yaml:", "bomb.yaml": "bomb.yaml: ", "none.yaml": "none.yaml"} {
		if nodes, err := Nodes(files, name); nodes != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v", name, nodes, err)
		}
	}
}
