package chart

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

func TestFetchEndsWithASlowServer(t *testing.T) {
	const soon = 150 * time.Millisecond
	const begin, line = "entries:\n", "# more\n"
	for name, tc := range map[string]struct {
		timeouts transport.Timeouts
		serve    http.HandlerFunc
		says     string
	}{
		"no answer":        {transport.Timeouts{Whole: time.Minute, Answer: soon, Stall: time.Minute}, sources.Hang("", ""), "the server gave no answer within"},
		"half an answer":   {transport.Timeouts{Whole: time.Minute, Answer: time.Minute, Stall: soon}, sources.Hang(begin, ""), "the server sent nothing more within"},
		"a trickle":        {transport.Timeouts{Whole: soon, Answer: time.Minute, Stall: 100 * time.Millisecond}, sources.Hang(begin, line), "it did not end within"},
		"a redirect first": {transport.Timeouts{Whole: time.Minute, Answer: soon, Stall: time.Minute}, sources.RedirectOnce(sources.Hang("", "")), "the server gave no answer within"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.serve)
			defer server.Close()
			store := NewStore(t.TempDir(), loopback)
			store.limits.Timeouts = tc.timeouts
			for _, repository := range []string{server.URL + "/a", strings.Replace(server.URL, "http:", "oci:", 1)} {
				if name == "a redirect first" && strings.HasPrefix(repository, "oci:") {
					continue // A registry's redirects are not followed.
				}
				began := time.Now()
				_, err := store.Fetch(t.Context(), Source{Repository: repository, Name: "web", Insecure: true})
				sources.WantError(t, err, failure.ErrSlow, tc.says+" the limit of 150ms")
				wantTransient(t, err)
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("%s: took %s", repository, took)
				}
			}
		})
	}
}
