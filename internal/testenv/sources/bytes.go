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

// Entry is one of a tar archive.
type Entry struct {
	Name string
	// Kind is a tar.Type; 0 is a file. Of links Text is what they lead to.
	Kind byte
	Text string
	// Zeros are written after Text.
	Zeros int64
}

// TarGz returns a tar within gzip.
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

// Zeros never end.
type Zeros struct{}

// Read implements io.Reader.
func (Zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// PeakHeap is how much the heap grows at most while do runs, in bytes, as far as looks every millisecond show.
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

// Noise is text that no compression makes smaller; each n has another.
func Noise(n, size int) string {
	text := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(text)
	return string(text)
}

// Certificate is that of a server with TLS, in PEM.
func Certificate(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}
