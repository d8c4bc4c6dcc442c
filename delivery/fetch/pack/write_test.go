package pack

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/google/go-cmp/cmp"
)

func TestAPackWithAWrongChecksumIsRefused(t *testing.T) {
	whole := packWith(blob(t, "a"))
	flipped := bytes.Clone(whole)
	flipped[12] ^= 1
	for name, tc := range map[string]struct {
		pack []byte
		ok   bool
	}{
		"whole": {whole, true}, "nothing but its head": {packOf(0, nil), true}, "flipped": {flipped, false}, "cut off": {whole[:len(whole)-1], false},
		"more at the end": {append(bytes.Clone(whole), 0), false}, "empty": {nil, false}, "less than a checksum": {[]byte("PACK"), false},
	} {
		t.Run(name, func(t *testing.T) {
			from := bytes.NewReader(tc.pack)
			_, _ = from.Seek(3, 0)
			sum, size, err := Checksum(from)
			if (err == nil) != tc.ok || size != int64(len(tc.pack)) {
				t.Fatalf("size %d of %d, %v", size, len(tc.pack), err)
			}
			if tc.ok && !bytes.HasSuffix(tc.pack, sum[:]) {
				t.Errorf("got %s", sum)
			}
		})
	}
}

// TestGitReadsAppendedObjects has sizes at the boundaries of the groups of bits in which they are written.
func TestGitReadsAppendedObjects(t *testing.T) {
	for _, size := range []int{0, 1, 15, 16, 127, 128, 2047, 2048, 1<<18 - 1, 1 << 18} {
		content := strings.Repeat("x", size)
		scanner := packfile.NewScanner(bytes.NewReader(packWith(plain(t, plumbing.TagObject, content))))
		if _, _, err := scanner.Header(); err != nil {
			t.Fatal(err)
		}
		header, err := scanner.NextObjectHeader()
		if err != nil || header.Length != int64(size) || header.Type != plumbing.TagObject {
			t.Errorf("%d bytes: %+v, %v", size, header, err)
			continue
		}
		var got bytes.Buffer
		if _, _, err := scanner.NextObject(&got); err != nil || got.String() != content {
			t.Errorf("%d bytes: %d came back, %v", size, got.Len(), err)
		}
	}
}

