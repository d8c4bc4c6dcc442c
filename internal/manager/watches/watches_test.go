package watches

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// reader answers parts of a body, each a second after the one before, and then an error.
type reader struct {
	parts int
	end   error
	pass  func()
}

func (r *reader) Read(into []byte) (int, error) {
	r.pass()
	if r.parts--; r.parts < 0 {
		return 0, r.end
	}
	return copy(into, "x"), nil
}

// Close implements io.Closer.
func (r *reader) Close() error { return nil }

func TestMissedChangesAreReported(t *testing.T) {
	broken := errors.New("connection reset")
	for name, c := range map[string]struct {
		query  string
		status int
		err    error
		parts  int
		end    error
		// early closes the body before it ends, and stop ends the context.
		early, stop bool
		want        []string
	}{
		"a watch that ends after its time": {query: "watch=true", status: 200, parts: 3, end: io.EOF, want: []string{"followed"}},
		"a watch that breaks":              {query: "watch=true", status: 200, parts: 3, end: broken, want: []string{"followed", "lost after 1s: connection reset"}},
		"a watch that breaks at once":      {query: "watch=1", status: 200, end: io.ErrUnexpectedEOF, want: []string{"followed", "lost after 1s: unexpected EOF"}},
		"a watch that its reader ends":     {query: "watch=true", status: 200, end: broken, early: true, want: []string{"followed"}},
		"a watch when the reader stops":    {query: "watch=true", status: 200, end: broken, stop: true, want: []string{"followed"}},
		"a list":                           {query: "limit=500", status: 200, end: io.EOF, want: []string{"lost after 5s: all of it is read anew"}},
		"a list in a watch":                {query: "watch=true&sendInitialEvents=true", status: 200, end: io.EOF, want: []string{"lost after 5s: all of it is read anew", "followed"}},
		"a refused watch":                  {query: "watch=true", status: 403, end: io.EOF, want: []string{"lost after 5s: the API server answers 403 Forbidden"}},
		"a watch of what is gone":          {query: "watch=true", status: 410, end: io.EOF, want: []string{"lost after 5s: the API server answers 410 Gone"}},
		"no connection":                    {query: "watch=true", err: broken, want: []string{"lost after 5s: connection reset"}},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1000, 0)
			var got []string
			w := &Watches{
				Lost: func(kind string, silent time.Duration, why error) {
					got = append(got, fmt.Sprintf("lost after %s: %s", silent, why))
				},
				Followed: func(string) { got = append(got, "followed") }, Now: func() time.Time { return now },
			}
			w.receive("pods")
			now = now.Add(5 * time.Second)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			answers := w.Wrap(roundTripper(func(*http.Request) (*http.Response, error) {
				if c.err != nil {
					return nil, c.err
				}
				return &http.Response{StatusCode: c.status, Status: fmt.Sprint(c.status, " ", http.StatusText(c.status)), Body: &reader{c.parts, c.end, func() { now = now.Add(time.Second) }}}, nil
			}))
			answer, err := answers.RoundTrip(httptest.NewRequestWithContext(ctx, "GET", "/api/v1/pods?"+c.query, nil))
			if c.stop {
				stop()
			}
			if err == nil {
				if c.early {
					_ = answer.Body.Close()
				}
				_, _ = io.ReadAll(answer.Body)
				_ = answer.Body.Close()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestEachKindIsByItself, and a kind without any watch was not silent.
func TestEachKindIsByItself(t *testing.T) {
	now := time.Unix(1000, 0)
	var lost []string
	w := &Watches{Lost: func(kind string, silent time.Duration, _ error) { lost = append(lost, kind+" "+silent.String()) }, Followed: func(string) {}, Now: func() time.Time { return now }}
	w.receive("pods")
	now = now.Add(time.Minute)
	answers := w.Wrap(roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(""))}, nil
	}))
	for _, path := range []string{"/api/v1/services", "/api/v1/pods", "/apis/paas.kubeop.io/v1alpha1/apps"} {
		answer, err := answers.RoundTrip(httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	if diff := cmp.Diff([]string{"services 0s", "pods 1m0s", "apps 0s"}, lost); diff != "" {
		t.Errorf("-want +lost:\n%s", diff)
	}
}
