package gitserver

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"sync"
)

// advertisements cache Git's lists of the references of repositories. Git starts two processes for each list, which is most of the cost of a
// fetch that finds nothing new. With a thousand repositories, benchmarks on the same machine would measure the Git server.
type advertisements struct {
	mu sync.Mutex
	// known are the advertisements by repository and protocol.
	known map[[2]string]advertisement
}

// advertisement is an answer of Git, and the digest of the references at that time.
type advertisement struct {
	references [sha256.Size]byte
	header     http.Header
	body       []byte
}

// advertise answers GET /info/refs for fetches. If the references have not changed, it repeats Git's last answer to the same request.
func (s *Server) advertise(w http.ResponseWriter, r *http.Request, name, user string) {
	references, err := referencesOf(s.store.Path(name))
	if err != nil {
		s.log.Print(err)
		s.backend(w, r, user)
		return
	}
	key := [2]string{name, r.Header.Get("Git-Protocol")}
	s.advertised.mu.Lock()
	last, known := s.advertised.known[key]
	s.advertised.mu.Unlock()
	if !known || last.references != references {
		answer := &recorder{header: http.Header{}, code: http.StatusOK}
		s.backend(answer, r, user)
		if answer.code != http.StatusOK {
			answer.replay(w)
			return
		}
		last = advertisement{references: references, header: answer.header, body: answer.body.Bytes()}
		s.advertised.mu.Lock()
		s.advertised.known[key] = last
		s.advertised.mu.Unlock()
	}
	(&recorder{header: last.header, code: http.StatusOK, body: *bytes.NewBuffer(last.body)}).replay(w)
}

// referencesOf returns the digest of the files with a bare repository's references.
func referencesOf(repository string) (sum [sha256.Size]byte, err error) {
	all := sha256.New()
	add := func(path string) error {
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // Git has packed it since it was listed, or there are no packed references
		}
		_, _ = io.WriteString(all, path+"\n"+string(content)+"\n")
		return err
	}
	for _, name := range []string{"HEAD", "packed-refs"} {
		if err := add(filepath.Join(repository, name)); err != nil {
			return sum, err
		}
	}
	err = filepath.WalkDir(filepath.Join(repository, "refs"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return add(path)
	})
	return [sha256.Size]byte(all.Sum(nil)), err
}

// recorder is an http.ResponseWriter that keeps the answer.
type recorder struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(code int) { r.code = code }

// Write implements http.ResponseWriter.
func (r *recorder) Write(data []byte) (int, error) { return r.body.Write(data) }

func (r *recorder) replay(w http.ResponseWriter) {
	for key, values := range r.header {
		w.Header()[key] = values
	}
	w.WriteHeader(r.code)
	_, _ = w.Write(r.body.Bytes()) // It fails only if the client has disconnected.
}
