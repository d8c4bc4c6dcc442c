package render

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/apis/kustomize"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
)

// reading counts the bytes of the files that are read.
type reading struct {
	fs.FS
	bytes int
}

func (r *reading) ReadFile(name string) ([]byte, error) {
	data, err := fs.ReadFile(r.FS, name)
	r.bytes += len(data)
	return data, err
}

func (r *reading) Stat(name string) (fs.FileInfo, error) { return fs.Stat(r.FS, name) }

func (r *reading) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(r.FS, name) }

func configOf(name string, size int) *fstest.MapFile {
	return &fstest.MapFile{Data: fmt.Appendf(nil, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {x: %s}\n", name, strings.Repeat("x", size))}
}

// exceeds is the limit that an error says was passed.
func exceeds(t *testing.T, err error, field string, says ...string) {
	t.Helper()
	over := &budget.Exceeded{}
	if !errors.As(err, &over) || over.Field.Name != field || !errors.Is(err, ErrTooLarge) {
		t.Fatalf("got %v, want the limit %s to be passed", err, field)
	}
	for _, want := range says {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

// An app of 100 manifests of 100 KB is read until its limit, and no further.
func TestManifestsAreCountedBeforeTheyAreKept(t *testing.T) {
	files := fstest.MapFS{}
	for i := range 100 {
		files[fmt.Sprintf("deploy/%03d.yaml", i)] = configOf(fmt.Sprintf("c%d", i), 100_000)
	}
	limits := budget.Default().App
	limits.Bytes = 1 << 20
	app := &v1alpha1.App{Spec: v1alpha1.AppSpec{Raw: &v1alpha1.RawSource{Path: "deploy"}}}
	for name, build := range map[string]func(fs.FS) error{
		"Raw": func(files fs.FS) error { _, err := Renderer{limits}.Raw(app, files); return err },
		"Git": func(files fs.FS) error {
			_, err := Renderer{limits}.Build(files, "deploy", &v1alpha1.Build{})
			return err
		},
		"overlay": func(files fs.FS) error {
			_, err := Renderer{limits}.Build(files, "deploy", &v1alpha1.Build{Images: []kustomize.Image{{Name: "x", NewTag: "y"}}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			counted := &reading{FS: files}
			exceeds(t, build(counted), "appBytes", "deploy/010.yaml: ", "and the limit is 1Mi", "spec.limits.appBytes of the Tenant")
			if counted.bytes > 1_200_000 {
				t.Errorf("%d bytes were read", counted.bytes)
			}
		})
	}
	limits.Bytes = 11 << 20
	if objects, err := (Renderer{limits}).Raw(app, files); err != nil || len(objects) != 100 {
		t.Errorf("with room for all: %d objects, %v", len(objects), err)
	}
}

// Values are counted before a parser builds them: of [[],[],…] each takes 3 bytes, and some hundred when it is read.
func TestValuesAreCountedBeforeTheyAreBuilt(t *testing.T) {
	dense := "{apiVersion: v1, kind: List, items: [" + strings.Repeat("[],", 200_000) + "]}"
	for _, name := range []string{"a.yaml", "a.json"} {
		_, err := Build(fstest.MapFS{"deploy/" + name: {Data: []byte(dense)}}, "deploy", &v1alpha1.Build{})
		exceeds(t, err, "appValues", "deploy/"+name, "the limit is 500000")
	}
	limits := budget.Default().App
	limits.Values = 1000
	inline := &v1alpha1.App{Spec: v1alpha1.AppSpec{Raw: &v1alpha1.RawSource{}}}
	for i := range 3 {
		inline.Spec.Raw.Manifests = append(inline.Spec.Raw.Manifests, runtime.RawExtension{
			Raw: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c%d"},"x":[%s1]}`, i, strings.Repeat("1,", 200)),
		})
	}
	_, err := Renderer{limits}.Raw(inline, nil)
	exceeds(t, err, "appValues", "spec.raw.manifests[2]: ")
}

func TestWhatIsRenderedIsHeldToTheLimits(t *testing.T) {
	object := func(data any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"}, "data": data}}
	}
	many := make([]any, 1000)
	for i := range many {
		many[i] = int64(1)
	}
	cases := map[string]struct {
		limits  budget.App
		objects []*unstructured.Unstructured
		field   string
	}{
		"within":           {budget.App{Objects: 2, Bytes: 2000, Values: 1000}, []*unstructured.Unstructured{object("x"), object(nil)}, ""},
		"too many objects": {budget.App{Objects: 1, Bytes: 2000, Values: 1000}, []*unstructured.Unstructured{object("x"), object(nil)}, "appObjects"},
		"too many bytes":   {budget.App{Objects: 2, Bytes: 2000, Values: 1000}, []*unstructured.Unstructured{object(strings.Repeat("x", 2000))}, "appBytes"},
		"too long a key":   {budget.App{Objects: 2, Bytes: 2000, Values: 1000}, []*unstructured.Unstructured{object(map[string]any{strings.Repeat("x", 2000): true})}, "appBytes"},
		"too many values":  {budget.App{Objects: 2, Bytes: 9000, Values: 1000}, []*unstructured.Unstructured{object(many)}, "appValues"},
		"too many in all":  {budget.App{Objects: 9, Bytes: 2000, Values: 1000}, []*unstructured.Unstructured{object(strings.Repeat("x", 900)), object(strings.Repeat("x", 1100))}, "appBytes"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := Renderer{c.limits}.Check(c.objects)
			if c.field == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			exceeds(t, err, c.field, "spec.limits."+c.field+" of the Tenant")
		})
	}
}
