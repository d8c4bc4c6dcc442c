package manifests

import (
	"errors"
	"fmt"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/render"
)

// maxInline is the number of manifests in an App itself.
const maxInline = 256

// Raw returns the objects of an app of type Raw: its inline manifests, or the manifests of a folder beside app.yaml.
// files is the app's folder; it may be nil for inline manifests. The checks and errors are those of Folder, with
// "spec.raw.manifests[2]" as the place of an inline manifest. Nothing is built with kustomize.
func Raw(raw *v1alpha1.RawSource, files fs.FS, limits budget.App) ([]*unstructured.Unstructured, error) {
	switch {
	case raw == nil:
		return nil, errors.New("spec.raw is missing")
	case raw.Path == "":
		return inline(raw, limits)
	case files == nil:
		return nil, render.Missing(fs.ErrNotExist, "spec.raw.path: %s: the app has no folder", raw.Path)
	}
	folder, err := render.Folder(files, raw.Path, "the app's folder")
	if err != nil {
		return nil, fmt.Errorf("spec.raw.path: %w", err)
	}
	return Folder(files, folder, limits)
}

func inline(raw *v1alpha1.RawSource, limits budget.App) ([]*unstructured.Unstructured, error) {
	size := 0
	for i := range raw.Manifests {
		size += len(raw.Manifests[i].Raw)
	}
	switch {
	case len(raw.Manifests) > maxInline:
		return nil, fmt.Errorf("spec.raw.manifests: holds %d manifests; an app may have %d inline, more in a folder: %w", len(raw.Manifests), maxInline, render.ErrTooLarge)
	case size > render.MaxFileBytes:
		return nil, fmt.Errorf("spec.raw.manifests: has %d bytes; inline manifests may have %d together: %w", size, render.MaxFileBytes, render.ErrTooLarge)
	}
	found := newReader(limits)
	for i := range raw.Manifests {
		place := fmt.Sprintf("spec.raw.manifests[%d]", i)
		if !found.take(place, raw.Manifests[i].Raw) {
			break
		}
		value, err := decodeJSON(raw.Manifests[i].Raw)
		if err != nil {
			found.Refuse(place, err)
			continue
		}
		found.Add(place, value)
	}
	return found.Result()
}
