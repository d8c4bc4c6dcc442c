package fence

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

// server is an API server that counts the requests whose whole body arrived.
type server struct {
	*httptest.Server
	whole atomic.Int32
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err == nil {
			s.whole.Add(1)
		}
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// clients are an operator's own client, and a copy that impersonates a user.
func (s *server) clients(t *testing.T, wrap ...func(http.RoundTripper) http.RoundTripper) map[string]*http.Client {
	t.Helper()
	own := &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	for _, w := range wrap {
		own.Wrap(w)
	}
	impersonating := rest.CopyConfig(rest.CopyConfig(own))
	impersonating.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:shop:deployer"}
	clients := map[string]*http.Client{}
	for name, config := range map[string]*rest.Config{"own": own, "impersonating": impersonating} {
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		clients[name] = client
	}
	return clients
}

func TestWritesAreRefused(t *testing.T) {
	const review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	cases := map[string]struct {
		method, path string
		refused      bool
	}{
		"get":                             {method: "GET", path: "/api/v1/pods"},
		"head":                            {method: "HEAD", path: "/api/v1/pods"},
		"options":                         {method: "OPTIONS", path: "/api/v1/pods"},
		"post":                            {method: "POST", path: "/api/v1/pods", refused: true},
		"put":                             {method: "PUT", path: "/api/v1/pods/a", refused: true},
		"patch":                           {method: "PATCH", path: "/api/v1/pods/a", refused: true},
		"delete":                          {method: "DELETE", path: "/api/v1/pods/a", refused: true},
		"an unknown method":               {method: "MOVE", path: "/api/v1/pods/a", refused: true},
		"its own rights":                  {method: "POST", path: review},
		"the same behind a proxy":         {method: "POST", path: "/cluster/7" + review},
		"another's rights":                {method: "POST", path: "/apis/authorization.k8s.io/v1/subjectaccessreviews"},
		"another's rights, local":         {method: "POST", path: "/apis/authorization.k8s.io/v1/namespaces/a/localsubjectaccessreviews", refused: true},
		"a token review":                  {method: "POST", path: "/apis/authentication.k8s.io/v1/tokenreviews"},
		"deleting token reviews":          {method: "DELETE", path: "/apis/authentication.k8s.io/v1/tokenreviews", refused: true},
		"a kind of the same name":         {method: "POST", path: "/apis/example.com/v1/selfsubjectaccessreviews", refused: true},
		"a token for a service account":   {method: "POST", path: "/api/v1/namespaces/a/serviceaccounts/b/token", refused: true},
		"an object with the name of them": {method: "DELETE", path: review + "/selfsubjectaccessreviews2", refused: true},
	}
	s := newServer(t)
	f := newFence(newClocks().now)
	lead := func() {
		if err := f.Lock(&record{}, duration).Create(t.Context(), held("us", 0)); err != nil {
			t.Fatal(err)
		}
	}
	for user, client := range s.clients(t, f.Transport) {
		for name, c := range cases {
			t.Run(user+": "+name, func(t *testing.T) {
				f.phase = standby
				if got := s.sends(t, client, c.method, c.path); got != !c.refused {
					t.Errorf("on standby it arrived: %t", got)
				}
				lead()
				if got := s.sends(t, client, c.method, c.path); !got {
					t.Error("it did not arrive from the leader")
				}
			})
		}
	}
}

// sends reports whether a request arrived. If not, the error must be ErrFenced.
func (s *server) sends(t *testing.T, client *http.Client, method, path string) bool {
	t.Helper()
	before := s.whole.Load()
	body := &closed{Reader: strings.NewReader(`{"kind":"DeleteOptions"}`)}
	request, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err == nil {
		response.Body.Close()
	}
	arrived := s.whole.Load() != before
	if !arrived && !errors.Is(err, ErrFenced) {
		t.Errorf("%s %s did not arrive and ended with %v", method, path, err)
	}
	if !arrived && !body.closed.Load() {
		t.Error("the body was left open")
	}
	return arrived
}

// TestAWriteWithoutABodyIsRefusedToo: there is no body that would be checked when it is sent.
func TestAWriteWithoutABodyIsRefusedToo(t *testing.T) {
	f, sent := newFence(newClocks().now), 0
	guard := f.Transport(roundTripper(func(*http.Request) (*http.Response, error) {
		sent++
		return &http.Response{Body: http.NoBody}, nil
	}))
	for _, body := range []io.Reader{nil, http.NoBody} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, "https://127.0.0.1/api/v1/pods/a", body)
		if err != nil {
			t.Fatal(err)
		}
		send := func() error {
			response, err := guard.RoundTrip(request)
			if err == nil {
				err = response.Body.Close()
			}
			return err
		}
		sent, f.phase = 0, standby
		if err := send(); !errors.Is(err, ErrFenced) || err.Error() != "this operator does not hold the lease home/lease yet: another one leads" || sent != 0 {
			t.Errorf("on standby: %v, sent %d times", err, sent)
		}
		if err := f.Lock(&record{}, duration).Create(t.Context(), held("us", 0)); err != nil {
			t.Fatal(err)
		}
		if err := send(); err != nil || sent != 1 {
			t.Errorf("from the leader: %v, sent %d times", err, sent)
		}
	}
}

type closed struct {
	io.Reader
	closed atomic.Bool
}

func (c *closed) Close() error { c.closed.Store(true); return nil }

// TestTheFenceIsCheckedAgainWhenARequestIsSent: the process sleeps after the first check and before the request is sent.
func TestTheFenceIsCheckedAgainWhenARequestIsSent(t *testing.T) {
	s, clocks := newServer(t), newClocks()
	f := newFence(clocks.now)
	asleep := func(inner http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			clocks.pass(valid, valid)
			return inner.RoundTrip(r)
		})
	}
	for user, client := range s.clients(t, asleep, f.Transport) {
		if err := f.Lock(&record{}, duration).Update(t.Context(), held("us", 0)); err != nil {
			t.Fatal(err)
		}
		if s.sends(t, client, "PATCH", "/api/v1/pods/a") {
			t.Errorf("%s: it was sent after the lease had ended", user)
		}
	}
}

// TestTheFenceIsCheckedWhenABodyIsSentAgain: the transport sends it again when the connection breaks.
func TestTheFenceIsCheckedWhenABodyIsSentAgain(t *testing.T) {
	clocks := newClocks()
	f := newFence(clocks.now)
	if err := f.Lock(&record{}, duration).Update(t.Context(), held("us", 0)); err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), "PUT", "https://example.com/api", strings.NewReader("content"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Transport(roundTripper(func(r *http.Request) (*http.Response, error) {
		if got, err := io.ReadAll(r.Body); err != nil || string(got) != "content" {
			t.Errorf("first it read %q, %v", got, err)
		}
		again, err := r.GetBody()
		if err != nil {
			t.Fatal(err)
		}
		clocks.pass(valid, valid)
		_, err = io.ReadAll(again)
		return nil, err
	})).RoundTrip(request)
	if !errors.Is(err, ErrFenced) || err.Error() != "this operator does not hold the lease home/lease any more: it last renewed the lease 12s ago and others may have taken over" {
		t.Errorf("got %v, want ErrFenced", err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
