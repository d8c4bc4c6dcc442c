package folder

import (
	"errors"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/kubeop/kubeop/delivery/lru"
)

// Objects has the Git objects of a commit.
type Objects interface {
	// Tree returns a folder.
	Tree(hash plumbing.Hash) (*object.Tree, error)
	// Size returns the size of a file in bytes, without reading the file.
	Size(hash plumbing.Hash) (int64, error)
	// Blob returns a file of at most max bytes; a larger one is ErrTooLarge.
	Blob(hash plumbing.Hash, max int64) ([]byte, error)
}

// trees decodes folders and caches them, so that finding a thousand paths below one folder decodes it once.
type trees struct {
	objects Objects

	mu    sync.Mutex
	known *lru.Cache[plumbing.Hash, *object.Tree]
}

// maxTrees limits the cached folders of one commit.
const maxTrees = 1024

func newTrees(objects Objects) *trees {
	return &trees{objects: objects, known: lru.New[plumbing.Hash, *object.Tree](maxTrees, nil)}
}

func (t *trees) get(hash plumbing.Hash) (*object.Tree, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if tree, ok := t.known.Get(hash); ok {
		return tree, nil
	}
	tree, err := t.objects.Tree(hash)
	if err != nil {
		return nil, err
	}
	t.known.Add(hash, tree)
	return tree, nil
}

// Over returns the folders of trees that are made of new objects and of those of this folder's commit.
func (f *Folder) Over(fresh Objects) (at func(tree string) *Folder) {
	both := newTrees(overlay{fresh, f.trees.objects})
	return func(tree string) *Folder {
		return &Folder{trees: both, hash: plumbing.NewHash(tree), limits: f.limits, filesOfSub: f.filesOfSub}
	}
}

// overlay has the objects of both. What fresh does not have is plumbing.ErrObjectNotFound there.
type overlay struct{ fresh, below Objects }

// Tree implements Objects, as the other methods do.
func (o overlay) Tree(hash plumbing.Hash) (*object.Tree, error) {
	tree, err := o.fresh.Tree(hash)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return o.below.Tree(hash)
	}
	return tree, err
}

// Size returns the size of a file.
func (o overlay) Size(hash plumbing.Hash) (int64, error) {
	size, err := o.fresh.Size(hash)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return o.below.Size(hash)
	}
	return size, err
}

// Blob returns a file.
func (o overlay) Blob(hash plumbing.Hash, most int64) ([]byte, error) {
	content, err := o.fresh.Blob(hash, most)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return o.below.Blob(hash, most)
	}
	return content, err
}