// packFile is a pack on disk.
func packFile(t *testing.T, pack []byte) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pack")
	if err := os.WriteFile(path, pack, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

func TestACompletedPackCanBeReadWithoutTheStore(t *testing.T) {
	store := oneObject{[]byte("base")}
	file := packFile(t, packWith(blob(t, "a"), toName(t, blobName("base"), suffixed("base", "d"))))
	contents, err := Read(file, usual, store)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := Complete(file, contents, store)
	if err != nil {
		t.Fatal(err)
	}
	found, _, err := Checksum(file)
	if err != nil || found != sum {
		t.Errorf("the file ends with %s, returned was %s; %v", found, sum, err)
	}
	got, err := Read(file, usual, oneObject{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(contents.Objects, got.Objects); diff != "" || len(got.Objects) != 3 || len(got.Bases) != 0 {
		t.Errorf("bases %v\n%s", got.Bases, diff)
	}
}

func TestACompletePackIsNotChanged(t *testing.T) {
	pack := packWith(blob(t, "a"))
	file := packFile(t, pack)
	contents, err := Read(file, usual, oneObject{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Complete(file, contents, oneObject{}); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadFile(file.Name()); err != nil || !bytes.Equal(left, pack) {
		t.Errorf("it has %d bytes, had %d; %v", len(left), len(pack), err)
	}
}

func TestABaseThatIsGoneIsNoFaultOfTheFile(t *testing.T) {
	file := packFile(t, packWith(blob(t, "a")))
	_, err := Complete(file, &Contents{Bases: []plumbing.Hash{blobName("gone")}}, oneObject{[]byte("base")})
	if !errors.Is(err, ErrBase) || !errors.Is(err, plumbing.ErrObjectNotFound) {
		t.Errorf("got %v", err)
	}
	_ = file.Close()
	if _, err := Complete(file, &Contents{}, oneObject{}); err == nil || errors.Is(err, ErrBase) {
		t.Errorf("of a closed file: %v", err)
	}
}

// faulty is a file whose operation number fails, from 1.
type faulty struct {
	*os.File
	fails, done int
}

var errDisk = errors.New("no space left on device")

func (f *faulty) next() error {
	if f.done++; f.done == f.fails {
		return errDisk
	}
	return nil
}

func (f *faulty) Write(p []byte) (int, error) {
	if err := f.next(); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

func (f *faulty) WriteAt(p []byte, at int64) (int, error) {
	if err := f.next(); err != nil {
		return 0, err
	}
	return f.File.WriteAt(p, at)
}

func (f *faulty) ReadAt(p []byte, at int64) (int, error) {
	if err := f.next(); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, at)
}

func (f *faulty) Read(p []byte) (int, error) {
	if err := f.next(); err != nil {
		return 0, err
	}
	return f.File.Read(p)
}

func (f *faulty) Seek(offset int64, whence int) (int64, error) {
	if err := f.next(); err != nil {
		return 0, err
	}
	return f.File.Seek(offset, whence)
}

func (f *faulty) Truncate(size int64) error { return errors.Join(f.next(), f.File.Truncate(size)) }
func (f *faulty) Sync() error               { return errors.Join(f.next(), f.File.Sync()) }

// TestAPackIsNotCompleteIfAnyOperationOfItsFileFails: otherwise a damaged pack would be found only when a commit is read.
func TestAPackIsNotCompleteIfAnyOperationOfItsFileFails(t *testing.T) {
	store, thin := oneObject{[]byte("base")}, packWith(blob(t, "a"), toName(t, blobName("base"), suffixed("base", "d")))
	for n := 1; ; n++ {
		file := &faulty{File: packFile(t, thin)}
		contents, err := Read(file, usual, store)
		if err != nil {
			t.Fatal(err)
		}
		file.done, file.fails = 0, n
		_, err = Complete(file, contents, store)
		if file.done < n { // It has no more operations.
			if err != nil || n < 12 {
				t.Errorf("after %d operations: %v", n, err)
			}
			return
		}
		if !errors.Is(err, errDisk) || errors.Is(err, ErrBase) {
			t.Errorf("operation %d fails: %v", n, err)
		}
	}
}

// TestAPackIsNotReadWrongIfAnOperationOfItsFileFails: an object that could not be read must not get a name.
func TestAPackIsNotReadWrongIfAnOperationOfItsFileFails(t *testing.T) {
	store := oneObject{[]byte("base")}
	pack := packWith(blob(t, "a"), toName(t, blobName("a"), suffixed("a", "b")), toName(t, blobName("ab"), suffixed("ab", "c")), toName(t, blobName("base"), suffixed("base", "d")))
	want, err := Read(bytes.NewReader(pack), usual, store)
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for n := 1; ; n++ {
		file := &faulty{File: packFile(t, pack), fails: n}
		got, err := Read(file, usual, store)
		switch {
		case err == nil: // go-git asks where a file is, and needs no answer.
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("operation %d fails: %s", n, diff)
			}
		case !errors.Is(err, errDisk):
			t.Errorf("operation %d fails: %v", n, err)
		default:
			failed++
		}
		if file.done < n {
			break
		}
	}
	if failed < 5 {
		t.Errorf("%d operations failed", failed)
	}
	for n := 1; n <= 5; n++ {
		if _, _, err := Checksum(&faulty{File: packFile(t, pack), fails: n}); !errors.Is(err, errDisk) {
			t.Errorf("the checksum, operation %d fails: %v", n, err)
		}
	}
}

// panicking stands for a library that does not expect what a pack has.
type panicking struct{ oneObject }

func (panicking) Object(plumbing.Hash) (plumbing.ObjectType, []byte, error) {
	panic("index out of range")
}

func TestAPackOnWhichALibraryPanicsIsDamaged(t *testing.T) {
	_, err := Read(bytes.NewReader(packWith(toName(t, blobName("base"), suffixed("base", "d")))), usual, panicking{oneObject{[]byte("base")}})
	if err == nil || !strings.Contains(err.Error(), "the pack is damaged: it cannot be unpacked: index out of range") {
		t.Errorf("got %v", err)
	}
}

func TestTheIndexFindsEachObject(t *testing.T) {
	pack := packWith(blob(t, "a"), blob(t, "b"), blob(t, "c"))
	contents, err := Read(bytes.NewReader(pack), usual, oneObject{})
	if err != nil {
		t.Fatal(err)
	}
	sum, _, err := Checksum(bytes.NewReader(pack))
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := Index(contents.Objects, sum)
	if err != nil {
		t.Fatal(err)
	}
	index := idxfile.NewMemoryIndex()
	if err := idxfile.NewDecoder(bytes.NewReader(encoded)).Decode(index); err != nil {
		t.Fatal(err)
	}
	if count, err := index.Count(); count != 3 || err != nil || index.PackfileChecksum != sum {
		t.Errorf("%d objects of pack %x, want 3 of %s; %v", count, index.PackfileChecksum, sum, err)
	}
	for _, want := range contents.Objects {
		offset, err := index.FindOffset(want.Hash)
		crc, crcErr := index.FindCRC32(want.Hash)
		if offset != int64(want.Offset) || crc != want.CRC32 || err != nil || crcErr != nil {
			t.Errorf("%s: at %d with %d, want %+v; %v, %v", want.Hash, offset, crc, want, err, crcErr)
		}
	}
}
