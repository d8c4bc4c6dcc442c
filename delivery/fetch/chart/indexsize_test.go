package chart

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// largeIndex writes an index of more than 26 MB as Helm does: 500 charts of 50 versions, each with a whole Chart.yaml. All versions have
// the same archive.
func largeIndex(t *testing.T, asJSON bool) (path, digest string) {
	t.Helper()
	_, digest = sources.Gzip(t, "large")
	path = filepath.Join(t.TempDir(), "index.yaml")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewWriter(file)
	text := strings.Repeat("What it does, for whom and how it is set up. ", 20)
	write := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }
	if asJSON {
		write(`{"apiVersion":"v1","entries":{"first":[]`)
	} else {
		write("apiVersion: v1\nentries:\n")
	}
	for chart := range 500 {
		if asJSON {
			write(`,"chart-%d":[{"version":"0.0.1","urls":[]}`, chart)
		} else {
			write("  chart-%d:\n", chart)
		}
		for v := range 50 {
			if asJSON {
				write(`,{"annotations":{"category":"Infrastructure","images":%q},"apiVersion":"v2","digest":%q,"name":"chart-%d","urls":["charts/x.tgz"],"version":"1.%d.0"}`, text, digest, chart, v)
				continue
			}
			write("  - annotations:\n      category: Infrastructure\n      images: |\n        - name: a\n          version: 9.9.9\n        # %s\n", text)
			write("    apiVersion: v2\n    digest: %s\n    name: chart-%d\n    urls:\n    - charts/x.tgz\n    version: 1.%d.0\n", digest, chart, v)
		}
		if asJSON {
			write("]")
		}
	}
	if asJSON {
		write("}}")
	} else {
		write("generated: \"2026-01-01T00:00:00Z\"\n")
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	if about, err := file.Stat(); err != nil || about.Size() < 26e6 {
		t.Fatalf("the index has %d bytes, %v", about.Size(), err)
	}
	return path, digest
}

// serveLarge serves an index from disk, which costs no memory, and counts the requests.
func serveLarge(t *testing.T, path string) (url string, requests func() string) {
	t.Helper()
	archive, _ := sources.Gzip(t, "large")
	var whole, unchanged, archives atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch {
		case strings.HasSuffix(req.URL.Path, ".tgz"):
			archives.Add(1)
			_, _ = w.Write(archive)
			return
		case req.Header.Get("If-Modified-Since") != "":
			unchanged.Add(1)
		default:
			whole.Add(1)
		}
		http.ServeFile(w, req, path)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() string {
		return fmt.Sprintf("%d indexes, %d unchanged, %d archives", whole.Swap(0), unchanged.Swap(0), archives.Swap(0))
	}
}

// heapGrowth returns how much larger the heap gets while do runs, garbage included, in bytes.
func heapGrowth(t *testing.T, do func()) uint64 {
	t.Helper()
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	read := func() uint64 {
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	runtime.GC()
	before, peak := read(), uint64(0)
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			peak = max(peak, read())
			select {
			case <-done:
				return
			case <-time.After(200 * time.Microsecond):
			}
		}
	}()
	do()
	close(done)
	<-stopped
	return peak - min(peak, before)
}

func TestLargeIndexCostsLittleMemory(t *testing.T) {
	for name, asJSON := range map[string]bool{"YAML": false, "JSON": true} {
		t.Run(name, func(t *testing.T) {
			path, digest := largeIndex(t, asJSON)
			url, requests := serveLarge(t, path)
			store := NewStore(t.TempDir(), loopback)
			fetch := func(chart string) {
				got, err := store.Fetch(t.Context(), Source{Repository: url, Name: chart, Version: "1.x"})
				if err != nil || got.Version != "1.49.0" || got.Digest != "sha256:"+digest {
					t.Errorf("%s: %+v, %v", chart, got, err)
				}
			}
			began := time.Now()
			first := heapGrowth(t, func() { fetch("chart-250") })
			took := time.Since(began)
			again := heapGrowth(t, func() { fetch("chart-499") })
			t.Logf("the heap grew by %.1f MiB for the first chart, in %s, and by %.1f MiB for the next",
				float64(first)/limit.MiB, took.Round(time.Millisecond), float64(again)/limit.MiB)
			if first >= 30e6 || again >= 30e6 {
				t.Errorf("the heap grew by %d and %d bytes, want less than 30 MB", first, again)
			}
			if got := requests(); got != "1 indexes, 1 unchanged, 1 archives" {
				t.Errorf("got %s, want %q", got, "1 indexes, 1 unchanged, 1 archives")
			}
			if about, err := os.Stat(sources.OnlyFile(t, store.Dir, "*", indexFile)); err != nil || about.Size() > 3*limit.MiB {
				t.Errorf("on disk it takes %d bytes, %v", about.Size(), err)
			}
		})
	}
}

func TestManyAppsShareALargeIndex(t *testing.T) {
	path, _ := largeIndex(t, false)
	url, requests := serveLarge(t, path)
	store := NewStore(t.TempDir(), loopback)
	// Two of the 100 run at a time, because all have one tenant; their duration is not measured here.
	all := func() {
		together(t, &store.refreshes, store.source(Source{Repository: url}), 100, func(i int) {
			chart := Source{Repository: url, Name: fmt.Sprintf("chart-%d", i), Version: fmt.Sprintf("1.%d.x", i%50), Tenant: "acme"}
			if got, err := store.Fetch(t.Context(), chart); err != nil || got.Version != fmt.Sprintf("1.%d.0", i%50) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	for _, want := range []string{"1 indexes, 0 unchanged, 1 archives", "0 indexes, 1 unchanged, 0 archives"} {
		began := time.Now()
		all()
		t.Logf("100 apps with 100 charts of one repository took %s", time.Since(began).Round(time.Millisecond))
		if got := requests(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
