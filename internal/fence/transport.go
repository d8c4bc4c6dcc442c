package fence

import (
	"io"
	"net/http"
	"slices"
	"strings"
)

// Transport rejects writes with ErrFenced unless the lease is certainly held, and passes all other requests. Use it with rest.Config.Wrap.
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

// WrappedRoundTripper returns the next transport for client-go.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.inner }

// reviews are POST requests that change nothing: they check permissions and tokens.
var reviews = []string{"/authorization.k8s.io/v1/selfsubjectaccessreviews", "/authorization.k8s.io/v1/subjectaccessreviews", "/authentication.k8s.io/v1/tokenreviews"}

// writes reports whether a request could change something.
func writes(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	return r.Method != http.MethodPost || !slices.ContainsFunc(reviews, func(review string) bool { return strings.HasSuffix(r.URL.Path, "/apis"+review) })
}

// guarded checks the fence again when the request's body is sent, because the request may have waited for a connection or the process may
// have slept. The API server does nothing without the whole body.
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

// body returns an error once the lease is not held.
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
