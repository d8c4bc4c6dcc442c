package draft

import (
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/memory"
)

// objects are new objects, in memory.
type objects struct{ *memory.Storage }

// write adds an object.
func (o objects) write(made interface {
	Encode(plumbing.EncodedObject) error
}) (plumbing.Hash, error) {
	encoded := o.NewEncodedObject()
	if err := made.Encode(encoded); err != nil {
		return plumbing.ZeroHash, fmt.Errorf("encoding an object of the new commit: %w", err)
	}
	return o.SetEncodedObject(encoded)
}

// Tree implements folder.Objects, as the other methods do.
func (d *Draft) Tree(hash plumbing.Hash) (*object.Tree, error) {
	return object.GetTree(d.objects, hash)
}

// Size returns the size of a file.
func (d *Draft) Size(hash plumbing.Hash) (int64, error) { return d.objects.EncodedObjectSize(hash) }

// Blob returns a file. It is in memory already, so it has no limit.
func (d *Draft) Blob(hash plumbing.Hash, _ int64) ([]byte, error) {
	blob, err := object.GetBlob(d.objects, hash)
	if err != nil {
		return nil, err
	}
	from, err := blob.Reader()
	if err != nil {
		return nil, fmt.Errorf("reading the new file %s: %w", hash, err)
	}
	return io.ReadAll(from)
}
