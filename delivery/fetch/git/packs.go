package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"

	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/pack"
)

// packFolder is the folder of a bare store that has its packs.
var packFolder = filepath.Join("objects", "pack")

// packs reads the packs received for all repositories.
type packs struct {
	pack.Reader
	// limitOf returns the size to which one pack of a tenant, or of a Repository, may inflate; nil: limits.contents of each.
	limitOf func(name string) int64
}

type tenantKey struct{}

// onBehalfOf attributes the unpacking in a fetch to a tenant.
func onBehalfOf(ctx context.Context, tenant string) context.Context {
	return context.WithValue(ctx, tenantKey{}, tenant)
}

// bounds returns the tenant of a fetch, and the limits of its pack.
func (p *packs) bounds(ctx context.Context, l limits) (tenant string, bounds pack.Limits) {
	tenant, _ = ctx.Value(tenantKey{}).(string)
	if p.limitOf != nil {
		l.contents.Inflated = p.limitOf(budget.NameOf(tenant))
	}
	return tenant, l.contents
}

// check returns the error with which a commit was refused before.
func (p *packs) check(ctx context.Context, dir string, commit plumbing.Hash, l limits) error {
	_, bounds := p.bounds(ctx, l)
	return pack.Check(dir, commit.String(), bounds)
}

// addPack writes a pack and its index into the store. It does not use go-git's writer, which leaves files open when a transfer breaks off,
// keeps a half-written index for good, and trusts the sizes that a pack claims. A commit whose pack exceeds a limit is recorded, see
// packs.check.
func (g *generation) addPack(ctx context.Context, from io.Reader, what string) error {
	folder := filepath.Join(g.dir, packFolder)
	file, err := os.CreateTemp(folder, disk.Temporary)
	if err != nil {
		return disk.Failed(folder, err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if err := download(file, from); err != nil {
		return err
	}
	sum, size, err := pack.Checksum(file)
	if err != nil {
		return err
	}
	tenant, bounds := g.unpacking.bounds(ctx, g.limits)
	store := bases{g, bounds.Base}
	contents, err := g.unpacking.Read(ctx, pack.Pack{
		Dir: filepath.Dir(g.dir), What: what, Tenant: tenant, Limits: bounds, ReaderAt: file, Size: size,
	}, store)
	if err != nil {
		return err
	}
	if len(contents.Bases) > 0 {
		sum, err = pack.Complete(file, contents, store)
	}
	if err != nil && !errors.Is(err, pack.ErrBase) {
		return disk.Failed(folder, err)
	}
	if err != nil {
		return err
	}
	return install(folder, file, contents.Objects, sum)
}

// bases are the objects of the store that packs build on.
type bases struct {
	*generation
	max int64
}

// Size implements pack.Store.
func (b bases) Size(hash plumbing.Hash) (int64, error) { return b.blobSize(hash) }

// Object implements pack.Store.
func (b bases) Object(hash plumbing.Hash) (plumbing.ObjectType, []byte, error) {
	return b.object(plumbing.AnyObject, hash, b.max)
}

// download copies the pack to disk. Errors of the network come from the reader, errors of the operator's disk from the file, and each gets
// its own error.
func download(file *os.File, from io.Reader) error {
	out := &diskWriter{file: file}
	if _, err := io.Copy(out, from); err != nil {
		if out.err != nil {
			return disk.Failed(filepath.Dir(file.Name()), out.err)
		}
		return fmt.Errorf("receiving the commit: %w", err)
	}
	if err := file.Sync(); err != nil {
		return disk.Failed(filepath.Dir(file.Name()), err)
	}
	return nil
}

type diskWriter struct {
	file *os.File
	err  error
}

func (w *diskWriter) Write(p []byte) (int, error) {
	n, err := w.file.Write(p)
	w.err = err
	return n, err
}

// install renames the index and then the pack: a pack that has its final name is complete and has its index.
func install(folder string, file *os.File, objects []idxfile.Entry, checksum plumbing.Hash) error {
	index, err := pack.Index(objects, checksum)
	if err != nil {
		return err
	}
	name := filepath.Join(folder, "pack-"+checksum.String())
	if err := replace(name+".idx", index); err != nil {
		return disk.Failed(folder, err)
	}
	if err := os.Rename(file.Name(), name+".pack"); err != nil {
		return disk.Failed(folder, err)
	}
	return nil
}
