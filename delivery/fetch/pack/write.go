package pack

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
)

// Checksum returns the SHA-1 at the end of a pack, after verifying it, and the pack's size.
func Checksum(pack io.ReadSeeker) (sum plumbing.Hash, size int64, err error) {
	size, err = pack.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = pack.Seek(0, io.SeekStart)
	}
	if err != nil {
		return sum, size, fmt.Errorf("reading the pack: %w", err)
	}
	made := sha1.New()
	if _, err := io.CopyN(made, pack, max(0, size-sha1.Size)); err != nil {
		return sum, size, fmt.Errorf("reading the pack: %w", err)
	}
	end, err := io.ReadAll(pack)
	if err != nil {
		return sum, size, fmt.Errorf("reading the pack: %w", err)
	}
	sum = plumbing.Hash(made.Sum(nil))
	if !bytes.Equal(end, sum[:]) {
		return sum, size, errors.New("the pack is damaged: its checksum does not match")
	}
	return sum, size, nil
}

// File is a pack on disk.
type File interface {
	io.ReadWriteSeeker
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
	Sync() error
}

// ErrBase means that an object of the store, on which a delta of the pack is based, cannot be read.
var ErrBase = errors.New("reading what the commit's pack builds on")

// Complete appends the bases that a thin pack leaves out, one by one, so that the pack can be read on its own, and adds them to its
// contents. It returns the new checksum. Errors other than ErrBase are about writing the file.
func Complete(file File, contents *Contents, store Store) (sum plumbing.Hash, err error) {
	end, err := file.Seek(-sha1.Size, io.SeekEnd)
	if err == nil {
		err = file.Truncate(end)
	}
	if err != nil {
		return sum, fmt.Errorf("cutting off the pack's checksum: %w", err)
	}
	for _, hash := range contents.Bases {
		kind, content, err := store.Object(hash)
		if err != nil {
			return sum, fmt.Errorf("%w: %s: %w", ErrBase, hash, err)
		}
		at, err := file.Seek(0, io.SeekCurrent)
		crc := crc32.NewIEEE()
		if err == nil {
			err = Append(io.MultiWriter(file, crc), kind, content)
		}
		if err != nil {
			return sum, fmt.Errorf("appending %s to the pack: %w", hash, err)
		}
		contents.Objects = append(contents.Objects, idxfile.Entry{Hash: hash, CRC32: crc.Sum32(), Offset: uint64(at)}) // not negative
	}
	if err := countMore(file, uint32(len(contents.Bases))); err != nil { // at most as many as objects
		return sum, fmt.Errorf("counting the objects appended to the pack: %w", err)
	}
	if sum, err = sign(file); err != nil {
		return sum, fmt.Errorf("writing the pack's checksum: %w", err)
	}
	return sum, nil
}

// countMore adds to the number of objects in a pack's header.
func countMore(pack File, objects uint32) error {
	count := make([]byte, 4)
	if _, err := pack.ReadAt(count, countOffset); err != nil {
		return err
	}
	binary.BigEndian.PutUint32(count, binary.BigEndian.Uint32(count)+objects)
	_, err := pack.WriteAt(count, countOffset)
	return err
}

// sign writes the checksum of a pack at its end.
func sign(pack File) (made plumbing.Hash, err error) {
	if _, err := pack.Seek(0, io.SeekStart); err != nil {
		return made, err
	}
	sum := sha1.New()
	if _, err := io.Copy(sum, pack); err != nil {
		return made, err
	}
	made = plumbing.Hash(sum.Sum(nil))
	if _, err := pack.Write(made[:]); err != nil {
		return made, err
	}
	return made, pack.Sync()
}

// countOffset is the offset of the number of objects in a pack, after "PACK" and the version.
const countOffset = 8

// Append writes an object in the format of packs: its type and size in groups of 4, 7, 7… bits, then the content.
func Append(pack io.Writer, kind plumbing.ObjectType, content []byte) error {
	size := len(content)
	head := []byte{byte(kind)<<4 | byte(size&0xf)}
	for size >>= 4; size > 0; size >>= 7 {
		head[len(head)-1] |= 0x80
		head = append(head, byte(size&0x7f))
	}
	if _, err := pack.Write(head); err != nil {
		return err
	}
	squeeze := zlib.NewWriter(pack)
	if _, err := squeeze.Write(content); err != nil {
		return err
	}
	return squeeze.Close()
}

// Index returns the index of a pack with these objects and this checksum, in Git's format.
func Index(objects []idxfile.Entry, checksum plumbing.Hash) ([]byte, error) {
	made := &idxfile.Writer{}
	err := made.OnHeader(uint32(len(objects))) // at most Limits.Objects
	for _, o := range objects {
		made.Add(o.Hash, o.Offset, o.CRC32)
	}
	if err == nil {
		err = made.OnFooter(checksum)
	}
	if err != nil {
		return nil, fmt.Errorf("indexing the pack: %w", err)
	}
	index, err := made.Index()
	if err != nil {
		return nil, fmt.Errorf("indexing the pack: %w", err)
	}
	var encoded bytes.Buffer
	if _, err := idxfile.NewEncoder(&encoded).Encode(index); err != nil {
		return nil, fmt.Errorf("indexing the pack: %w", err)
	}
	return encoded.Bytes(), nil
}

// InMemory returns an object with this content.
func InMemory(kind plumbing.ObjectType, content []byte) plumbing.EncodedObject {
	encoded := &plumbing.MemoryObject{}
	encoded.SetType(kind)
	_, _ = encoded.Write(content)
	return encoded
}
