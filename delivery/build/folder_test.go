package build

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/apis/kustomize"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/render/manifests"
)

// counting counts the bytes of the files that are read.
type counting struct {
	fs.FS
	bytes int
}

func (r *counting) ReadFile(name string) ([]byte, error) {
	data, err := fs.ReadFile(r.FS, name)
	r.bytes += len(data)
	return data, err
}

func (r *counting) Stat(name string) (fs.FileInfo, error) { return fs.Stat(r.FS, name) }

func (r *counting) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(r.FS, name) }

func configOf(name string, size int) *fstest.MapFile {
	return &fstest.MapFile{Data: fmt.Appendf(nil, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {x: %s}\n", name, strings.Repeat("x", size))}
}

// exceeds is the limit that an error says was passed.
func exceeds(t *testing.T, err error, field string, says ...string) {
	t.Helper()
	over := &budget.Exceeded{}
	if !errors.As(err, &over) || over.Field.Name != field {
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
		"Raw": func(files fs.FS) error { _, err := manifests.Raw(app.Spec.Raw, files, limits); return err },
		"Git": func(files fs.FS) error {
			_, err := Folder(files, "deploy", &v1alpha1.Build{}, limits)
			return err
		},
		"overlay": func(files fs.FS) error {
			_, err := Folder(files, "deploy", &v1alpha1.Build{Images: []kustomize.Image{{Name: "x", NewTag: "y"}}}, limits)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			counted := &counting{FS: files}
			exceeds(t, build(counted), "appBytes", "deploy/010.yaml: ", "and the limit is 1Mi", "spec.limits.appBytes of the Tenant")
			if counted.bytes > 1_200_000 {
				t.Errorf("%d bytes were read", counted.bytes)
			}
		})
	}
	limits.Bytes = 11 << 20
	if objects, err := manifests.Raw(app.Spec.Raw, files, limits); err != nil || len(objects) != 100 {
		t.Errorf("with room for all: %d objects, %v", len(objects), err)
	}
}

// Values are counted before a parser builds them: of [[],[],…] each takes 3 bytes, and some hundred when it is read.
func TestValuesAreCountedBeforeTheyAreBuilt(t *testing.T) {
	dense := "{apiVersion: v1, kind: List, items: [" + strings.Repeat("[],", 200_000) + "]}"
	for _, name := range []string{"a.yaml", "a.json"} {
		_, err := Folder(fstest.MapFS{"deploy/" + name: {Data: []byte(dense)}}, "deploy", &v1alpha1.Build{}, budget.App{})
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
	_, err := manifests.Raw(inline.Spec.Raw, nil, limits)
	exceeds(t, err, "appValues", "spec.raw.manifests[2]: ")
}
