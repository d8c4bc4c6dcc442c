package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/internal/testenv/rendering"
)

func TestARawAppBecomesTheObjectsOfItsFolderOrSpec(t *testing.T) {
	folder := rendering.Repository(map[string]string{
		"app.yaml":                     "kind: App",
		"manifests/a.yaml":             rendering.ConfigMap("a"),
		"built/kustomization.yaml":     "resources: [a.yaml]",
		"manifests/deeper/config.yaml": rendering.ConfigMap("b"),
	})
	tests := map[string]struct {
		raw     string
		files   fs.FS
		want    []string
		wantErr string
	}{
		"inline": {`{manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}, {apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Secret, metadata: {name: b}}]}]}`,
			nil, []string{"ConfigMap/a", "Secret/b"}, ""},
		"folder":         {`{path: manifests}`, folder, []string{"ConfigMap/a", "ConfigMap/b"}, ""},
		"nothing":        {`null`, nil, nil, "spec.raw is missing"},
		"inline, broken": {`{manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}, {apiVersion: v1, kind: Pod}]}`, nil, nil, "spec.raw.manifests[1]: Pod has no metadata"},
		"inline, twice": {`{manifests: [{apiVersion: v1, kind: Pod, metadata: {name: a}}, {apiVersion: v1, kind: Pod, metadata: {name: a}}]}`, nil, nil,
			"spec.raw.manifests[1]: Pod/a is already at spec.raw.manifests[0]: keep one"},
		"no folder":      {`{path: manifests}`, nil, nil, "spec.raw.path: manifests: the app has no folder"},
		"missing folder": {`{path: missing}`, folder, nil, `spec.raw.path: the app's folder has no folder "missing"`},
		"a kustomization is no manifest": {`{path: built}`, folder, nil,
			"built/kustomization.yaml:1: apiVersion and kind are missing; a kustomization must be at the path of an app of type Git, which builds it"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			app := &v1alpha1.App{Spec: rendering.App(t, "{spec: {type: Raw, raw: "+tc.raw+"}}").Spec}
			got, err := Raw(app.Spec.Raw, tc.files, budget.App{})
			if tc.wantErr != "" {
				rendering.WantError(t, err, tc.wantErr)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, rendering.Names(got)); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}
func TestInlineManifestsThatAreBroken(t *testing.T) {
	raw := &v1alpha1.RawSource{Manifests: []runtime.RawExtension{
		{Raw: []byte(`{"apiVersion": "v1", "kind": `)}, {Raw: []byte(`{"apiVersion": "v1", "apiVersion": "v2", "kind": "A"}`)}, {Raw: []byte(`7`)},
	}}
	_, err := Raw(raw, nil, budget.App{})
	if err == nil {
		t.Fatal("they are read")
	}
	for _, says := range []string{"spec.raw.manifests[0]: ", "spec.raw.manifests[1]: ", "spec.raw.manifests[2]: "} {
		if strings.Count(err.Error(), says) != 1 { // One reason each: what is not JSON is not judged as an object.
			t.Errorf("got %v, want %q in it once", err, says)
		}
	}
	limits := budget.Default().App
	limits.Bytes = 3
	var over *budget.Exceeded
	if _, err := Raw(raw, nil, limits); !errors.As(err, &over) || strings.Contains(err.Error(), "manifests[1]") {
		t.Errorf("past a limit: %v", err)
	}
}

func TestTheManifestsOfAFolderAreListed(t *testing.T) {
	files := fstest.MapFS{
		"app/b.yaml": {}, "app/a.yml": {}, "app/c.json": {}, "app/sub/d.yaml": {}, "app/readme.md": {}, "app/.hidden.yaml": {}, "app/folder.yaml/x.txt": {}, "other/e.yaml": {},
	}
	got, err := Files(files, "app")
	if diff := cmp.Diff([]string{"app/a.yml", "app/b.yaml", "app/c.json", "app/sub/d.yaml"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := Files(files, "gone"); err == nil {
		t.Errorf("got %v of a folder that is not there", got)
	}
}

func TestTooManyInlineManifestsAreRefused(t *testing.T) {
	app := &v1alpha1.App{Spec: v1alpha1.AppSpec{Raw: &v1alpha1.RawSource{}}}
	for i := range 257 {
		app.Spec.Raw.Manifests = append(app.Spec.Raw.Manifests, runtime.RawExtension{Raw: fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "o%d"}}`, i)})
	}
	const many = "spec.raw.manifests: holds 257 manifests; an app may have 256 inline, more in a folder: too large"
	if _, err := Raw(app.Spec.Raw, nil, budget.App{}); err == nil || err.Error() != many {
		t.Errorf("got %v", err)
	}
	app.Spec.Raw.Manifests = app.Spec.Raw.Manifests[:1]
	app.Spec.Raw.Manifests[0].Raw = bytes.Repeat([]byte(" "), render.MaxFileBytes+1)
	const large = "spec.raw.manifests: has 1048577 bytes; inline manifests may have 1048576 together: too large"
	if _, err := Raw(app.Spec.Raw, nil, budget.App{}); err == nil || err.Error() != large {
		t.Errorf("got %v", err)
	}
}
