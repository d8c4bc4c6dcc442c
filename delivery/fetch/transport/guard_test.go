package transport

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// loopback is the Network of tests, whose servers are on this machine.
var loopback = &Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}

// recorder is a server that keeps the last request it got and answers with a function.
type recorder struct {
	*httptest.Server
	requests []*http.Request
	answer   http.HandlerFunc
}

func record(t *testing.T, start func(http.Handler) *httptest.Server) *recorder {
	t.Helper()
	r := &recorder{answer: func(http.ResponseWriter, *http.Request) {}}
	r.Server = start(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.requests = append(r.requests, req)
		r.answer(w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *recorder) origin(t *testing.T) *url.URL {
	t.Helper()
	at, err := url.Parse(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// headers are the values of a header, one of each request.
func (r *recorder) headers(name string) []string {
	got := []string{}
	for _, req := range r.requests {
		got = append(got, req.Header.Get(name))
	}
	return got
}

// redirectTo redirects the path /start, and answers all others with 200.
func redirectTo(target string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/start" {
			http.Redirect(w, req, target, http.StatusTemporaryRedirect)
		}
	}
}

// send sends a request to /start of a server and returns the error as Get explains it.
func send(ctx context.Context, client *http.Client, to *recorder, header http.Header) error {
	res, err := Get(ctx, client, to.mustParse("/start"), header)
	if err == nil {
		_ = res.Body.Close()
	}
	return err
}

func (r *recorder) mustParse(path string) *url.URL {
	at, err := url.Parse(r.URL + path)
	if err != nil {
		panic(err)
	}
	return at
}

const basicOfBot = "Basic Ym90Omh1bnRlcjI=" // bot:hunter2

func TestCredentialsAreSentToTheOriginAndNowhereElse(t *testing.T) {
	home, away := record(t, httptest.NewServer), record(t, httptest.NewServer)
	cases := map[string]struct {
		auth           Auth
		target         string
		atHome, atAway []string
	}{
		"basic":                  {Auth{Username: "bot", Password: "hunter2"}, away.URL + "/file", []string{basicOfBot}, []string{""}},
		"bearer":                 {Auth{BearerToken: "t0ken"}, away.URL + "/file", []string{"Bearer t0ken"}, []string{""}},
		"anonymous":              {Auth{}, away.URL + "/file", []string{""}, []string{""}},
		"redirect at the origin": {Auth{BearerToken: "t0ken"}, "/other", []string{"Bearer t0ken", "Bearer t0ken"}, []string{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			home.requests, away.requests, home.answer = nil, nil, redirectTo(tc.target)
			client, err := NewClient(loopback, tc.auth, home.origin(t))
			if err != nil {
				t.Fatal(err)
			}
			if err := send(FromStorage(t.Context()), client, home, nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.atHome, home.headers("Authorization")); diff != "" {
				t.Errorf("at the origin: %s", diff)
			}
			if diff := cmp.Diff(tc.atAway, away.headers("Authorization")); diff != "" {
				t.Errorf("at the other host: %s", diff)
			}
		})
	}
}

// http.Client takes 127.0.0.1 with another port for the same host and copies the header there.
func TestARedirectToAnotherPortDropsTheHeaderThatTheCallerSet(t *testing.T) {
	home, away := record(t, httptest.NewServer), record(t, httptest.NewServer)
	home.answer = redirectTo(away.URL)
	client, err := NewClient(loopback, Auth{}, home.origin(t))
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"Authorization": {"Bearer t0ken"}, "Referer": {home.URL + "/private"}}
	if err := send(FromStorage(t.Context()), client, home, header); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Bearer t0ken"}, home.headers("Authorization")); diff != "" {
		t.Errorf("at the origin: %s", diff)
	}
	if diff := cmp.Diff([]string{""}, away.headers("Authorization")); diff != "" {
		t.Errorf("at the other host: %s", diff)
	}
	if diff := cmp.Diff([]string{""}, away.headers("Referer")); diff != "" {
		t.Errorf("Referer at the other host: %s", diff)
	}
	if header.Get("Referer") == "" {
		t.Error("the headers of the caller were changed")
	}
}

func TestOnlyStorageIsOnAnotherHost(t *testing.T) {
	home, away := record(t, httptest.NewServer), record(t, httptest.NewServer)
	home.answer = redirectTo(away.URL)
	client, err := NewClient(loopback, Auth{}, home.origin(t))
	if err != nil {
		t.Fatal(err)
	}
	sources.WantError(t, send(t.Context(), client, home, nil), failure.ErrInvalid, "the server redirects to "+away.URL+": use the URL it redirects to")
	sources.WantError(t, send(t.Context(), client, away, nil), failure.ErrInvalid, "the server redirects to "+away.URL)
	if len(away.requests) != 0 {
		t.Errorf("the other host got %d requests, want 0", len(away.requests))
	}
	if err := send(FromStorage(t.Context()), client, away, nil); err != nil {
		t.Errorf("an index may name an archive on another host: %v", err)
	}
}

