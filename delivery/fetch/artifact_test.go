package fetch

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
)

// entry is one of a tar archive; its size may lie.
type entry struct {
	name string
	kind byte
	text string
	// zeros are written after text.
	zeros int64
}

// archiveOf returns a tar within gzip.
func archiveOf(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var archive bytes.Buffer
	squeezed := gzip.NewWriter(&archive)
	out := tar.NewWriter(squeezed)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Typeflag: e.kind, Mode: 0o644, Size: int64(len(e.text)) + e.zeros}
		if e.kind != 0 && e.kind != tar.TypeReg {
			header.Size, header.Linkname = 0, e.text
		}
		if err := out.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if header.Size > 0 {
			_, _ = io.WriteString(out, e.text)
			_, _ = io.CopyN(out, zeros{}, e.zeros)
		}
	}
	if err := errors.Join(out.Close(), squeezed.Close()); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

const fluxLayer = "application/vnd.cncf.flux.content.v1.tar+gzip"

// publish puts an archive under a tag as "flux push artifact" does, and returns the digest of its manifest.
func (s *ociServer) publish(t *testing.T, tag, mediaType string, archive []byte) string {
	t.Helper()
	config := []byte(`{"created":"2026-01-01T00:00:00Z"}`)
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config":      map[string]any{"mediaType": "application/vnd.cncf.flux.config.v1+json", "digest": digestOf(config), "size": len(config)},
		"layers":      []map[string]any{{"mediaType": mediaType, "digest": digestOf(archive), "size": len(archive)}},
		"annotations": map[string]string{"org.opencontainers.image.revision": "main@sha1:" + strings.Repeat("a", 40)},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.manifests[tag], s.manifests[digestOf(manifest)], s.blobs[digestOf(archive)] = manifest, manifest, archive
	return digestOf(manifest)
}

// asked returns what was requested since the last call.
func (s *ociServer) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

func (s *ociServer) artifact() OCI { return OCI{URL: s.repository() + "/web", Insecure: true} }

