package artifact

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

const fluxLayer = "application/vnd.cncf.flux.content.v1.tar+gzip"

var loopback = &transport.Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}

func ofServer(s *sources.OCIServer) OCI { return OCI{URL: s.Repository() + "/web", Insecure: true} }

func filesOf(t *testing.T, store *Store, a Artifact) fs.FS {
	t.Helper()
	files, err := store.Files(a)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestAnArtifactIsFetchedFromARegistry(t *testing.T) {
	server := sources.ServeOCI(t, httptest.NewServer)
	digests := map[string]string{}
	for _, tag := range []string{"latest", "1.0.0", "1.2.0", "2.0.0-rc.1", "dev"} {
		archive := sources.TarGz(t, sources.Entry{Name: "./", Kind: tar.TypeDir}, sources.Entry{Name: "./apps/", Kind: tar.TypeDir}, sources.Entry{Name: "./apps/tag", Text: tag}, sources.Entry{Name: "README", Text: "hello"})
		digests[tag] = server.PushArtifact(t, tag, fluxLayer, archive)
	}
	store := NewStore(t.TempDir(), loopback)
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
			tc.src.URL, tc.src.Insecure = ofServer(server).URL, true
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
	server := sources.ServeOCI(t, httptest.NewServer)
	first := server.PushArtifact(t, "latest", fluxLayer, sources.TarGz(t, sources.Entry{Name: "a", Text: "1"}))
	dir := t.TempDir()
	store := NewStore(dir, loopback)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if got, err := store.Fetch(t.Context(), ofServer(server)); err != nil || got.Digest != first {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	all.Wait()
	if blobs := strings.Count(strings.Join(server.Requests(), "\n"), "/blobs/"); blobs != 1 {
		t.Errorf("downloaded %d times, want 1", blobs)
	}
	// After a restart, too: one request says that nothing changed.
	got, err := NewStore(dir, loopback).Fetch(t.Context(), ofServer(server))
	if asked := server.Requests(); err != nil || len(asked) != 1 || !strings.HasPrefix(asked[0], "HEAD ") {
		t.Errorf("asked %v, %v", asked, err)
	}
	pinned := ofServer(server)
	pinned.Digest = first
	if _, err := store.Fetch(t.Context(), pinned); err != nil || len(server.Requests()) != 0 {
		t.Errorf("a digest that is there was asked for: %v", err)
	}
	held := filesOf(t, store, got)
	// What is unused goes, and what is read meanwhile stays readable.
	for _, day := range []time.Duration{0, 8} {
		if err := disk.New(func() time.Time { return time.Now().Add(day * 24 * time.Hour) }, store).Sweep(t.Context()); err != nil {
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
	if _, err := store.Fetch(t.Context(), ofServer(server)); err != nil {
		t.Errorf("it is not fetched again: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*", disk.Temporary)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestATagThatIsPushedWhileItIsResolvedIsSeen: an answer that was requested before a push is for no caller that came after it.
func TestATagThatIsPushedWhileItIsResolvedIsSeen(t *testing.T) {
	answered, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	server := sources.ServeOCI(t, func(registry http.Handler) *httptest.Server {
		return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer := httptest.NewRecorder()
			registry.ServeHTTP(answer, r)
			once.Do(func() {
				close(answered)
				<-release
			})
			maps.Copy(w.Header(), answer.Header())
			w.WriteHeader(answer.Code)
			_, _ = w.Write(answer.Body.Bytes())
		}))
	})
	before := server.PushArtifact(t, "latest", fluxLayer, sources.TarGz(t, sources.Entry{Name: "a", Text: "1"}))
	store := NewStore(t.TempDir(), loopback)
	var both sync.WaitGroup
	fetch := func(want string) {
		if got, err := store.Fetch(t.Context(), ofServer(server)); err != nil || got.Digest != want {
			t.Errorf("got %s and %v, want %s", got.Digest, err, want)
		}
	}
	both.Go(func() { fetch(before) })
	<-answered
	after := server.PushArtifact(t, "latest", fluxLayer, sources.TarGz(t, sources.Entry{Name: "a", Text: "2"}))
	both.Go(func() { fetch(after) })
	for store.arrivals.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	close(release)
	both.Wait()
}

// TestAManifestThatIsCutOffIsNoOtherManifest: the connection ended, so the registry counts as one that does not answer.
func TestAManifestThatIsCutOffIsNoOtherManifest(t *testing.T) {
	server := sources.ServeOCI(t, func(registry http.Handler) *httptest.Server {
		return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/manifests/sha256:") {
				registry.ServeHTTP(w, r)
				return
			}
			answer := httptest.NewRecorder()
			registry.ServeHTTP(answer, r)
			maps.Copy(w.Header(), answer.Header())
			w.Header().Set("Content-Length", strconv.Itoa(answer.Body.Len()))
			w.WriteHeader(answer.Code)
			_, _ = w.Write(answer.Body.Bytes()[:answer.Body.Len()/2])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}))
	})
	server.PushArtifact(t, "latest", fluxLayer, sources.TarGz(t, sources.Entry{Name: "a", Text: "1"}))
	_, err := NewStore(t.TempDir(), loopback).Fetch(t.Context(), ofServer(server))
	if !errors.Is(err, failure.ErrUnavailable) || errors.Is(err, failure.ErrServer) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want an unavailable registry whose answer ended early", err)
	}
}

