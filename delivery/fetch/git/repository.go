package git

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/few"
)

// repository is what was fetched from one URL with one set of credentials. On disk it is a series of numbered folders, of which the highest
// is in use:
//
//	<dir>/7/objects/pack/pack-….{pack,idx}   a bare object store
//	<dir>/7/commits                          the commits that the store has with their whole trees
//	<dir>/tmp-…                              unfinished
//
// A fetch adds a pack to the folder in use, or prepares a new folder and renames it into the series. So a reader, or a process that starts
// after a crash, always finds the state before a fetch or the state after it.
type repository struct {
	dir       string
	network   *transport.Network
	limits    limits
	unpacking *packs

	mu     sync.Mutex
	opened bool
	http   *http.Client
	// current is in use, nil before the first fetch. previous is read for objects that current lacks.
	current, previous *generation
	highest           int
	// ancestry is the last result about how the commit ancestryOf relates to another one.
	ancestry   Ancestry
	ancestryOf string
}

// generations returns the stores to read, the one in use first.
func (r *repository) generations() []*generation {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.opened {
		r.open()
		r.opened = true
	}
	var all []*generation
	for _, g := range []*generation{r.current, r.previous} {
		if g != nil {
			all = append(all, g)
		}
	}
	return all
}

// open opens what an earlier process left, and removes the rest. A store that cannot be opened counts as missing.
func (r *repository) open() {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if n, err := strconv.Atoi(entry.Name()); err == nil {
			r.highest = max(r.highest, n)
		}
	}
	if r.highest > 0 {
		r.current, _ = r.openGeneration(strconv.Itoa(r.highest))
	}
	if r.current != nil {
		sweep(r.current.dir)
		sweep(filepath.Join(r.current.dir, packFolder))
	}
	for _, entry := range entries {
		unfinished, _ := filepath.Match(disk.Temporary, entry.Name())
		n, err := strconv.Atoi(entry.Name())
		if unfinished || (err == nil && (n < r.highest || r.current == nil)) {
			_ = os.RemoveAll(filepath.Join(r.dir, entry.Name()))
		}
	}
}

func (r *repository) openGeneration(name string) (*generation, error) {
	g, err := openGeneration(filepath.Join(r.dir, name), r.limits, r.unpacking)
	if err == nil {
		g.of = r
	}
	return g, err
}

// packs returns the files that count towards the disk usage.
func (r *repository) packs() []string {
	packs, _ := filepath.Glob(filepath.Join(r.dir, "*", packFolder, "pack-*"))
	return packs
}

// usable returns the generation to add to, nil when a new one is due. It limits a generation so that two of them and a pack being received
// take at most the space of seven packs.
func (r *repository) usable() *generation {
	all := r.generations()
	if len(all) == 0 || all[0].damaged.Load() || all[0].packCount() >= r.limits.packs || all[0].size() >= 2*r.limits.pack {
		return nil
	}
	return all[0]
}

// commit reads the commit from the store in use.
func (r *repository) commit(wanted target) (Commit, bool) {
	for _, g := range r.generations() {
		if g.damaged.Load() {
			continue
		}
		commit, err := g.commitWithTree(wanted.commit)
		if err != nil {
			continue
		}
		tag := wanted.annotated()
		if _, err := g.read(plumbing.TagObject, tag, g.limits.File); err != nil && !tag.IsZero() {
			continue
		}
		return Commit{
			Revision: wanted.revision(),
			Hash:     wanted.commit.String(),
			Author:   authorOf(commit),
			Time:     commit.Committer.When,
			Root:     folder.New(readable{g}, commit.TreeHash, r.limits.Limits),
			from:     r,
			ref:      fetchedTag{name: wanted.tag, tag: tag},
		}, true
	}
	return Commit{}, false
}

// maxAuthor is how many characters of an author's name are kept.
const maxAuthor = 100

// authorOf returns the name of a commit's author or, without one, the address. Anyone who may push can write any name there.
func authorOf(commit *object.Commit) string {
	return few.Line(cmp.Or(strings.TrimSpace(commit.Author.Name), commit.Author.Email), maxAuthor)
}

// read returns an object of a commit in the store.
func (r *repository) read(kind plumbing.ObjectType, hash plumbing.Hash) ([]byte, error) {
	var failed error
	for _, g := range r.generations() {
		content, err := g.read(kind, hash, r.limits.File)
		if err == nil {
			return content, nil
		}
		failed = err
	}
	return nil, failed
}

// folder reads a tree from the stores.
func (r *repository) folder(treeHash string) (*folder.Folder, error) {
	if !fullHash.MatchString(treeHash) {
		return nil, failure.New(failure.ErrInvalid, "tree %q is not a hash of 40 lower-case hexadecimal digits", few.Quote(treeHash))
	}
	hash := plumbing.NewHash(treeHash)
	for _, g := range r.generations() {
		if _, err := g.tree(hash, r.limits.File); err == nil {
			return folder.New(readable{g}, hash, r.limits.Limits), nil
		}
	}
	return nil, failure.New(failure.ErrNotFound, "tree %s is not in the store: fetch first", treeHash)
}

// renew fetches into a new generation and puts it in use. The generation before it is kept for reading; the one before that is removed once
// no reader uses it.
func (r *repository) renew(ctx context.Context, refs session, o order) (err error) {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return disk.Failed(r.dir, err)
	}
	aside, err := os.MkdirTemp(r.dir, disk.Temporary)
	if err != nil {
		return disk.Failed(r.dir, err)
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(aside)
			_ = os.Remove(r.dir) // Only if it is empty.
		}
	}()
	g, err := openGeneration(aside, r.limits, r.unpacking)
	if err != nil {
		return err
	}
	if err := g.receive(ctx, refs, o); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	name := strconv.Itoa(r.highest + 1)
	if err := os.Rename(aside, filepath.Join(r.dir, name)); err != nil {
		return disk.Failed(r.dir, err)
	}
	fresh, err := r.openGeneration(name)
	if err != nil {
		return err
	}
	r.highest++
	dropped := r.previous
	r.current, r.previous = fresh, r.current
	if dropped != nil {
		// Commits that callers still hold may be read; the folder is removed with the last of them.
		runtime.AddCleanup(dropped, func(dir string) { _ = os.RemoveAll(dir) }, dropped.dir)
	}
	return nil
}
