package pack

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// plain is an object as packs hold it.
func plain(t testing.TB, kind plumbing.ObjectType, content string) []byte {
	t.Helper()
	var text bytes.Buffer
	if err := Append(&text, kind, []byte(content)); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

func blob(t testing.TB, content string) []byte {
	t.Helper()
	return plain(t, plumbing.BlobObject, content)
}

// differenceTo puts what names the base of a delta between the head of an object and its content.
func differenceTo(t testing.TB, kind plumbing.ObjectType, base, delta []byte) []byte {
	t.Helper()
	text := plain(t, kind, string(delta))
	head := slices.IndexFunc(text, func(b byte) bool { return b&0x80 == 0 }) + 1
	return slices.Concat(text[:head], base, text[head:])
}

// toName is a difference to the object of a name, toOffset one to the object that begins so many bytes before.
func toName(t testing.TB, base plumbing.Hash, delta []byte) []byte {
	t.Helper()
	return differenceTo(t, plumbing.REFDeltaObject, base[:], delta)
}

func toOffset(t testing.TB, back int, delta []byte) []byte {
	t.Helper()
	// Source: "offset encoding" in gitformat-pack(5).
	offset := []byte{byte(back & 0x7f)}
	for back >>= 7; back > 0; back >>= 7 {
		back--
		offset = slices.Insert(offset, 0, 0x80|byte(back&0x7f))
	}
	return differenceTo(t, plumbing.OFSDeltaObject, offset, delta)
}

// suffixed is the delta that adds a suffix to a base; both have 1 to 127 bytes.
func suffixed(base, suffix string) []byte {
	delta := binary.AppendUvarint(nil, uint64(len(base)))
	delta = binary.AppendUvarint(delta, uint64(len(base)+len(suffix)))
	delta = append(delta, 0x90, byte(len(base)), byte(len(suffix)))
	return append(delta, suffix...)
}

func blobName(content string) plumbing.Hash {
	return plumbing.ComputeHash(plumbing.BlobObject, []byte(content))
}

// packWith is a pack of these objects.
func packWith(objects ...[]byte) []byte {
	return packOf(uint32(len(objects)), slices.Concat(objects...)) // a few
}
