package folder

import (
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