// TestARangeOfVersionsIsNotResolvedFromAPartOfTheTags: the highest version may be on the page that fails.
func TestARangeOfVersionsIsNotResolvedFromAPartOfTheTags(t *testing.T) {
	for name, fails := range map[string]func(*http.Request) bool{
		"no page":      func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/tags/list") },
		"a later page": func(r *http.Request) bool { return r.URL.Query().Get("last") != "" },
	} {
		t.Run(name, func(t *testing.T) {
			server := sources.ServeOCI(t, func(registry http.Handler) *httptest.Server {
				return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if fails(r) {
						w.WriteHeader(http.StatusBadGateway)
						return
					}
					registry.ServeHTTP(w, r)
				}))
			})
			for _, tag := range []string{"1.0.0", "1.1.0", "1.2.0"} {
				server.PushArtifact(t, tag, fluxLayer, sources.TarGz(t, sources.Entry{Name: "a", Text: tag}))
			}
			src := ofServer(server)
			src.SemVer = ">=1.0.0"
			got, err := NewStore(t.TempDir(), loopback).Fetch(t.Context(), src)
			if !errors.Is(err, failure.ErrServer) || !strings.Contains(err.Error(), "502 Bad Gateway") {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestUnusableArtifactsAreExplained(t *testing.T) {
	server := sources.ServeOCI(t, httptest.NewServer)
	good := sources.TarGz(t, sources.Entry{Name: "a", Text: "1"})
	server.PushArtifact(t, "good", fluxLayer, good)
	server.PushArtifact(t, "no-archive", "text/plain", good)
	server.PushArtifact(t, "not-gzip", fluxLayer, []byte("hello"))
	server.PushArtifact(t, "cut", fluxLayer, good[:len(good)-20])
	other := server.PushArtifact(t, "other", fluxLayer, sources.TarGz(t, sources.Entry{Name: "b", Text: "2"}))
	server.Blobs[sources.DigestOf(sources.TarGz(t, sources.Entry{Name: "b", Text: "2"}))] = good
	server.Manifests["not-json"] = []byte(`{"layers": [`)
	server.Manifests["long"] = bytes.Repeat([]byte(" "), 4*limit.MiB+1)
	server.Manifests["huge"] = fmt.Appendf(nil, `{"schemaVersion": 2, "layers": [{"mediaType": %q, "digest": %q, "size": %d}]}`, fluxLayer, sources.DigestOf(good), int64(limit.GiB))
	for _, tag := range []string{"not-json", "long", "huge"} {
		server.Manifests[sources.DigestOf(server.Manifests[tag])] = server.Manifests[tag]
	}
	forged := "sha256:" + strings.Repeat("f", 64)
	server.Manifests[forged] = server.Manifests["good"]
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
		"not a manifest":   {func(o *OCI) { o.Tag = "not-json" }, failure.ErrInvalid, "manifest is not JSON"},
		"a long manifest":  {func(o *OCI) { o.Tag = "long" }, failure.ErrTooLarge, "the artifact's manifest is larger than the limit of 4 MiB"},
		"too large":        {func(o *OCI) { o.Tag = "huge" }, failure.ErrTooLarge, "the artifact is larger than the limit of "},
		"a forged digest":  {func(o *OCI) { o.Digest = forged }, failure.ErrUnavailable, "serves as the manifest has another digest than " + forged},
		"another content":  {func(o *OCI) { o.Tag = "other" }, failure.ErrUnavailable, "digest"},
		"the same, pinned": {func(o *OCI) { o.Digest = other }, failure.ErrUnavailable, "digest"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			src := ofServer(server)
			tc.change(&src)
			_, err := NewStore(dir, loopback).Fetch(t.Context(), src)
			if !errors.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v", err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*", "*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestUnpackRefusesHostileArchives(t *testing.T) {
	small := defaultLimits()
	small.unpacked, small.unpackedFile, small.files, small.paths, small.path, small.depth = 20*limit.KiB, 4*limit.KiB, 5, 100, 40, 3
	many := func(n int, name func(int) string) (all []sources.Entry) {
		for i := range n {
			all = append(all, sources.Entry{Name: name(i)})
		}
		return all
	}
	for name, tc := range map[string]struct {
		entries []sources.Entry
		kind    error
		says    string
	}{
		"absolute":        {[]sources.Entry{{Name: "/etc/passwd", Text: "x"}}, failure.ErrInvalid, "/etc/passwd"},
		"out of it":       {[]sources.Entry{{Name: "a/../../b", Text: "x"}}, failure.ErrInvalid, "a/../../b"},
		"a backslash":     {[]sources.Entry{{Name: `a\b`, Text: "x"}}, failure.ErrInvalid, "leads out"},
		"no name":         {[]sources.Entry{{Name: "a//..//.."}}, failure.ErrInvalid, "leads out"},
		"a link":          {[]sources.Entry{{Name: "web.yaml", Kind: tar.TypeSymlink, Text: "/etc/passwd"}}, failure.ErrInvalid, "web.yaml, which is a link"},
		"a hard link":     {[]sources.Entry{{Name: "web.yaml", Kind: tar.TypeLink, Text: "a"}}, failure.ErrInvalid, "link"},
		"a device":        {[]sources.Entry{{Name: "zero", Kind: tar.TypeChar}}, failure.ErrInvalid, "device"},
		"a pipe":          {[]sources.Entry{{Name: "pipe", Kind: tar.TypeFifo}}, failure.ErrInvalid, "device"},
		"twice":           {[]sources.Entry{{Name: "a", Text: "1"}, {Name: "./a", Text: "2"}}, failure.ErrInvalid, "twice"},
		"file and folder": {[]sources.Entry{{Name: "a", Text: "1"}, {Name: "a/b", Text: "2"}}, failure.ErrInvalid, "as a file and as a folder"},
		"folder and file": {[]sources.Entry{{Name: "a/b", Text: "1"}, {Name: "a", Text: "2"}}, failure.ErrInvalid, "twice"},
		"a large file":    {[]sources.Entry{{Name: "big.yaml", Zeros: 5 * limit.KiB}}, failure.ErrTooLarge, "big.yaml of the artifact is larger than the limit of 4 KiB"},
		"large in all":    {[]sources.Entry{{Name: "a", Zeros: 4000}, {Name: "b", Zeros: 4000}, {Name: "c", Zeros: 4000}, {Name: "d", Zeros: 4000}, {Name: "e", Zeros: 4000}}, failure.ErrTooLarge, "the unpacked artifact is larger than the limit of 20 KiB"},
		"many files":      {many(6, func(i int) string { return fmt.Sprint(i) }), failure.ErrTooLarge, "limit of 5"},
		"many folders":    {many(3, func(i int) string { return fmt.Sprintf("%d/f", i) }), failure.ErrTooLarge, "limit of 5"},
		"a long path":     {many(1, func(int) string { return strings.Repeat("a", 41) }), failure.ErrTooLarge, "limit of 40"},
		"long paths":      {many(4, func(i int) string { return strings.Repeat("a", 35) + fmt.Sprint(i) }), failure.ErrTooLarge, "limit of 100 bytes"},
		"a deep path":     {many(1, func(int) string { return "a/b/c/d" }), failure.ErrTooLarge, "limit of 3"},
		"a deep folder":   {[]sources.Entry{{Name: "a/b/c/d/", Kind: tar.TypeDir}}, failure.ErrTooLarge, "limit of 3"},
	} {
		t.Run(name, func(t *testing.T) {
			err := unpack(bytes.NewReader(sources.TarGz(t, tc.entries...)), io.Discard, small)
			if !errors.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestABombEndsAtTheLimit unpacks 1 GiB of zeros, in one file, in many, and behind each other's headers.
func TestABombEndsAtTheLimit(t *testing.T) {
	var parts []sources.Entry
	for i := range 128 {
		parts = append(parts, sources.Entry{Name: fmt.Sprintf("%d.yaml", i), Zeros: limit.GiB / 128})
	}
	for name, entries := range map[string][]sources.Entry{"one file": {{Name: "bomb.yaml", Zeros: limit.GiB}}, "many files": parts} {
		t.Run(name, func(t *testing.T) {
			bomb := sources.TarGz(t, entries...)
			if len(bomb) > 4*limit.MiB {
				t.Fatalf("the bomb has %d bytes", len(bomb))
			}
			server := sources.ServeOCI(t, httptest.NewServer)
			server.PushArtifact(t, "latest", fluxLayer, bomb)
			dir := t.TempDir()
			peak := sources.PeakHeap(t, func() {
				_, err := NewStore(dir, loopback).Fetch(t.Context(), ofServer(server))
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

func TestASpoiledArtifactIsFetchedAgain(t *testing.T) {
	server := sources.ServeOCI(t, httptest.NewServer)
	server.PushArtifact(t, "latest", fluxLayer, sources.TarGz(t, sources.Entry{Name: "a", Text: "1"}))
	store := NewStore(t.TempDir(), loopback)
	got, err := store.Fetch(t.Context(), ofServer(server))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(got.path, []byte("spoiled"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Files(got); err == nil {
		t.Error("it was read")
	}
	if got, err = store.Fetch(t.Context(), ofServer(server)); err != nil {
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
