package fence

import (
	"io"
	"net/http"
	"slices"
	"strings"
)

// Transport refuses writes with ErrFenced while the lease is not surely held, and passes everything else on. It is what
// rest.Config.Wrap takes.
func (f *Fence) Transport(inner http.RoundTripper) http.RoundTripper {
	return &transport{inner: inner, fence: f}
}

type transport struct {
	inner http.RoundTripper
	fence *Fence
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !writes(r) {
		return t.inner.RoundTrip(r)
	}
	if err := t.fence.Check(); err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	return t.inner.RoundTrip(t.guarded(r))
}

// WrappedRoundTripper lets client-go find what is below.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.inner }

// reviews are asked for by a POST that changes nothing: one's own rights, those of others, and who sends a token.
var reviews = []string{"/authorization.k8s.io/v1/selfsubjectaccessreviews", "/authorization.k8s.io/v1/subjectaccessreviews", "/authentication.k8s.io/v1/tokenreviews"}

// writes reports whether a request could change anything.
func writes(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	return r.Method != http.MethodPost || !slices.ContainsFunc(reviews, func(review string) bool { return strings.HasSuffix(r.URL.Path, "/apis"+review) })
}

// guarded has the request check the fence again when its body is sent: it may have waited for a connection meanwhile, or the
// process slept. Without its whole body the API server does nothing.
func (t *transport) guarded(r *http.Request) *http.Request {
	if r.Body == nil || r.Body == http.NoBody {
		return r
	}
	guarded := r.WithContext(r.Context())
	guarded.Body = &body{ReadCloser: r.Body, check: t.fence.Check}
	if again := r.GetBody; again != nil {
		guarded.GetBody = func() (io.ReadCloser, error) {
			b, err := again()
			return &body{ReadCloser: b, check: t.fence.Check}, err
		}
	}
	return guarded
}

// body ends with an error where the lease does.
type body struct {
	io.ReadCloser
	check func() error
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if err := b.check(); err != nil {
		return 0, err
	}
	return b.ReadCloser.Read(p)
}
