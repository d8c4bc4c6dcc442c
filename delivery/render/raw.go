package render

import (
	"errors"
	"fmt"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Raw returns the objects of an app of type Raw: its inline manifests, or the manifests of a folder beside app.yaml.
// files is the app's folder; it may be nil for inline manifests. The checks and errors are those of Dir, with
// "spec.raw.manifests[2]" as the place of an inline manifest. Nothing is built with kustomize.
func Raw(app *v1alpha1.App, files fs.FS) ([]*unstructured.Unstructured, error) {
	return usual().Raw(app, files)
}

// Raw is the function Raw with the limits of the Renderer.
func (r Renderer) Raw(app *v1alpha1.App, files fs.FS) ([]*unstructured.Unstructured, error) {
	raw := app.Spec.Raw
	switch {
	case raw == nil:
		return nil, errors.New("spec.raw is missing")
	case raw.Path == "":
		return r.inline(raw)
	case files == nil:
		return nil, &absent{fmt.Sprintf("spec.raw.path: %s: the app has no folder", raw.Path), fs.ErrNotExist}
	}
	folder, err := openFolder(files, raw.Path, "the app's folder")
	if err != nil {
		return nil, fmt.Errorf("spec.raw.path: %w", err)
	}
	return r.manifests(files, folder)
}

func (r Renderer) inline(raw *v1alpha1.RawSource) ([]*unstructured.Unstructured, error) {
	size := 0
	for i := range raw.Manifests {
		size += len(raw.Manifests[i].Raw)
	}
	switch {
	case len(raw.Manifests) > maxInline:
		return nil, fmt.Errorf("spec.raw.manifests: holds %d manifests; an app may have %d inline, more in a folder: %w", len(raw.Manifests), maxInline, ErrTooLarge)
	case size > maxFileBytes:
		return nil, fmt.Errorf("spec.raw.manifests: has %d bytes; inline manifests may have %d together: %w", size, maxFileBytes, ErrTooLarge)
	}
	found := objectSet{limits: r.Limits}
	for i := range raw.Manifests {
		place := fmt.Sprintf("spec.raw.manifests[%d]", i)
		if !found.take(place, raw.Manifests[i].Raw) {
			break
		}
		value, err := decodeJSON(raw.Manifests[i].Raw)
		if err != nil {
			found.refuse(place, err)
			continue
		}
		found.add(place, value)
	}
	return found.result()
}
