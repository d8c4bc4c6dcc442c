package chart

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

func TestAChartWithAnotherDigestIsRefused(t *testing.T) {
	server := sources.ServeHelm(t)
	digests := server.Publish(t, "1.0.0", "1.1.0")
	archive, own := sources.Gzip(t, "x")
	server.Files["/bare/index.yaml"], server.Files["/bare/x.tgz"] = []byte("entries: {web: [{version: 1.0.0, urls: [x.tgz]}]}"), archive
	registry := sources.ServeOCI(t, httptest.NewServer)
	pushed := pushChart(t, registry, "1.0.0", chartMediaType)
	manifest := sources.DigestOf(registry.Manifests["1.0.0"])
	other := "sha256:" + strings.Repeat("ab", 32)
	cases := map[string]struct {
		repository, version, digest string
		kind                        error
		says                        string
	}{
		"as listed":               {"/stable", "1.0.0", digests["1.0.0"], nil, ""},
		"another than listed":     {"/stable", "1.0.0", digests["1.1.0"], failure.ErrDigest, "version 1.0.0: its archive has the digest " + digests["1.0.0"]},
		"the newest is another":   {"/stable", "1.x", digests["1.0.0"], failure.ErrDigest, "version 1.1.0: its archive has the digest " + digests["1.1.0"]},
		"not listed":              {"/bare", "", "sha256:" + own, nil, ""},
		"not listed, another":     {"/bare", "", other, failure.ErrDigest, "and the app pins " + other},
		"no digest":               {"/stable", "", "sha256:ab", failure.ErrInvalid, "is not of the form sha256:<64 hexadecimal digits>"},
		"of the layer":            {"oci", "1.0.0", pushed, nil, ""},
		"of another layer":        {"oci", "*", other, failure.ErrDigest, "its archive has the digest " + pushed},
		"of the manifest instead": {"oci", "1.0.0", manifest, failure.ErrDigest, "is the digest of its manifest: write in Git that of its archive, " + pushed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			src := Source{Repository: server.URL + tc.repository, Name: "web", Version: tc.version, Digest: tc.digest}
			if tc.repository == "oci" {
				src.Repository, src.Insecure = registry.Repository(), true
			}
			store := NewStore(t.TempDir(), loopback)
			got, err := store.Fetch(t.Context(), src)
			if tc.kind == nil {
				if err != nil || got.Digest != tc.digest || got.Manifest != map[bool]string{true: manifest}[tc.repository == "oci"] {
					t.Errorf("%+v, %v", got, err)
				}
				return
			}
			sources.WantError(t, err, tc.kind, tc.says)
			if kept, _ := filepath.Glob(filepath.Join(store.Dir, "*", "*"+archiveEnd)); len(kept) != 0 {
				t.Errorf("it was kept: %v", kept)
			}
		})
	}
}

// A truncated answer is never taken as complete.
func TestAChartThatIsCutShortIsNotKept(t *testing.T) {
	archive, digest := sources.Gzip(t, strings.Repeat("0123456789", 1000))
	cut := func(w http.ResponseWriter, content []byte, silent bool) {
		if !silent {
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
			_, _ = w.Write(content[:len(content)/2])
			return
		}
		// As in HTTP/1.0: the end of the connection is the end of the content.
		connection, buffer, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = fmt.Fprintf(buffer, "HTTP/1.0 200 OK\r\n\r\n%s", content[:len(content)/2])
		_ = buffer.Flush()
		_ = connection.Close()
	}
	var what string
	var silent bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		content := archive
		if strings.HasSuffix(req.URL.Path, "index.yaml") {
			content = []byte("entries:\n  web:\n  - {version: 1.0.0, urls: [listed.tgz], digest: " + digest + "}\n  bare:\n  - {version: 1.0.0, urls: [bare.tgz]}\n")
		}
		if strings.HasSuffix(req.URL.Path, what) {
			cut(w, content, silent)
			return
		}
		_, _ = w.Write(content)
	}))
	defer server.Close()
	for name, tc := range map[string]struct {
		chart, what string
		silent      bool
	}{
		"index": {"bare", "index.yaml", false}, "index, silently": {"bare", "index.yaml", true},
		"archive": {"web", ".tgz", false}, "archive, silently": {"web", ".tgz", true},
		"archive without digest": {"bare", ".tgz", false}, "archive without digest, silently": {"bare", ".tgz", true},
	} {
		t.Run(name, func(t *testing.T) {
			what, silent = tc.what, tc.silent
			store := NewStore(t.TempDir(), loopback)
			src := Source{Repository: server.URL, Name: tc.chart, Version: "1.0.0"}
			if got, err := store.Fetch(t.Context(), src); err == nil {
				t.Errorf("got %+v", got)
			} else if name != "index, silently" {
				wantTransient(t, err)
				sources.WantError(t, err, failure.ErrUnavailable, "")
			}
			if kept, _ := filepath.Glob(filepath.Join(store.Dir, "*", "*"+archiveEnd)); len(kept) != 0 {
				t.Errorf("it was kept: %v", kept)
			}
			what = "nothing"
			got, err := store.Fetch(t.Context(), src)
			if err != nil || got.Digest != "sha256:"+digest {
				t.Errorf("afterwards: %+v, %v", got, err)
			}
		})
	}
}

