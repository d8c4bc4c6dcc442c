package transport

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

func TestAnErrorStatusSaysWhatToDo(t *testing.T) {
	known, anonymous := Auth{Username: "bot", Password: "hunter2"}, Auth{}
	for name, tc := range map[string]struct {
		status int
		auth   Auth
		kind   error
		says   string
	}{
		"401, anonymous":   {401, anonymous, failure.ErrAuthentication, "h.example wants credentials for the chart at this URL; some hosts answer so if it does not exist (401): check the URL in Git, or name a Secret with"},
		"401, credentials": {401, known, failure.ErrAuthentication, "h.example rejected the credentials of the Secret (401): check them; a token may have expired"},
		"403, anonymous":   {403, anonymous, failure.ErrAuthentication, "h.example denies access without credentials (403): check the URL in Git, or name a Secret"},
		"403, credentials": {403, known, failure.ErrAuthentication, "h.example denies access (403): check what the credentials of the Secret may read"},
		"404, anonymous":   {404, anonymous, failure.ErrNotFound, "there is no chart at this URL (404): check the URL in Git; if it is private, name a Secret in secretRef there"},
		"404, credentials": {404, known, failure.ErrNotFound, "there is no chart at this URL, or the credentials may not see it (404): check the URL in Git, and what the credentials may read"},
		"410":              {410, known, failure.ErrNotFound, "may not see it (410)"},
		"429":              {429, known, failure.ErrServer, "h.example answered 429 Too Many Requests"},
		"500":              {500, known, failure.ErrServer, "h.example answered 500 Internal Server Error"},
		"an odd success":   {204, known, failure.ErrServer, "h.example answered 204 No Content"},
	} {
		t.Run(name, func(t *testing.T) {
			res := &http.Response{StatusCode: tc.status, Request: &http.Request{URL: &url.URL{Scheme: "https", Host: "h.example", Path: "/private"}}}
			err := StatusError(res, tc.auth, "chart")
			sources.WantError(t, err, tc.kind, tc.says)
			for _, kind := range []error{failure.ErrAuthentication, failure.ErrNotFound, failure.ErrUnavailable} {
				if is, want := errors.Is(err, kind), errors.Is(tc.kind, kind); is != want {
					t.Errorf("it is %q: %v, want %v", kind, is, want)
				}
			}
		})
	}
}

func TestHostsThatDoNotSayWhetherSomethingExistsAreNamedAsSuch(t *testing.T) {
	for host, want := range map[string]string{
		"github.com":    "github.com has no Git repository at this URL, or it needs credentials; the host does not say which (401): check the URL in Git, or name a Secret with",
		"git.acme.test": "git.acme.test wants credentials for the Git repository at this URL; some hosts answer so if it does not exist (401): check the URL in Git, or name a Secret with",
	} {
		res := &http.Response{StatusCode: http.StatusUnauthorized, Request: &http.Request{URL: &url.URL{Scheme: "https", Host: host, Path: "/a/b"}}}
		sources.WantError(t, StatusError(res, Auth{}, "Git repository"), failure.ErrAuthentication, want)
	}
}

func TestAMessageSaysThatAHostRevealsNothing(t *testing.T) {
	for _, host := range strings.Fields("github.com gitlab.com bitbucket.org codeberg.org dev.azure.com ghcr.io quay.io registry.gitlab.com registry-1.docker.io index.docker.io") {
		if got := wanted(host, "chart"); got != host+" has no chart at this URL, or it needs credentials; the host does not say which" {
			t.Errorf("got %q", got)
		}
	}
}

func TestGetAcceptsOnlyAWholeAnswer(t *testing.T) {
	server := record(t, httptest.NewServer)
	server.answer = func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/partial" {
			w.WriteHeader(http.StatusPartialContent)
		}
		_, _ = io.WriteString(w, "text")
	}
	client, err := NewClient(loopback, Auth{}, server.origin(t))
	if err != nil {
		t.Fatal(err)
	}
	body, err := GetBody(t.Context(), client, Auth{}, server.mustParse("/whole"), "chart")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(body); string(text) != "text" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
	_ = body.Close()
	_, err = GetBody(t.Context(), client, Auth{}, server.mustParse("/partial"), "chart")
	sources.WantError(t, err, failure.ErrServer, "206 Partial Content")
}

func TestGetExplainsAnInvalidServerCertificate(t *testing.T) {
	server := record(t, httptest.NewTLSServer)
	trusted := Auth{CA: sources.Certificate(server.Server)}
	byName := server.mustParse("/")
	byName.Host = "localhost:" + byName.Port()
	for name, tc := range map[string]struct {
		at   *url.URL
		auth Auth
		kind error
		says string
	}{
		"trusted":         {server.mustParse("/"), trusted, nil, ""},
		"not trusted":     {server.mustParse("/"), Auth{}, failure.ErrAuthentication, "the certificate of " + server.origin(t).Host + " is signed by an unknown authority: add the authority as ca.crt"},
		"of another name": {byName, trusted, failure.ErrAuthentication, "the certificate of " + byName.Host + " is for another name"},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := NewClient(loopback, tc.auth, tc.at)
			if err != nil {
				t.Fatal(err)
			}
			_, err = GetBody(t.Context(), client, tc.auth, tc.at, "chart")
			sources.WantError(t, err, tc.kind, tc.says)
			if tc.kind == nil && err != nil {
				t.Error(err)
			}
		})
	}
}

