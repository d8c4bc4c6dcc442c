package source

import (
	"io/fs"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/policy"
	"github.com/kubeop/kubeop/delivery/render/manifests"
)

// PlaceFor returns the function that finds the manifest of an object, whose name is "<kind>/<name>", in the source of an App. It finds nothing for an App whose
// objects have no manifests in files: charts make their objects, and so does the type Image.
func (f *Found) PlaceFor(app *v1alpha1.App) func(object string) (policy.Place, bool) {
	var files fs.FS
	folder := ""
	switch {
	case app.Spec.Raw != nil && f.Folder != nil:
		files, folder = f.Folder, app.Spec.Raw.Path
	case app.Spec.Git != nil:
		files, folder = f.Files.FS, app.Spec.Git.Path
	}
	return func(object string) (policy.Place, bool) {
		if files == nil {
			return policy.Place{}, false
		}
		file, line, found := manifests.Place(files, folder, object)
		return policy.Place{File: file, Line: line}, found
	}
}