func TestADamagedIndexIsDownloadedAgain(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"cut short":   func(path string) error { return os.Truncate(path, 100) },
		"empty":       func(path string) error { return os.Truncate(path, 0) },
		"gone":        os.Remove,
		"overwritten": func(path string) error { return overwrite(path, 40) },
		"no index":    func(path string) error { return os.WriteFile(path, []byte("text"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			server := sources.ServeHelm(t)
			server.Publish(t, "1.0.0")
			store := NewStore(t.TempDir(), loopback)
			src := Source{Repository: server.URL + "/stable", Name: "web"}
			if _, err := store.Fetch(t.Context(), src); err != nil {
				t.Fatal(err)
			}
			if err := spoil(sources.OnlyFile(t, store.Dir, "*", indexFile)); err != nil {
				t.Fatal(err)
			}
			store = NewStore(store.Dir, loopback)
			got, err := store.Fetch(t.Context(), src)
			if err != nil {
				// An index that is unchanged on the server may turn out to be damaged only now.
				wantTransient(t, err)
				got, err = store.Fetch(t.Context(), src)
			}
			if err != nil || got.Version != "1.0.0" {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func overwrite(path string, at int64) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.WriteAt([]byte("damage"), at)
	return err
}

func TestAFullDiskFailsTheDownloadOfAChart(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("needs to mount a small file system: ", err)
	}
	defer func() { _ = syscall.Unmount(dir, 0) }()
	server := sources.ServeHelm(t)
	server.Publish(t, "1.0.0")
	var random strings.Builder
	for i := range 30000 {
		fmt.Fprintf(&random, "%x", i*i*7919)
	}
	server.Files["/large/index.yaml"] = []byte("entries: {web: [{version: 1.0.0, urls: [x.tgz]}]}")
	server.Files["/large/x.tgz"], _ = sources.Gzip(t, random.String())
	server.Files["/list/index.yaml"] = []byte("entries:\n  web:\n  - version: 1.0.0\n    urls: [x.tgz]\n    description: " + random.String() + "\n")
	store := NewStore(dir, loopback)
	for _, repository := range []string{"/large", "/list"} {
		_, err := store.Fetch(t.Context(), Source{Repository: server.URL + repository, Name: "web"})
		sources.WantError(t, err, syscall.ENOSPC, "no space left below "+dir)
		wantTransient(t, err)
	}
	if _, err := store.Fetch(t.Context(), Source{Repository: server.URL + "/stable", Name: "web"}); err != nil {
		t.Errorf("a small one does not fit any more: %v", err)
	}
}

func TestChartStoreTidiesAfterACrash(t *testing.T) {
	server := sources.ServeHelm(t)
	server.Publish(t, "1.0.0")
	store := NewStore(t.TempDir(), loopback)
	src := Source{Repository: server.URL + "/stable", Name: "web"}
	left := filepath.Join(store.source(src), "tmp-123")
	if err := os.MkdirAll(filepath.Dir(left), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Fetch(t.Context(), src); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("it is still there")
	}
}

func TestSweepRemovesUnusedCharts(t *testing.T) {
	server := sources.ServeHelm(t)
	server.Publish(t, "1.0.0", "2.0.0")
	store := NewStore(t.TempDir(), loopback)
	now := time.Now()
	fetch := func(version string) Archive {
		t.Helper()
		got, err := store.Fetch(t.Context(), Source{Repository: server.URL + "/stable", Name: "web", Version: version})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	sweep := func(after time.Duration) {
		t.Helper()
		if now = now.Add(after); sweepStore(t.Context(), store, now) != nil {
			t.Error("the sweep failed")
		}
	}
	const day = 24 * time.Hour
	old, kept := fetch("1.0.0"), fetch("2.0.0")
	sweep(day)
	for range 6 {
		fetch("2.0.0")
		sweep(day)
	}
	// A restart loses the uses since the last sweep, but not what the sweeps recorded.
	store = NewStore(store.Dir, loopback)
	sweep(day + time.Minute)
	for _, archive := range []Archive{old, kept} {
		if _, err := os.Stat(archive.Path); (err == nil) != (archive == kept) {
			t.Errorf("version %s: %v", archive.Version, err)
		}
	}
	if store.Has(old) || !store.Has(kept) {
		t.Error("the store does not know what it has")
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(kept.Path), indexFile)); err != nil {
		t.Errorf("the index was swept although it was used: %v", err)
	}
	sweep(6 * day)
	if !store.Has(kept) {
		t.Error("it was swept although it was used")
	}
	if again := fetch("1.0.0"); again.Path != old.Path || !store.Has(again) {
		t.Error("what was swept does not come back")
	}
	sweep(0)
	sweep(8 * day)
	if left, _ := filepath.Glob(filepath.Join(store.Dir, "*")); len(left) != 0 || store.indexes.Len() != 0 {
		t.Errorf("%v is left, and %d repositories", left, store.indexes.Len())
	}
	fetch("1.0.0")
}

func TestSweepLeavesChartsThatAreBeingFetched(t *testing.T) {
	server := sources.ServeHelm(t)
	server.Publish(t, "1.0.0")
	want, _ := sources.Gzip(t, "1.0.0")
	store := NewStore(t.TempDir(), loopback)
	later := time.Now().Add(30 * 24 * time.Hour)
	done := make(chan error)
	go func() {
		var failed error
		for range 200 {
			failed = errors.Join(failed, sweepStore(context.Background(), store, later))
		}
		done <- failed
	}()
	for {
		got, err := store.Fetch(t.Context(), Source{Repository: server.URL + "/stable", Name: "web"})
		if err != nil {
			// It was swept between two steps: the next try succeeds.
			wantTransient(t, err)
		}
		if content, err := os.ReadFile(got.Path); err == nil && string(content) != string(want) {
			t.Error("not what was published")
		}
		select {
		case failed := <-done:
			if failed != nil {
				t.Error(failed)
			}
			return
		default:
		}
	}
}

// A repository that is down gets one request for all who wait, and each gets the error.
func TestChartFromRepositoryThatIsDown(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	for _, repository := range []string{"http://" + address, "oci://" + address + "/charts"} {
		_, err := NewStore(t.TempDir(), loopback).Fetch(t.Context(), Source{Repository: repository, Name: "web"})
		sources.WantError(t, err, failure.ErrUnavailable, address+" gives no answer")
		wantTransient(t, err)
	}
}

func TestChartFailureIsShared(t *testing.T) {
	var mu sync.Mutex
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked++
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	store := NewStore(t.TempDir(), loopback)
	src := Source{Repository: server.URL, Name: "web"}
	together(t, &store.refreshes, store.source(src), 20, func(int) {
		_, err := store.Fetch(t.Context(), src)
		sources.WantError(t, err, failure.ErrUnavailable, "answered 503")
	})
	if asked != 1 {
		t.Errorf("asked %d times, want 1", asked)
	}
	if _, err := store.Fetch(t.Context(), src); err == nil || asked != 2 {
		t.Errorf("asked %d times: a failure is nobody's answer who came after it; %v", asked, err)
	}
}

func TestAnIndexThatIsTooLargeIsRefused(t *testing.T) {
	server := sources.ServeHelm(t)
	server.Publish(t, "1.0.0")
	store := NewStore(t.TempDir(), loopback)
	store.limits.index = 100
	_, err := store.Fetch(t.Context(), Source{Repository: server.URL + "/stable", Name: "web"})
	sources.WantError(t, err, failure.ErrTooLarge, "the repository's index.yaml is larger than the limit of 100 bytes")
}
