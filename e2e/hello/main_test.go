package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHandler(t *testing.T) {
	tests := map[string]struct {
		path string
		code int
		body string
	}{
		"says the message":     {path: "/", code: http.StatusOK, body: "good morning"},
		"is healthy":           {path: "/healthz", code: http.StatusOK, body: "ok"},
		"fails when asked":     {path: "/fail", code: http.StatusInternalServerError, body: "failing as asked"},
		"knows no other paths": {path: "/else", code: http.StatusNotFound, body: "404 page not found"},
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