func filesOf(t *testing.T, store *ArtifactStore, a Artifact) fs.FS {
	t.Helper()
	files, err := store.Files(a)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestArtifactFromRegistry(t *testing.T) {
	server := serveOCI(t, httptest.NewServer)
	digests := map[string]string{}
	for _, tag := range []string{"latest", "1.0.0", "1.2.0", "2.0.0-rc.1", "dev"} {
		archive := archiveOf(t, entry{name: "./", kind: tar.TypeDir}, entry{name: "./apps/", kind: tar.TypeDir}, entry{name: "./apps/tag", text: tag}, entry{name: "README", text: "hello"})
		digests[tag] = server.publish(t, tag, fluxLayer, archive)
	}
	store := NewArtifactStore(t.TempDir(), loopback)
	for name, tc := range map[string]struct {
		src      OCI
		tag      string
		revision string
	}{
		"default": {OCI{}, "latest", "latest@" + digests["latest"]},
		"tag":     {OCI{Tag: "dev"}, "dev", "dev@" + digests["dev"]},
		"semver":  {OCI{Tag: "dev", SemVer: ">=1.0.0"}, "1.2.0", "1.2.0@" + digests["1.2.0"]},
		"digest":  {OCI{Tag: "dev", SemVer: "*", Digest: digests["1.0.0"]}, "1.0.0", digests["1.0.0"]},
	} {
		t.Run(name, func(t *testing.T) {
			tc.src.URL, tc.src.Insecure = server.artifact().URL, true
			got, err := store.Fetch(t.Context(), tc.src)
			if err != nil {
				t.Fatal(err)
			}
			if got.Revision != tc.revision || got.Digest != digests[tc.tag] {
				t.Errorf("got %+v, want %s", got, tc.revision)
			}
			files := filesOf(t, store, got)
			if text, err := fs.ReadFile(files, "apps/tag"); err != nil || string(text) != tc.tag {
				t.Errorf("got %q, %v", text, err)
			}
			entries, err := fs.ReadDir(files, ".")
			if err != nil || len(entries) != 2 || entries[0].Name() != "README" || !entries[1].IsDir() {
				t.Errorf("got %v, %v", entries, err)
			}
		})
	}
}

func TestArtifactIsFetchedOnce(t *testing.T) {
	server := serveOCI(t, httptest.NewServer)
	first := server.publish(t, "latest", fluxLayer, archiveOf(t, entry{name: "a", text: "1"}))
	dir := t.TempDir()
	store := NewArtifactStore(dir, loopback)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if got, err := store.Fetch(t.Context(), server.artifact()); err != nil || got.Digest != first {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	all.Wait()
	if blobs := strings.Count(strings.Join(server.asked(), "\n"), "/blobs/"); blobs != 1 {
		t.Errorf("downloaded %d times", blobs)
	}
	// After a restart, too: one request says that nothing changed.
	got, err := NewArtifactStore(dir, loopback).Fetch(t.Context(), server.artifact())
	if asked := server.asked(); err != nil || len(asked) != 1 || !strings.HasPrefix(asked[0], "HEAD ") {
		t.Errorf("asked %v, %v", asked, err)
	}
	pinned := server.artifact()
	pinned.Digest = first
	if _, err := store.Fetch(t.Context(), pinned); err != nil || len(server.asked()) != 0 {
		t.Errorf("a digest that is there was asked for: %v", err)
	}
	held := filesOf(t, store, got)
	// What is unused goes, and what is read meanwhile stays readable.
	for _, day := range []time.Duration{0, 8} {
		if err := sweepStore(t.Context(), store, time.Now().Add(day*24*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := fs.ReadFile(held, "a"); err != nil || string(text) != "1" {
		t.Errorf("what was held cannot be read: %v", err)
	}
	for range 3 {
		runtime.GC()
	}
	if _, err := store.Files(got); !errors.Is(err, failure.ErrNotFound) {
		t.Errorf("a swept artifact: %v", err)
	}
	if _, err := store.Fetch(t.Context(), server.artifact()); err != nil {
		t.Errorf("it is not fetched again: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*", disk.Temporary)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestArtifactUnhappy(t *testing.T) {
	server := serveOCI(t, httptest.NewServer)
	good := archiveOf(t, entry{name: "a", text: "1"})
	server.publish(t, "good", fluxLayer, good)
	server.publish(t, "no-archive", "text/plain", good)
	server.publish(t, "not-gzip", fluxLayer, []byte("hello"))
	server.publish(t, "cut", fluxLayer, good[:len(good)-20])
	other := server.publish(t, "other", fluxLayer, archiveOf(t, entry{name: "b", text: "2"}))
	server.blobs[digestOf(archiveOf(t, entry{name: "b", text: "2"}))] = good
	for name, tc := range map[string]struct {
		change func(*OCI)
		kind   error
		says   string
	}{
		"no such tag":      {func(o *OCI) { o.Tag = "none" }, failure.ErrNotFound, "tag none"},
		"no such version":  {func(o *OCI) { o.SemVer = ">9" }, failure.ErrNotFound, `semver ">9"`},
		"no such digest":   {func(o *OCI) { o.Digest = "sha256:" + strings.Repeat("0", 64) }, failure.ErrNotFound, "sha256:000"},
		"not a digest":     {func(o *OCI) { o.Digest = "sha256:0" }, failure.ErrInvalid, "64 hexadecimal"},
		"not a range":      {func(o *OCI) { o.SemVer = "x.y" }, failure.ErrInvalid, "not a range"},
		"not an address":   {func(o *OCI) { o.URL = "https://x" }, failure.ErrInvalid, "oci://host/path"},
		"a password":       {func(o *OCI) { o.URL = "oci://u:hunter2@h/x" }, failure.ErrInvalid, "secretRef"},
		"no archive":       {func(o *OCI) { o.Tag = "no-archive" }, failure.ErrInvalid, "tar+gzip"},
		"not gzip":         {func(o *OCI) { o.Tag = "not-gzip" }, failure.ErrInvalid, "gzip"},
		"cut short":        {func(o *OCI) { o.Tag = "cut" }, failure.ErrInvalid, "whole"},
		"another content":  {func(o *OCI) { o.Tag = "other" }, failure.ErrUnavailable, "digest"},
		"the same, pinned": {func(o *OCI) { o.Digest = other }, failure.ErrUnavailable, "digest"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			src := server.artifact()
			tc.change(&src)
			_, err := NewArtifactStore(dir, loopback).Fetch(t.Context(), src)
			if !errors.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v", err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*", "*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestUnpackRefuses(t *testing.T) {
	small := defaultLimits()
	small.unpacked, small.unpackedFile, small.files, small.paths, small.path, small.depth = 20*limit.KiB, 4*limit.KiB, 5, 100, 40, 3
	many := func(n int, name func(int) string) (all []entry) {
		for i := range n {
			all = append(all, entry{name: name(i)})
		}
		return all
	}
	for name, tc := range map[string]struct {
		entries []entry
		kind    error
		says    string
	}{
		"absolute":        {[]entry{{name: "/etc/passwd", text: "x"}}, failure.ErrInvalid, "/etc/passwd"},
		"out of it":       {[]entry{{name: "a/../../b", text: "x"}}, failure.ErrInvalid, "a/../../b"},
		"a backslash":     {[]entry{{name: `a\b`, text: "x"}}, failure.ErrInvalid, "leads out"},
		"no name":         {[]entry{{name: "a//..//.."}}, failure.ErrInvalid, "leads out"},
		"a link":          {[]entry{{name: "web.yaml", kind: tar.TypeSymlink, text: "/etc/passwd"}}, failure.ErrInvalid, "web.yaml, which is a link"},
		"a hard link":     {[]entry{{name: "web.yaml", kind: tar.TypeLink, text: "a"}}, failure.ErrInvalid, "link"},
		"a device":        {[]entry{{name: "zero", kind: tar.TypeChar}}, failure.ErrInvalid, "device"},
		"a pipe":          {[]entry{{name: "pipe", kind: tar.TypeFifo}}, failure.ErrInvalid, "device"},
		"twice":           {[]entry{{name: "a", text: "1"}, {name: "./a", text: "2"}}, failure.ErrInvalid, "twice"},
		"file and folder": {[]entry{{name: "a", text: "1"}, {name: "a/b", text: "2"}}, failure.ErrInvalid, "as a file and as a folder"},
		"folder and file": {[]entry{{name: "a/b", text: "1"}, {name: "a", text: "2"}}, failure.ErrInvalid, "twice"},
		"a large file":    {[]entry{{name: "big.yaml", zeros: 5 * limit.KiB}}, failure.ErrTooLarge, "big.yaml of the artifact is larger than the limit of 4 KiB"},
		"large in all":    {[]entry{{name: "a", zeros: 4000}, {name: "b", zeros: 4000}, {name: "c", zeros: 4000}, {name: "d", zeros: 4000}, {name: "e", zeros: 4000}}, failure.ErrTooLarge, "the unpacked artifact is larger than the limit of 20 KiB"},
		"many files":      {many(6, func(i int) string { return fmt.Sprint(i) }), failure.ErrTooLarge, "limit of 5"},
		"many folders":    {many(3, func(i int) string { return fmt.Sprintf("%d/f", i) }), failure.ErrTooLarge, "limit of 5"},
		"a long path":     {many(1, func(int) string { return strings.Repeat("a", 41) }), failure.ErrTooLarge, "limit of 40"},
		"long paths":      {many(4, func(i int) string { return strings.Repeat("a", 35) + fmt.Sprint(i) }), failure.ErrTooLarge, "limit of 100 bytes"},
		"a deep path":     {many(1, func(int) string { return "a/b/c/d" }), failure.ErrTooLarge, "limit of 3"},
		"a deep folder":   {[]entry{{name: "a/b/c/d/", kind: tar.TypeDir}}, failure.ErrTooLarge, "limit of 3"},
	} {
		t.Run(name, func(t *testing.T) {
			err := unpack(bytes.NewReader(archiveOf(t, tc.entries...)), io.Discard, small)
			if !errors.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestABombEndsAtTheLimit unpacks 1 GiB of zeros, in one file, in many, and behind each other's headers.
func TestABombEndsAtTheLimit(t *testing.T) {
	var parts []entry
	for i := range 128 {
		parts = append(parts, entry{name: fmt.Sprintf("%d.yaml", i), zeros: limit.GiB / 128})
	}
	for name, entries := range map[string][]entry{"one file": {{name: "bomb.yaml", zeros: limit.GiB}}, "many files": parts} {
		t.Run(name, func(t *testing.T) {
			bomb := archiveOf(t, entries...)
			if len(bomb) > 4*limit.MiB {
				t.Fatalf("the bomb has %d bytes", len(bomb))
			}
			server := serveOCI(t, httptest.NewServer)
			server.publish(t, "latest", fluxLayer, bomb)
			dir := t.TempDir()
			peak := peakHeap(t, func() {
				_, err := NewArtifactStore(dir, loopback).Fetch(t.Context(), server.artifact())
				if !errors.Is(err, failure.ErrTooLarge) || !strings.Contains(err.Error(), "limit of") {
					t.Errorf("got %v", err)
				}
			})
			if peak > 16*limit.MiB {
				t.Errorf("it took %d MiB", peak/limit.MiB)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*", "*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// peakHeap is how much the heap grows at most while do runs, as far as looks every millisecond show.
func peakHeap(t *testing.T, do func()) uint64 {
	t.Helper()
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	done, peak := make(chan struct{}), make(chan uint64)
	go func() {
		most := uint64(0)
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc-min(before.HeapAlloc, now.HeapAlloc))
			select {
			case <-done:
				peak <- most
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	do()
	close(done)
	return <-peak
}

func TestASpoiledArtifactIsFetchedAgain(t *testing.T) {
	server := serveOCI(t, httptest.NewServer)
	server.publish(t, "latest", fluxLayer, archiveOf(t, entry{name: "a", text: "1"}))
	store := NewArtifactStore(t.TempDir(), loopback)
	got, err := store.Fetch(t.Context(), server.artifact())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(got.path, []byte("spoiled"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Files(got); err == nil {
		t.Error("it was read")
	}
	if got, err = store.Fetch(t.Context(), server.artifact()); err != nil {
		t.Fatal(err)
	}
	filesOf(t, store, got)
}

// TestSparseFilesCount unpacks files that are nearly all holes, as PAX has them: they are as large as they say, and not as what
// the archive holds.
func TestSparseFilesCount(t *testing.T) {
	const hole = "22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n32 GNU.sparse.realsize=16777216\n"
	var archive bytes.Buffer
	squeezed := gzip.NewWriter(&archive)
	block := func(text string) { _, _ = squeezed.Write(append([]byte(text), make([]byte, 512-len(text))...)) }
	head := func(name string, kind byte, size int) {
		h := make([]byte, 512)
		for at, text := range map[int]string{0: name, 100: "0000644", 124: fmt.Sprintf("%011o", size), 148: "        ", 156: string(kind), 257: "ustar\x0000"} {
			copy(h[at:], text)
		}
		sum := 0
		for _, c := range h {
			sum += int(c)
		}
		copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
		block(string(h[:511])) // The last byte is zero.
	}
	for i := range 17 {
		name := fmt.Sprintf("%d GNU.sparse.name=f%02d\n", 23, i)
		head("pax", 'x', len(hole+name))
		block(hole + name)
		head("sparse", '0', 512)
		block("0\n")
	}
	_, _ = squeezed.Write(make([]byte, 1024))
	_ = squeezed.Close()
	if err := unpack(&archive, io.Discard, defaultLimits()); !errors.Is(err, failure.ErrTooLarge) || !strings.Contains(err.Error(), "the unpacked artifact") {
		t.Errorf("got %v", err)
	}
}
