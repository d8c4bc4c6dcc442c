package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/pack"
)

// idle is how long after the last read the files of packs stay open, and what was read from them in memory. A build reads many objects
// one after the other, and to open a pack costs more than to read from it; after a start all stores are read from within seconds.
const idle = 100 * time.Millisecond

// generation is one bare object store: packs only, no refs, no loose objects.
type generation struct {
	dir       string
	limits    limits
	unpacking *packs
	// of is what it is a generation of, which is not removed while somebody reads from it.
	of *repository
	// damaged is set when an object that has to be there cannot be read; the next fetch then starts a fresh store.
	damaged atomic.Bool

	*objects
	packs int
	// commits are shallow and whole, so they may be claimed in the next fetch.
	commits []plumbing.Hash
}

// objects is what a generation reads from. It outlives one that nobody reads from any more by as long as its packs stay open.
type objects struct {
	// mu guards what follows, the rest of the generation, and every read: go-git's storage is not made for concurrent use.
	mu      sync.Mutex
	storage *filesystem.ObjectStorage
	cached  *objectCache
	// rest closes the packs when it has come; nil while they are closed.
	rest *time.Timer
}

func openGeneration(dir string, limits limits, unpacking *packs) (*generation, error) {
	if err := os.MkdirAll(filepath.Join(dir, packFolder), 0o700); err != nil {
		return nil, disk.Failed(dir, err)
	}
	g := &generation{dir: dir, limits: limits, unpacking: unpacking, objects: &objects{}}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.load(); err != nil {
		return nil, err
	}
	return g, nil
}

// load takes up the packs that are there now.
func (g *generation) load() error {
	// The paths are those of packs, so no links on the way need to be looked for. Nobody else writes here, and there are no loose
	// objects to look for.
	files := dotgit.NewWithOptions(osfs.New(g.dir), dotgit.Options{ExclusiveAccess: true})
	packs, err := files.ObjectPacks()
	if err != nil {
		return fmt.Errorf("opening the store: %w", err)
	}
	cached := newObjectCache()
	storage := filesystem.NewObjectStorageWithOptions(files, cached, filesystem.Options{KeepDescriptors: true})
	// Reads the indexes, so that a damaged one shows now.
	if _, err := storage.EncodedObjectSize(plumbing.ZeroHash); err != nil && !errors.Is(err, plumbing.ErrObjectNotFound) {
		return fmt.Errorf("opening the store: %w", err)
	}
	g.close()
	g.storage, g.cached, g.packs, g.commits = storage, cached, len(packs), readCommits(g.dir)
	return nil
}

// close closes the packs and lets go of what was read: there may be thousands of stores that nobody reads from. Packs are only
// read from, so nothing can be lost.
func (o *objects) close() {
	if o.rest != nil {
		o.rest.Stop()
		o.rest = nil
		o.cached.Clear()
		_ = o.storage.Close()
	}
}

// reading has the packs closed a while after the last read.
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

func (g *generation) packCount() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.packs
}

// size is that of the packs, in bytes.
func (g *generation) size() int64 {
	var sum int64
	packs, _ := filepath.Glob(filepath.Join(g.dir, packFolder, "*"))
	for _, path := range packs {
		if about, err := os.Stat(path); err == nil {
			sum += about.Size()
		}
	}
	return sum
}

// order is what to fetch.
type order struct {
	wants []plumbing.Hash
	// commit must be there afterwards.
	commit plumbing.Hash
	// depth 1 is the commit alone, 0 the whole history.
	depth int
}

// errNotSent means that the server sent a pack without the commit.
var errNotSent = errors.New("the server did not send the commit")

// receive fetches what is ordered into the store. When it fails, the store is as it was.
func (g *generation) receive(ctx context.Context, refs session, o order) error {
	g.mu.Lock()
	haves := g.commits
	g.mu.Unlock()
	request, err := newRequest(refs.advertised().Capabilities, o.wants, haves, o.depth)
	if err != nil {
		return err
	}
	pack, err := refs.upload(ctx, request)
	if err != nil {
		return err
	}
	defer pack.Close()
	if err := g.addPack(ctx, pack, o.commit.String()); err != nil {
		return err
	}
	return g.settle(o)
}

// settle makes the new pack readable and records the commit.
func (g *generation) settle(o order) error {
	g.mu.Lock()
	err := g.load()
	g.mu.Unlock()
	if err != nil {
		return err
	}
	if _, err := g.commitTree(o.commit); err != nil {
		return fmt.Errorf("%w %s: %w", errNotSent, o.commit, err)
	}
	if o.depth != 1 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	commits := append(append([]plumbing.Hash{}, g.commits...), o.commit)
	if err := writeCommits(g.dir, commits); err != nil {
		return disk.Failed(g.dir, err)
	}
	g.commits = commits
	return nil
}

// commitTree is the hash of the commit's tree, if both are there.
func (g *generation) commitTree(hash plumbing.Hash) (plumbing.Hash, error) {
	content, err := g.read(plumbing.CommitObject, hash, g.limits.file)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	encoded := pack.InMemory(plumbing.CommitObject, content)
	commit := &object.Commit{}
	if err := commit.Decode(encoded); err != nil {
		return plumbing.ZeroHash, fmt.Errorf("reading commit %s: %w", hash, err)
	}
	_, err = g.tree(commit.TreeHash)
	return commit.TreeHash, err
}

func (g *generation) tree(hash plumbing.Hash) (*object.Tree, error) {
	content, err := g.read(plumbing.TreeObject, hash, g.limits.file)
	if err != nil {
		return nil, err
	}
	tree := &object.Tree{}
	if err := tree.Decode(pack.InMemory(plumbing.TreeObject, content)); err != nil {
		return nil, fmt.Errorf("reading tree %s: %w", hash, err)
	}
	return tree, nil
}

// blobSize is that of a blob, in bytes, without reading it.
func (g *generation) blobSize(hash plumbing.Hash) (int64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reading()
	size, err := g.storage.EncodedObjectSize(hash)
	if err != nil {
		return 0, fmt.Errorf("reading object %s: %w", hash, err)
	}
	return size, nil
}

// read returns the content of an object of at most max bytes.
func (g *generation) read(kind plumbing.ObjectType, hash plumbing.Hash, max int64) ([]byte, error) {
	encoded, err := g.encoded(kind, hash, max)
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind, hash, err)
	}
	content, err := contentOf(encoded)
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

// encoded returns an object of at most max bytes, which is in memory.
func (g *generation) encoded(kind plumbing.ObjectType, hash plumbing.Hash, max int64) (plumbing.EncodedObject, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reading()
	if size, err := g.storage.EncodedObjectSize(hash); err == nil && size > max { // Before it is in memory.
		return nil, limit.TooLarge("an object", max)
	}
	encoded, err := g.storage.EncodedObject(kind, hash)
	if err != nil {
		return nil, err
	}
	if encoded.Size() > max {
		return nil, limit.TooLarge("a "+encoded.Type().String(), max)
	}
	return encoded, nil
}

// broken remembers that an object of a commit that is in the store could not be read.
func (g *generation) broken(err error) error {
	if err != nil && !errors.Is(err, failure.ErrTooLarge) {
		g.damaged.Store(true)
	}
	return err
}
