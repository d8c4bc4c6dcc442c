package folder

import (
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// Local returns a folder of a Git repository on this machine. dir is the directory with the repository's objects, and tree the hash of the
// folder.
func Local(dir, tree string) *Folder {
	return New(localOf(dir), plumbing.NewHash(tree), DefaultLimits())
}

// local are the objects of a repository on this machine. It implements Objects.
type local struct{ store *filesystem.Storage }

func localOf(dir string) local {
	alternates := filesystem.Options{AlternatesFS: osfs.New("/", osfs.WithBoundOS())}
	return local{filesystem.NewStorageWithOptions(osfs.New(dir, osfs.WithBoundOS()), cache.NewObjectLRUDefault(), alternates)}
}

// Tree implements Objects, as the other methods do.
func (l local) Tree(hash plumbing.Hash) (*object.Tree, error) {
	tree, err := object.GetTree(l.store, hash)
	if err != nil {
		return nil, fmt.Errorf("reading tree %s: %w", hash, err)
	}
	return tree, nil
}

// Size reads the size of a file.
func (l local) Size(hash plumbing.Hash) (int64, error) {
	size, err := l.store.EncodedObjectSize(hash)
	if errors.Is(err, plumbing.ErrObjectNotFound) { // go-git looks for sizes in no alternate.
		var file plumbing.EncodedObject
		if file, err = l.store.EncodedObject(plumbing.BlobObject, hash); err == nil {
			size = file.Size()
		}
	}
	if err != nil {
		return 0, fmt.Errorf("reading file %s: %w", hash, err)
	}
	return size, nil
}

// Blob reads a file.
func (l local) Blob(hash plumbing.Hash, most int64) ([]byte, error) {
	size, err := l.Size(hash)
	if err != nil {
		return nil, err
	}
	if size > most {
		return nil, failure.New(failure.ErrTooLarge, "a file of %d bytes, at most %d", size, most)
	}
	blob, err := object.GetBlob(l.store, hash)
	if err != nil {
		return nil, fmt.Errorf("reading file %s: %w", hash, err)
	}
	from, err := blob.Reader()
	if err != nil {
		return nil, fmt.Errorf("reading file %s: %w", hash, err)
	}
	content, err := io.ReadAll(from)
	return content, errors.Join(err, from.Close())
}