func TestARegistryReachesStorageByARedirectOnly(t *testing.T) {
	home, away := record(t, httptest.NewServer), record(t, httptest.NewServer)
	home.answer = redirectTo(away.URL)
	client, _, err := NewRegistryClient(loopback, Auth{}, home.origin(t))
	if err != nil {
		t.Fatal(err)
	}
	sources.WantError(t, send(FromStorage(t.Context()), client, away, nil), failure.ErrInvalid, "the server redirects to "+away.URL)
	if len(away.requests) != 0 {
		t.Errorf("the other host got %d requests, want 0", len(away.requests))
	}
	if err := send(FromStorage(t.Context()), client, home, nil); err != nil {
		t.Errorf("a redirect to storage: %v", err)
	}
}

func TestAnHTTPSSourceIsNotFollowedToPlainHTTP(t *testing.T) {
	home, away := record(t, httptest.NewTLSServer), record(t, httptest.NewServer)
	home.answer = redirectTo(away.URL)
	client, err := NewClient(loopback, Auth{CA: sources.Certificate(home.Server)}, home.origin(t))
	if err != nil {
		t.Fatal(err)
	}
	sources.WantError(t, send(FromStorage(t.Context()), client, home, nil), failure.ErrInvalid,
		"the server leads to "+away.origin(t).Host+" without TLS, which an https source does not follow")
	if len(away.requests) != 0 {
		t.Error("the plain server was asked")
	}
}

func TestARedirectWithABodyIsRefused(t *testing.T) {
	home, away := record(t, httptest.NewServer), record(t, httptest.NewServer)
	client, err := NewClient(loopback, Auth{}, home.origin(t))
	if err != nil {
		t.Fatal(err)
	}
	post := func(target string) error {
		home.answer = redirectTo(target)
		req, err := http.NewRequestWithContext(FromStorage(t.Context()), http.MethodPost, home.URL+"/start", strings.NewReader("secret"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			return RequestError(err, "h")
		}
		return res.Body.Close()
	}
	sources.WantError(t, post(away.URL), failure.ErrInvalid, "the server redirects what it was sent to "+away.origin(t).Host)
	if len(away.requests) != 0 {
		t.Error("the body was sent to the other host")
	}
	sources.WantError(t, post("/other"), nil, "")
}

// TestTheClientCertificateIsForTheOrigin has both servers ask for one.
func TestTheClientCertificateIsForTheOrigin(t *testing.T) {
	start := func(handler http.Handler) *httptest.Server {
		server := httptest.NewUnstartedServer(handler)
		server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
		server.StartTLS()
		return server
	}
	home, away := record(t, start), record(t, start)
	home.answer = redirectTo(away.URL)
	certificate, key := clientCertificate(t)
	client, err := NewClient(loopback, Auth{CA: sources.Certificate(home.Server), Certificate: certificate, PrivateKey: key}, home.origin(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := send(FromStorage(t.Context()), client, home, nil); err != nil {
		t.Fatal(err)
	}
	if got := len(home.requests[0].TLS.PeerCertificates); got != 1 {
		t.Errorf("the origin got %d certificates, want 1", got)
	}
	if got := len(away.requests[0].TLS.PeerCertificates); got != 0 {
		t.Errorf("the other host got %d certificates, want none", got)
	}
}

func TestGitHostsSeeAGitClient(t *testing.T) {
	home := record(t, httptest.NewServer)
	for _, open := range []func(*Network, Auth, *url.URL) (*http.Client, error){NewClient, NewGitClient} {
		client, err := open(loopback, Auth{}, home.origin(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := send(t.Context(), client, home, nil); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"kubeop", "git/kubeop"}, home.headers("User-Agent")); diff != "" {
		t.Error(diff)
	}
}

func TestARegistryThatDoesNotAnswer(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	origin, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	client, _, err := NewRegistryClient(loopback, Auth{}, origin)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := client.Get(server.URL + "/v2/"); err == nil {
		t.Errorf("got %s of a server that is closed", res.Status)
	}
}

func TestNoClientIsMadeOfCredentialsThatCannotBeUsed(t *testing.T) {
	origin := &url.URL{Scheme: "https", Host: "h.example"}
	for name, tc := range map[string]struct {
		auth Auth
		says string
	}{
		"authority":   {Auth{CA: []byte("hunter2")}, "ca.crt of the Secret holds no certificate in PEM"},
		"certificate": {Auth{Certificate: []byte("hunter2")}, "the Secret holds tls.crt but no tls.key: add it"},
	} {
		t.Run(name, func(t *testing.T) {
			_, plain := NewClient(nil, tc.auth, origin)
			_, git := NewGitClient(nil, tc.auth, origin)
			_, _, registry := NewRegistryClient(nil, tc.auth, origin)
			for _, err := range []error{plain, git, registry} {
				sources.WantError(t, err, failure.ErrInvalid, tc.says)
			}
		})
	}
}
