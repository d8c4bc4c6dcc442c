package sources

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"errors"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"
)

// Entry is an entry of a tar archive.
type Entry struct {
	Name string
	// Kind is a tar.Type; 0 is a file. Text is a file's content or a link's target.
	Kind byte
	Text string
	// Zeros is the number of zero bytes after Text.
	Zeros int64
}

// TarGz returns a gzipped tar archive.
func TarGz(t testing.TB, entries ...Entry) []byte {
	t.Helper()
	var archive bytes.Buffer
	squeezed := gzip.NewWriter(&archive)
	out := tar.NewWriter(squeezed)
	for _, e := range entries {
		header := &tar.Header{Name: e.Name, Typeflag: e.Kind, Mode: 0o644, Size: int64(len(e.Text)) + e.Zeros}
		if e.Kind != 0 && e.Kind != tar.TypeReg {
			header.Size, header.Linkname = 0, e.Text
		}
		if err := out.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if header.Size > 0 {
			_, _ = io.WriteString(out, e.Text)
			_, _ = io.CopyN(out, Zeros{}, e.Zeros)
		}
	}
	if err := errors.Join(out.Close(), squeezed.Close()); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

// Zeros is an endless reader of zero bytes.
type Zeros struct{}

// Read implements io.Reader.
func (Zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// PeakHeap returns by how much the heap grows at most while do runs, in bytes, measured every millisecond.
func PeakHeap(t testing.TB, do func()) uint64 {
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

// Noise returns text that cannot be compressed. It differs for each n.
func Noise(n, size int) string {
	text := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(text)
	return string(text)
}

// Certificate returns the TLS certificate of a server, in PEM.
func Certificate(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}
