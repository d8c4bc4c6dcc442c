// Package fakemanager serves prepared answers of the management API to tests of its callers.
package fakemanager

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Server answers requests until the test ends.
type Server struct {
	URL string

	mu    sync.Mutex
	asked []string
}

// Serve starts a Server that answers by the path of a request. An answer that begins with "event:" is a stream. Any other path is answered by 404.
func Serve(t *testing.T, answers map[string]string) *Server {
	t.Helper()
	s := &Server{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		s.asked = append(s.asked, strings.TrimSpace(r.Method+" "+r.URL.String()+" "+string(body)))
		s.mu.Unlock()
		answer, known := answers[r.URL.Path]
		media, status := "application/json", http.StatusOK
		switch {
		case !known:
			media, status, answer = "application/problem+json", http.StatusNotFound, `{"code": "not-found", "status": 404, "title": "There is no such resource."}`
		case strings.HasPrefix(answer, "event:"):
			media = "text/event-stream"
		}
		w.Header().Set("Content-Type", media)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Asked returns the requests so far: method, URL and body.
func (s *Server) Asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.asked...)
}
