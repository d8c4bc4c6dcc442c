package source

import (
	"io/fs"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/policy"
	"github.com/kubeop/kubeop/delivery/render/manifests"
)

// PlacesFor returns the function that finds the manifests of objects, whose names are "<kind>/<name>", in the source of an App. It finds nothing for an App whose
// objects have no manifests in files: charts make their objects, and so does the type Image.
func (f *Found) PlacesFor(app *v1alpha1.App) func(objects []string) map[string]policy.Place {
	var files fs.FS
	folder := ""
	switch {
	case app.Spec.Raw != nil && app.Spec.Raw.Path != "" && f.Folder != nil:
		files, folder = f.Folder, app.Spec.Raw.Path
	case app.Spec.Git != nil:
		files, folder = f.Files.FS, app.Spec.Git.Path
	}
	return func(objects []string) map[string]policy.Place {
		if files == nil {
			return nil
		}
		return manifests.Places(files, folder, objects)
	}
}
