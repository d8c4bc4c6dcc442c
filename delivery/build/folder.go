package build

import (
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/delivery/render/kustomize"
	"github.com/kubeop/kubeop/delivery/render/manifests"
)

// Folder makes the objects of a folder, with the components, patches and images of an App's spec on top; files is its whole repository,
// so that a kustomization may use ../base. Substitution is left to Source.
//
// If the folder has a kustomization.yaml, kustomization.yml or Kustomization, Folder builds it with kustomize, using only files of the
// repository; otherwise it reads the folder's manifests. Links and submodules are refused. The same object must not occur twice. Errors
// name the file and line as "file:line: why", up to 20 at once; those of a kustomization name only the file. If a path does not exist, the
// error is an fs.ErrNotExist. An exceeded limit is a *budget.Exceeded or an ErrTooLarge, which names it. Without limits, the default limits
// apply.
func Folder(files fs.FS, path string, with *v1alpha1.Build, limits budget.App) ([]*unstructured.Unstructured, error) {
	folder, err := render.Folder(files, path, "the repository")
	if err != nil {
		return nil, err
	}
	name, err := kustomize.FileIn(files, folder)
	if err != nil {
		return nil, err
	}
	switch {
	case name != "" && kustomize.Changes(with):
		return kustomize.BuildWith(files, folder, []string{folder}, with)
	case name != "":
		return kustomize.Build(files, folder)
	}
	objects, err := manifests.Folder(files, folder, limits)
	if err != nil || !kustomize.Changes(with) {
		return objects, err
	}
	resources, err := manifests.Files(files, folder)
	if err != nil {
		return nil, err
	}
	return kustomize.BuildWith(files, folder, resources, with)
}
