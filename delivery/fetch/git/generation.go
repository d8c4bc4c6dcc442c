package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// generation is one bare object store: packs only, no refs, no loose objects.
type generation struct {
	dir       string
	limits    limits
	unpacking *packs
	// of keeps the repository alive: it is not removed while one of its generations is being read.
	of *repository
	// damaged is set when an object that must exist cannot be read; the next fetch then starts a new store.
	damaged atomic.Bool

	*objects
	packs int
	// commits are shallow and complete, so the next fetch may claim them.
	commits []plumbing.Hash
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

// load opens the packs that exist now.
func (g *generation) load() error {
	// The paths are those of packs, so links need not be checked. No other process writes here, and there are no loose objects.
	files := dotgit.NewWithOptions(osfs.New(g.dir), dotgit.Options{ExclusiveAccess: true})
	packs, err := files.ObjectPacks()
	if err != nil {
		return fmt.Errorf("opening the store: %w", err)
	}
	cached := newObjectCache()
	storage := filesystem.NewObjectStorageWithOptions(files, cached, filesystem.Options{KeepDescriptors: true})
	// Reads the indexes, so that a damaged one is noticed now.
	if _, err := storage.EncodedObjectSize(plumbing.ZeroHash); err != nil && !errors.Is(err, plumbing.ErrObjectNotFound) {
		return fmt.Errorf("opening the store: %w", err)
	}
	g.close()
	g.storage, g.cached, g.packs, g.commits = storage, cached, len(packs), readCommits(g.dir)
	return nil
}

// reload opens a pack that was added.
func (g *generation) reload() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.load()
}

// shut closes the packs for good.
func (g *generation) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.close()
}

func (g *generation) packCount() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.packs
}

// size returns the size of the packs, in bytes.
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

// order says what to fetch.
type order struct {
	wants []plumbing.Hash
	// commit has to be in the store afterwards.
	commit plumbing.Hash
	// depth 1 is the commit alone, 0 the whole history.
	depth int
}

// errNotSent means that the server sent a pack without the commit.
var errNotSent = errors.New("the server did not send the commit")

// receive fetches o into the store. On an error the store is unchanged.
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
	if err := g.reload(); err != nil {
		return err
	}
	if _, err := g.commitWithTree(o.commit); err != nil {
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

// commitWithTree returns a commit if the store has it and its tree.
func (g *generation) commitWithTree(hash plumbing.Hash) (*object.Commit, error) {
	commit, err := g.commit(hash, g.limits.File)
	if err != nil {
		return nil, err
	}
	_, err = g.tree(commit.TreeHash, g.limits.File)
	return commit, err
}

// readable reads objects of commits that a generation has. If one cannot be read, the generation is damaged.
type readable struct{ *generation }

// Tree implements folder.Objects.
func (r readable) Tree(hash plumbing.Hash) (*object.Tree, error) {
	tree, err := r.tree(hash, r.limits.File)
	return tree, r.check(err)
}

// Size implements folder.Objects.
func (r readable) Size(hash plumbing.Hash) (int64, error) {
	size, err := r.blobSize(hash)
	return size, r.check(err)
}

// Blob implements folder.Objects.
func (r readable) Blob(hash plumbing.Hash, max int64) ([]byte, error) {
	content, err := r.read(plumbing.BlobObject, hash, max)
	return content, r.check(err)
}

func (r readable) check(err error) error {
	if err != nil && !errors.Is(err, failure.ErrTooLarge) {
		r.damaged.Store(true)
	}
	return err
}
