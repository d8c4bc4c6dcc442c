package git

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/pack"
)

// idle is how long packs stay open after the last read, and how long their objects stay cached. A build reads many objects one after the
// other, and opening a pack costs more than reading from it. After a start all stores are read within seconds.
const idle = 100 * time.Millisecond

// objects reads the packs of a generation. It exists longer than its generation while the packs are open.
type objects struct {
	// mu guards the following fields, the rest of the generation, and every read: go-git's storage is not safe for concurrent use.
	mu      sync.Mutex
	storage *filesystem.ObjectStorage
	cached  objectCache
	// rest closes the packs when it fires; nil while they are closed.
	rest *time.Timer
}

// close closes the packs and drops the cache, because there may be thousands of unused stores. Packs are only read, so nothing can be lost.
func (o *objects) close() {
	if o.rest != nil {
		o.rest.Stop()
		o.rest = nil
		o.cached.Clear()
		_ = o.storage.Close()
	}
}

// reading postpones the closing of the packs.
func (o *objects) reading() {
	if o.rest != nil {
		o.rest.Reset(idle)
		return
	}
	o.rest = time.AfterFunc(idle, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.close()
	})
}

// blobSize returns the size of a blob, in bytes, without reading it.
func (o *objects) blobSize(hash plumbing.Hash) (int64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reading()
	size, err := o.storage.EncodedObjectSize(hash)
	if err != nil {
		return 0, fmt.Errorf("reading object %s: %w", hash, err)
	}
	return size, nil
}

// read returns the content of an object of at most max bytes.
func (o *objects) read(kind plumbing.ObjectType, hash plumbing.Hash, max int64) ([]byte, error) {
	_, content, err := o.object(kind, hash, max)
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind, hash, err)
	}
	return content, nil
}

func contentOf(encoded plumbing.EncodedObject) ([]byte, error) {
	reader, err := encoded.Reader()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	content := make([]byte, encoded.Size())
	_, err = io.ReadFull(reader, content)
	return content, err
}

// object returns the type and the content of an object of at most max bytes. The lock is held until the content is read: go-git reads that
// of a large object, and what it builds on, from the pack and the cache only when it is requested.
func (o *objects) object(kind plumbing.ObjectType, hash plumbing.Hash, max int64) (plumbing.ObjectType, []byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reading()
	if size, err := o.storage.EncodedObjectSize(hash); err == nil && size > max { // Checked before it is read into memory.
		return kind, nil, failure.TooLarge("an object", max)
	}
	encoded, err := o.storage.EncodedObject(kind, hash)
	if err != nil {
		return kind, nil, err
	}
	if encoded.Size() > max {
		return kind, nil, failure.TooLarge("a "+encoded.Type().String(), max)
	}
	content, err := contentOf(encoded)
	return encoded.Type(), content, err
}

// commit reads a commit.
func (o *objects) commit(hash plumbing.Hash, max int64) (*object.Commit, error) {
	content, err := o.read(plumbing.CommitObject, hash, max)
	if err != nil {
		return nil, err
	}
	return decodeCommit(hash, content)
}

func decodeCommit(hash plumbing.Hash, content []byte) (*object.Commit, error) {
	commit := &object.Commit{}
	if err := commit.Decode(pack.InMemory(plumbing.CommitObject, content)); err != nil {
		return nil, fmt.Errorf("reading commit %s: %w", hash, err)
	}
	return commit, nil
}

// tree reads a folder.
func (o *objects) tree(hash plumbing.Hash, max int64) (*object.Tree, error) {
	content, err := o.read(plumbing.TreeObject, hash, max)
	if err != nil {
		return nil, err
	}
	tree := &object.Tree{}
	if err := tree.Decode(pack.InMemory(plumbing.TreeObject, content)); err != nil {
		return nil, fmt.Errorf("reading tree %s: %w", hash, err)
	}
	return tree, nil
}
