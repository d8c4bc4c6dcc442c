package preview

import (
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/gitops/tree"
)

// Files are the files of a fetched commit. It implements tree.Files.
type Files struct{ *folder.Folder }

// Sub implements tree.Files.
func (f Files) Sub(path string) (tree.Files, error) {
	folder, err := f.Folder.Sub(path)
	return Files{folder}, err
}
