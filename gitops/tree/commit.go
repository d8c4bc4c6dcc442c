package tree

import "github.com/kubeop/kubeop/delivery/fetch"

// Commit is a fetched commit's tree.
type Commit struct{ *fetch.Folder }

// Sub is the folder at path.
func (c Commit) Sub(path string) (Files, error) {
	folder, err := c.Folder.Sub(path)
	return Commit{folder}, err
}
