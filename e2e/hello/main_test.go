package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTheServerAnswersEachPath(t *testing.T) {
	name := filepath.Join(t.TempDir(), "starts")
	t.Setenv("FILE", "main_test.go")
	t.Setenv("STARTS", name)
	for range 2 {
		if err := start(name); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		path string
		code int
		body string
	}{
		"says the message":   {path: "/", code: http.StatusOK, body: "good morning"},
		"is healthy":         {path: "/healthz", code: http.StatusOK, body: "ok"},
		"fails on purpose":   {path: "/fail", code: http.StatusInternalServerError, body: "failing on purpose"},
		"counts its starts":  {path: "/starts", code: http.StatusOK, body: "2"},
		"has no other paths": {path: "/else", code: http.StatusNotFound, body: "404 page not found"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			answer := httptest.NewRecorder()
			handler("good morning").ServeHTTP(answer, httptest.NewRequest(http.MethodGet, test.path, nil))
			if body := strings.TrimSpace(answer.Body.String()); answer.Code != test.code || body != test.body {
				t.Errorf("GET %s = %d %q, want %d %q", test.path, answer.Code, body, test.code, test.body)
			}
		})
	}
}

func TestGetPrintsTheAnswerOrReturnsAnError(t *testing.T) {
	server := httptest.NewServer(handler("good morning"))
	tests := map[string]struct{ url, answer, complaint string }{
		"prints the answer": {url: server.URL + "/", answer: "good morning\n"},
		"returns an error":  {url: server.URL + "/fail", complaint: "500 Internal Server Error: failing on purpose"},
		"returns no answer": {url: "http://127.0.0.1:1/", complaint: "connection refused"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			answer, err := get(test.url, 10*time.Millisecond)
			if answer != test.answer || (err != nil) != (test.complaint != "") {
				t.Fatalf("get() = %q, %v", answer, err)
			}
			if err != nil && !strings.Contains(err.Error(), test.complaint) {
				t.Errorf("get() returns the error %q, want %q", err, test.complaint)
			}
		})
	}
	server.Close()
}
