//go:build e2e

package availability

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// serveGit serves Git hosts that are slow or never finish an answer.
func (s *servers) serveGit() {
	s.mux.HandleFunc("/slow/", func(w http.ResponseWriter, r *http.Request) {
		slowly(r, 1800*time.Millisecond)
		http.NotFound(w, r)
	})
	s.mux.HandleFunc("/hangs/", func(_ http.ResponseWriter, r *http.Request) { slowly(r, time.Hour) })
	s.mux.HandleFunc("/loop/", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path+"?"+r.URL.RawQuery, http.StatusFound)
	})
	const advertised = "001e# service=git-upload-pack\n0000"
	commit := strings.Repeat("ab", 20)
	s.mux.HandleFunc("/refs/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		_, _ = w.Write([]byte(advertised + packet(commit+" HEAD\x00ofs-delta\n")))
		endlessly(w, r, strings.Repeat(packet(commit+" refs/heads/x\n"), 1000))
	})
	s.mux.HandleFunc("/pack/", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			_, _ = w.Write([]byte(advertised + packet(commit+" HEAD\x00ofs-delta\n") + packet(commit+" refs/heads/main\n") + "0000"))
			return
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		_, _ = w.Write([]byte("0008NAK\nPACK\x00\x00\x00\x02\xff\xff\xff\xff"))
		endlessly(w, r, strings.Repeat(blob(), 1000))
	})
}

// blob is an empty blob in pack format.
func blob() string { return "\x30\x78\x9c\x03\x00\x00\x00\x00\x01" }

// packet is a line of Git's protocol.
func packet(line string) string { return fmt.Sprintf("%04x%s", len(line)+4, line) }

// endlessly writes until the reader disconnects.
func endlessly(w http.ResponseWriter, r *http.Request, text string) {
	for r.Context().Err() == nil {
		if _, err := w.Write([]byte(text)); err != nil {
			return
		}
	}
}

// serveCharts serves chart repositories with indexes or charts that are too large.
func (s *servers) serveCharts() {
	s.mux.HandleFunc("/lists/index.yaml", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("apiVersion: v1\nentries: {}\n" + manyLists(30*mebibyte)))
	})
	s.mux.HandleFunc("/aliases/index.yaml", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("apiVersion: v1\nentries: {}\n" + aliasBomb(10)))
	})
	s.mux.HandleFunc("/versions/index.yaml", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("apiVersion: v1\nentries:\n  web:\n"))
		for n := range 400_000 {
			_, _ = fmt.Fprintf(w, "  - {name: web, version: 1.0.%d, apiVersion: v2, urls: [web-1.0.%d.tgz]}\n", n, n)
		}
	})
	s.mux.HandleFunc("/endless/index.yaml", func(w http.ResponseWriter, r *http.Request) {
		endlessly(w, r, "# "+strings.Repeat("x", 1<<16)+"\n")
	})
	s.mux.HandleFunc("/drips/index.yaml", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte("# x\n")); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			slowly(r, 200*time.Millisecond)
		}
	})
	s.mux.HandleFunc("/bomb/index.yaml", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("apiVersion: v1\nentries:\n  web:\n  - {name: web, version: 1.0.0, apiVersion: v2, urls: [web-1.0.0.tgz]}\n"))
	})
	s.mux.HandleFunc("/bomb/web-1.0.0.tgz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bomb()) })
}

// bomb is an archive of less than a megabyte that unpacks to 400 MiB.
var bomb = sync.OnceValue(func() []byte {
	zeros := make([]byte, 15*mebibyte)
	return archive(27, func(n int) (string, []byte) { return fmt.Sprintf("web/f%d", n), zeros })
})

// crumbs is an archive of 60,000 empty files.
var crumbs = sync.OnceValue(func() []byte {
	return archive(60_000, func(n int) (string, []byte) { return fmt.Sprintf("d%d/f%d.yaml", n%100, n), nil })
})

func archive(n int, of func(n int) (string, []byte)) []byte {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	writer := tar.NewWriter(compressed)
	for i := range n {
		name, content := of(i)
		_ = writer.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg})
		_, _ = writer.Write(content)
	}
	_ = writer.Close() // Of a buffer.
	_ = compressed.Close()
	return out.Bytes()
}

// serveRegistry serves a registry with endless lists and with artifacts that are too large.
func (s *servers) serveRegistry() {
	s.mux.HandleFunc("/v2/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
		for name, layer := range map[string]func() []byte{"bomb": bomb, "crumbs": crumbs} {
			if strings.HasPrefix(r.URL.Path, "/v2/"+name+"/") {
				serveArtifact(w, r, layer())
				return
			}
		}
	})
	s.mux.HandleFunc("/v2/tags/tags/list", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"name": "tags", "tags": ["a"`))
		for n := range 1_000_000 {
			_, _ = fmt.Fprintf(w, `,"v%d"`, n)
		}
		_, _ = w.Write([]byte("]}"))
	})
	s.mux.HandleFunc("/v2/pages/tags/list", func(w http.ResponseWriter, r *http.Request) {
		next := r.URL.Query().Get("last") + "x"
		w.Header().Set("Link", fmt.Sprintf("</v2/pages/tags/list?last=%s>; rel=\"next\"", next))
		_, _ = fmt.Fprintf(w, `{"name": "pages", "tags": ["%s"]}`, next)
	})
	s.mux.HandleFunc("/v2/pattern/tags/list", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"name": "pattern", "tags": ["a"`))
		for n := range 40_000 {
			_, _ = fmt.Fprintf(w, `,"%s%d"`, strings.Repeat("a", 110), n)
		}
		_, _ = w.Write([]byte("]}"))
	})
}

// serveArtifact serves one artifact under each tag, with one layer.
func serveArtifact(w http.ResponseWriter, r *http.Request, layer []byte) {
	type part struct {
		MediaType string `json:"mediaType"`
		Digest    string `json:"digest"`
		Size      int    `json:"size"`
	}
	of := func(kind string, content []byte) part {
		return part{kind, fmt.Sprintf("sha256:%x", sha256.Sum256(content)), len(content)}
	}
	config := []byte("{}")
	const kind = "application/vnd.oci.image.manifest.v1+json"
	manifest, _ := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": kind,
		"config": of("application/vnd.cncf.flux.config.v1+json", config), "layers": []part{of("application/vnd.cncf.flux.content.v1.tar+gzip", layer)}})
	content := manifest
	if strings.Contains(r.URL.Path, "/blobs/") {
		content = layer
		if strings.HasSuffix(r.URL.Path, of("", config).Digest) {
			content = config
		}
	} else {
		w.Header().Set("Content-Type", kind)
	}
	w.Header().Set("Docker-Content-Digest", of("", content).Digest)
	w.Header().Set("Content-Length", fmt.Sprint(len(content)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(content)
	}
}
