package fetch

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"

	"github.com/kubeop/kubeop/delivery/fetch/limit"
)

// packFolder is where a bare store keeps its packs.
var packFolder = filepath.Join("objects", "pack")

// addPack writes a pack and its index into the store. go-git's own writer is not used: it leaves files open when a
// transfer breaks off, keeps a half-written index for good, and trusts the sizes a pack claims.
func (g *generation) addPack(ctx context.Context, from io.Reader) error {
	folder := filepath.Join(g.dir, packFolder)
	file, err := os.CreateTemp(folder, temporary)
	if err != nil {
		return diskFailed(folder, err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if err := download(file, from); err != nil {
		return err
	}
	place, err := g.unpacking.enter(ctx)
	if err != nil {
		return err
	}
	defer place.leave()
	limit, cancel := context.WithTimeoutCause(ctx, g.limits.unpack, limit.TooSlow("unpacking the commit takes longer than", g.limits.unpack))
	defer cancel()
	if err := g.unpack(limit, file, place); err != nil {
		if ctx.Err() == nil && limit.Err() != nil {
			return context.Cause(limit)
		}
		return err
	}
	return nil
}

// unpack checks and completes a pack, and gives it its index and its name. It is done in this process: it needs the store's objects, and
// may read hundreds of MiB, which would all have to be sent to another one. What it may cost is bounded by what the pack inflates to.
func (g *generation) unpack(ctx context.Context, file *os.File, place *unpackPlace) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("the pack is damaged: it cannot be unpacked: %v", cause)
		}
	}()
	pack := interruptible{ctx: ctx, ReadSeeker: file}
	if err := checksum(pack); err != nil {
		return err
	}
	bases, err := inspect(pack, g, place.bound(g.limits), place.enlarge)
	if err != nil {
		return err
	}
	if err := g.complete(file, bases); err != nil {
		return err
	}
	index, err := indexOf(pack, g.limits)
	if err != nil {
		return err
	}
	return install(filepath.Dir(file.Name()), file, index)
}

// download copies the pack to disk. What the reader and the file report is kept apart: one is the network, the other
// our disk.
func download(file *os.File, from io.Reader) error {
	out := &diskWriter{file: file}
	if _, err := io.Copy(out, from); err != nil {
		if out.err != nil {
			return diskFailed(filepath.Dir(file.Name()), out.err)
		}
		return fmt.Errorf("receiving the commit: %w", err)
	}
	if err := file.Sync(); err != nil {
		return diskFailed(filepath.Dir(file.Name()), err)
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

// checksum compares the pack with the SHA-1 that ends it.
func checksum(pack io.ReadSeeker) error {
	size, err := pack.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("reading the pack: %w", err)
	}
	if _, err := pack.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("reading the pack: %w", err)
	}
	sum := sha1.New()
	if _, err := io.CopyN(sum, pack, max(0, size-sha1.Size)); err != nil {
		return fmt.Errorf("reading the pack: %w", err)
	}
	end, err := io.ReadAll(pack)
	if err != nil {
		return fmt.Errorf("reading the pack: %w", err)
	}
	if !bytes.Equal(end, sum.Sum(nil)) {
		return errors.New("the pack is damaged: its checksum does not match")
	}
	return nil
}

// complete appends the bases a thin pack leaves out, one by one, so that each pack can be read on its own.
func (g *generation) complete(pack *os.File, bases []plumbing.Hash) error {
	if len(bases) == 0 {
		return nil
	}
	failed := func(err error) error { return diskFailed(filepath.Dir(pack.Name()), err) }
	size, err := pack.Seek(-sha1.Size, io.SeekEnd)
	if err != nil {
		return failed(err)
	}
	if err := pack.Truncate(size); err != nil {
		return failed(err)
	}
	for _, hash := range bases {
		base, err := g.encoded(plumbing.AnyObject, hash, g.limits.object)
		if err != nil {
			return fmt.Errorf("reading %s, which the pack builds on: %w", hash, err)
		}
		if err := appendObject(pack, base); err != nil {
			return failed(err)
		}
	}
	if err := countMore(pack, uint32(len(bases))); err != nil {
		return failed(err)
	}
	return nil
}

// countMore has a pack say that it has more objects, and ends it with its checksum.
func countMore(pack *os.File, objects uint32) error {
	count := make([]byte, 4)
	if _, err := pack.ReadAt(count, countOffset); err != nil {
		return err
	}
	binary.BigEndian.PutUint32(count, binary.BigEndian.Uint32(count)+objects)
	if _, err := pack.WriteAt(count, countOffset); err != nil {
		return err
	}
	if _, err := pack.Seek(0, io.SeekStart); err != nil {
		return err
	}
	sum := sha1.New()
	if _, err := io.Copy(sum, pack); err != nil {
		return err
	}
	if _, err := pack.Write(sum.Sum(nil)); err != nil {
		return err
	}
	return pack.Sync()
}

// countOffset is where a pack says how many objects it has, after "PACK" and its version.
const countOffset = 8

// appendObject writes an object as packs hold it: its type and size in groups of 4, 7, 7… bits, then the content.
func appendObject(pack io.Writer, o plumbing.EncodedObject) error {
	size := o.Size()
	head := []byte{byte(o.Type())<<4 | byte(size&0xf)}
	for size >>= 4; size > 0; size >>= 7 {
		head[len(head)-1] |= 0x80
		head = append(head, byte(size&0x7f))
	}
	if _, err := pack.Write(head); err != nil {
		return err
	}
	content, err := o.Reader()
	if err != nil {
		return err
	}
	defer content.Close()
	squeeze := zlib.NewWriter(pack)
	if _, err := io.Copy(squeeze, content); err != nil {
		return err
	}
	return squeeze.Close()
}

// install gives index and pack their names, the pack last: a pack that has its name is complete and has its index.
func install(folder string, pack *os.File, index *idxfile.MemoryIndex) error {
	name := filepath.Join(folder, "pack-"+plumbing.Hash(index.PackfileChecksum).String())
	var encoded bytes.Buffer
	if _, err := idxfile.NewEncoder(&encoded).Encode(index); err != nil {
		return fmt.Errorf("indexing the pack: %w", err)
	}
	if err := replace(name+".idx", encoded.Bytes()); err != nil {
		return diskFailed(folder, err)
	}
	if err := os.Rename(pack.Name(), name+".pack"); err != nil {
		return diskFailed(folder, err)
	}
	return nil
}