func TestARequiredClientCertificateIsReported(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13}
	server.StartTLS()
	defer server.Close()
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	client, err := NewClient(loopback, Auth{CA: sources.Certificate(server)}, at)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Get(t.Context(), client, at, nil)
	sources.WantError(t, err, failure.ErrAuthentication, at.Host+" ended the TLS handshake (tls: certificate required): give it a client certificate it accepts")
}

func TestRequestErrorKeepsAKindAndHidesTheURL(t *testing.T) {
	secret := "https://h.example/a?token=hunter2" // no credentials
	ours := failure.New(failure.ErrInvalid, "not followed")
	if err := RequestError(&url.Error{Op: "Get", URL: secret, Err: ours}, "h.example"); err != ours { //nolint:errorlint // not wrapped
		t.Errorf("got %v", err)
	}
	cause := errors.New("connection refused")
	err := RequestError(fmt.Errorf("fetching: %w", &url.Error{Op: "Get", URL: secret, Err: cause}), "h.example")
	if err.Error() != "unavailable: h.example gives no answer: connection refused" || !errors.Is(err, cause) || !errors.Is(err, failure.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

func TestSafeURLShowsNoCredentials(t *testing.T) {
	for raw, want := range map[string]string{
		"https://bot:hunter2@h.example:8443/a/b.git?token=hunter2#hunter2": "https://h.example:8443/a/b.git",
		"https://hunter2@h.example/":                                       "https://h.example/",
		"git@h.example:hunter2":                                            "the repository",
		"hunter2":                                                          "the repository",
		"https://%zz":                                                      "the repository",
	} {
		if got := SafeURL(raw); got != want {
			t.Errorf("%s: got %s, want %s", raw, got, want)
		}
	}
}

func TestTheOriginIsTheSchemeHostAndPort(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b string
		want bool
	}{
		"the same":                    {"https://h.example/a", "https://h.example/b", true},
		"upper case":                  {"https://h.example/", "https://H.EXAMPLE/", true},
		"the port of https":           {"https://h.example/", "https://h.example:443/", true},
		"the port of http":            {"http://h.example/", "http://h.example:80/", true},
		"the port of the other":       {"http://h.example/", "http://h.example:443/", false},
		"another port":                {"https://h.example/", "https://h.example:8443/", false},
		"another scheme":              {"https://h.example/", "http://h.example/", false},
		"another scheme, same port":   {"https://h.example:80/", "http://h.example:80/", false},
		"a host that begins the same": {"https://h.example/", "https://h.example.evil/", false},
		"a user that looks like it":   {"https://h.example/", "https://h.example@evil.example/", false},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := url.Parse(tc.a)
			if err != nil {
				t.Fatal(err)
			}
			b, err := url.Parse(tc.b)
			if err != nil {
				t.Fatal(err)
			}
			if got := SameOrigin(a, b); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// TestAClientUsesHTTP2AndNoTLSBefore12, where the server has HTTP/2.
func TestAClientUsesHTTP2AndNoTLSBefore12(t *testing.T) {
	serve := func(most uint16) (*httptest.Server, *http.Client, *url.URL) {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, r.Proto+" "+r.Method+" "+r.Header.Get("Accept"))
		}))
		server.EnableHTTP2, server.TLS = true, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: most}
		server.StartTLS()
		t.Cleanup(server.Close)
		at, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		client, err := NewClient(loopback, Auth{CA: sources.Certificate(server)}, at)
		if err != nil {
			t.Fatal(err)
		}
		return server, client, at
	}
	_, client, at := serve(tls.VersionTLS13)
	res, err := Get(t.Context(), client, at, http.Header{"Accept": {"text/yaml"}})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, err := io.ReadAll(res.Body); string(text) != "HTTP/2.0 GET text/yaml" || err != nil {
		t.Errorf("the server got %q, %v", text, err)
	}
	_, client, at = serve(tls.VersionTLS11)
	if _, err := Get(t.Context(), client, at, nil); err == nil {
		t.Error("it uses TLS 1.1")
	}
	if _, err := Get(t.Context(), client, &url.URL{Scheme: "https", Host: "a b"}, nil); !errors.Is(err, failure.ErrInvalid) || !strings.Contains(err.Error(), "the URL cannot be requested") {
		t.Errorf("a URL that is none: %v", err)
	}
}
