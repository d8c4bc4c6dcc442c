package chart

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// clientCertificate makes a self-signed client certificate.
func clientCertificate(t *testing.T) (certificate, key []byte, authority *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		BasicConstraintsValid: true, IsCA: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, about, about, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	authority = x509.NewCertPool()
	certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	authority.AppendCertsFromPEM(certificate)
	return certificate, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), authority
}

// recordingServer is a server that records with which credentials it was called.
type recordingServer struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string
}

func listen(t *testing.T, start func(http.Handler) *httptest.Server, answer http.HandlerFunc) *recordingServer {
	t.Helper()
	h := &recordingServer{}
	h.Server = start(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		line := req.Method + " " + req.URL.Path + " " + req.Header.Get("Authorization") + string(body)
		if req.TLS != nil && len(req.TLS.PeerCertificates) > 0 {
			line += "with a certificate"
		}
		h.mu.Lock()
		h.seen = append(h.seen, strings.TrimSpace(line))
		h.mu.Unlock()
		answer(w, req)
	}))
	h.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(h.Close)
	return h
}

func (h *recordingServer) all() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := strings.Join(h.seen, "\n")
	h.seen = nil
	return seen
}

// startRequestingCertificate starts a TLS server that requests a client certificate as policy says.
func startRequestingCertificate(policy tls.ClientAuthType, authority *x509.CertPool) func(http.Handler) *httptest.Server {
	return func(handler http.Handler) *httptest.Server {
		server := httptest.NewUnstartedServer(handler)
		server.TLS = &tls.Config{ClientAuth: policy, ClientCAs: authority}
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.StartTLS()
		return server
	}
}

func TestAClientCertificateIsSentToItsHostOnly(t *testing.T) {
	const required = tls.RequireAndVerifyClientCert
	client, key, authority := clientCertificate(t)
	archive, _ := sources.Gzip(t, "1.0.0")
	other := listen(t, startRequestingCertificate(tls.RequestClientCert, nil), func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) })
	server := listen(t, startRequestingCertificate(required, authority), func(w http.ResponseWriter, req *http.Request) {
		if strings.HasSuffix(req.URL.Path, "index.yaml") {
			_, _ = fmt.Fprintf(w, "entries:\n  web:\n  - {version: 1.0.0, urls: [web.tgz]}\n  abroad:\n  - {version: 1.0.0, urls: [%s/x.tgz]}\n", other.URL)
			return
		}
		_, _ = w.Write(archive)
	})
	registry := sources.ServeOCI(t, startRequestingCertificate(required, authority))
	pushChart(t, registry, "1.0.0", chartMediaType)
	registry.Away = other.URL
	ca := sources.Certificate(server.Server)
	auth := transport.Auth{Certificate: client, PrivateKey: key, CA: ca}
	for name, src := range map[string]Source{
		"web": {Repository: server.URL, Name: "web", Auth: auth}, "abroad": {Repository: server.URL, Name: "abroad", Auth: auth},
		"registry": {Repository: registry.Repository(), Name: "web", Auth: auth},
	} {
		_, err := NewStore(t.TempDir(), loopback).Fetch(t.Context(), src)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		src.Auth = transport.Auth{CA: ca}
		_, err = NewStore(t.TempDir(), loopback).Fetch(t.Context(), src)
		sources.WantError(t, err, failure.ErrAuthentication, "as tls.crt and tls.key of the Secret")
	}
	if got := other.all(); strings.Contains(got, "certificate") || strings.Count(got, "GET") != 2 {
		t.Errorf("the other host got %q", got)
	}
}

// Wherever a repository redirects, the credentials for its host are sent only there.
func TestChartCredentialsAndRedirects(t *testing.T) {
	archive, _ := sources.Gzip(t, "x")
	var home, other *recordingServer
	other = listen(t, httptest.NewServer, func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/back.tgz" {
			http.Redirect(w, req, home.URL+"/private.tgz", http.StatusFound)
			return
		}
		_, _ = w.Write(archive)
	})
	home = listen(t, httptest.NewServer, func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/index.yaml":
			_, _ = fmt.Fprintf(w, "entries:\n  web:\n  - {version: 1.0.0, urls: [%s/web.tgz]}\n  here:\n  - {version: 1.0.0, urls: [here.tgz]}\n"+
				"  back:\n  - {version: 1.0.0, urls: [%s/back.tgz]}\n", other.URL, other.URL)
		case "/here.tgz":
			http.Redirect(w, req, other.URL+"/here.tgz", http.StatusTemporaryRedirect)
		default:
			_, _ = w.Write(archive)
		}
	})
	for sent, auth := range map[string]transport.Auth{
		"Basic Ym90Omh1bnRlcjI=": {Username: "bot", Password: "hunter2"},
		"Bearer hunter2":         {BearerToken: "hunter2"},
	} {
		store := NewStore(t.TempDir(), loopback)
		for _, name := range []string{"web", "here", "back"} {
			if _, err := store.Fetch(t.Context(), Source{Repository: home.URL, Name: name, Auth: auth}); err != nil {
				t.Error(err)
			}
		}
		if got, want := other.all(), "GET /web.tgz\nGET /here.tgz\nGET /back.tgz"; got != want {
			t.Errorf("the other host got\n%s\nwant\n%s", got, want)
		}
		index := "GET /index.yaml " + sent + "\n"
		if got, want := home.all(), index+index+"GET /here.tgz "+sent+"\n"+index+"GET /private.tgz "+sent; got != want {
			t.Errorf("the host itself got\n%s\nwant\n%s", got, want)
		}
	}
}

// TestOnlyArchivesAreFetchedElsewhere: an index, a manifest or a list of tags is never requested from another host.
func TestOnlyArchivesAreFetchedElsewhere(t *testing.T) {
	other := listen(t, httptest.NewServer, func(http.ResponseWriter, *http.Request) {})
	away := listen(t, httptest.NewServer, func(w http.ResponseWriter, req *http.Request) {
		if strings.HasSuffix(req.URL.Path, "/tags/list") {
			w.Header().Set("Link", "<"+other.URL+req.URL.Path+">; rel=\"next\"")
			_, _ = w.Write([]byte(`{"name":"charts/web","tags":["1.0.0"]}`))
			return
		}
		http.Redirect(w, req, other.URL+req.URL.Path, http.StatusFound)
	})
	host := strings.TrimPrefix(away.URL, "http://")
	for name, c := range map[string]struct {
		src  Source
		kind error
	}{
		"an index":   {Source{Repository: away.URL, Name: "web"}, failure.ErrInvalid},
		"a manifest": {Source{Repository: "oci://" + host + "/charts", Name: "web", Version: "1.0.0", Insecure: true}, failure.ErrInvalid},
		// The registry's library refuses this itself.
		"a list of tags": {Source{Repository: "oci://" + host + "/charts", Name: "web", Insecure: true}, failure.ErrServer},
	} {
		_, err := NewStore(t.TempDir(), loopback).Fetch(t.Context(), c.src)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), other.URL) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if got := other.all(); got != "" {
		t.Errorf("the other host got %q, want none", got)
	}
}

// A registry may name any token server. One on another host gets credentials only if administrators allow it for this registry, and no host
// to which it redirects does; pulling without credentials is always allowed.
func TestOnlyAllowedTokenServersGetCredentials(t *testing.T) {
	const basicHeader = "Basic Ym90Omh1bnRlcjI="
	third := listen(t, httptest.NewTLSServer, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"token":"t0ken"}`)) })
	answer := func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/away":
			http.Redirect(w, req, third.URL+"/first", http.StatusTemporaryRedirect)
			return
		case "/deny":
			http.Error(w, `{"errors":[{"code":"UNAUTHORIZED"}]}`, http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"token":"t0ken","access_token":"t0ken"}`))
	}
	secure, plain := listen(t, httptest.NewTLSServer, answer), listen(t, httptest.NewServer, answer)
	own := transport.Auth{Username: "bot", Password: "hunter2"}
	refresh := func(host string) transport.Auth {
		return transport.Auth{DockerConfig: []byte(`{"auths":{"` + host + `":{"identitytoken":"hunter2"}}}`)}
	}
	const refreshed = "POST /token client_id=oras-go&grant_type=refresh_token&refresh_token=hunter2&scope=repository%3Acharts%2Fweb%3Apull&service=registry"
	cases := map[string]struct {
		realm                              string
		insecure, refresh, trusted, public bool
		got                                string
		kind                               error
		says                               string
	}{
		"over TLS":                      {realm: secure.URL + "/token", trusted: true, got: "GET /token " + basicHeader},
		"without TLS":                   {realm: plain.URL + "/token", trusted: true, kind: failure.ErrServer, says: "uses http but registry was contacted over https"},
		"without TLS, insecure":         {realm: plain.URL + "/token", trusted: true, insecure: true, got: "GET /token " + basicHeader},
		"redirected":                    {realm: secure.URL + "/away", trusted: true, got: "GET /away " + basicHeader, kind: failure.ErrInvalid, says: "redirects to"},
		"refresh token":                 {realm: secure.URL + "/token", trusted: true, refresh: true, got: refreshed},
		"refresh token, redirected":     {realm: secure.URL + "/away", trusted: true, refresh: true, got: strings.Replace(refreshed, "token", "away", 1), kind: failure.ErrInvalid, says: "redirects"},
		"of another scheme":             {realm: "file:///etc/passwd", trusted: true, kind: failure.ErrServer, says: "unsupported scheme"},
		"not trusted":                   {realm: secure.URL + "/deny", got: "GET /deny", kind: failure.ErrAuthentication, says: "to tokenServices of the values"},
		"not trusted, insecure":         {realm: plain.URL + "/deny", insecure: true, got: "GET /deny", kind: failure.ErrAuthentication, says: "to tokenServices of the values"},
		"not trusted, refresh token":    {realm: secure.URL + "/token", refresh: true, kind: failure.ErrAuthentication, says: "to tokenServices of the values"},
		"not trusted, for everybody":    {realm: secure.URL + "/token", got: "GET /token"},
		"not trusted, no credentials":   {realm: secure.URL + "/token", public: true, got: "GET /token"},
		"not trusted, and none gets it": {realm: secure.URL + "/deny", public: true, got: "GET /deny", kind: failure.ErrAuthentication, says: "wants credentials for the version 1.0.0 of the chart at this URL"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			start := httptest.NewTLSServer
			if tc.insecure {
				start = httptest.NewServer
			}
			registry := sources.ServeOCI(t, start)
			registry.Config.ErrorLog = log.New(io.Discard, "", 0)
			pushChart(t, registry, "1.0.0", chartMediaType)
			registry.Allow, registry.Challenge = sources.Bearer("t0ken"), `Bearer realm="`+tc.realm+`",service="registry"`
			src, host := Source{Repository: registry.Repository(), Name: "web", Version: "1.0.0", Insecure: tc.insecure, Auth: own}, registry.Listener.Addr().String()
			switch {
			case tc.refresh:
				src.Auth = refresh(host)
			case tc.public:
				src.Auth = transport.Auth{}
			}
			network := &transport.Network{Allowed: loopback.Allowed}
			if at, err := url.Parse(tc.realm); err == nil && tc.trusted {
				network.TokenServices = map[string]string{host: at.Host}
			}
			src.Auth.CA = sources.Certificate(secure.Server)
			_, err := NewStore(t.TempDir(), network).Fetch(t.Context(), src)
			if tc.kind != nil {
				sources.WantError(t, err, tc.kind, tc.says)
				sources.WantNoSecret(t, err, "hunter2")
			} else if err != nil {
				t.Error(err)
			}
			if got := secure.all() + plain.all(); got != tc.got {
				t.Errorf("the token server got %q, want %q", got, tc.got)
			}
			if got := third.all(); got != "" {
				t.Errorf("the third got %q, want none", got)
			}
		})
	}
}

func TestCredentialsOfARegistryAreChosenByPath(t *testing.T) {
	server := sources.ServeOCI(t, httptest.NewTLSServer)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	pushChart(t, server, "1.0.0", chartMediaType)
	server.Allow, server.Challenge = sources.Basic("bot", "right"), `Basic realm="registry"`
	host := server.Listener.Addr().String()
	entry := func(place, password string) string {
		return fmt.Sprintf(`%q:{"username":"bot","password":%q}`, place, password)
	}
	cases := map[string]struct {
		entries []string
		refused bool
	}{
		"the path":           {[]string{entry(host, "wrong"), entry(host+"/charts", "right")}, false},
		"the longest":        {[]string{entry(host+"/charts", "wrong"), entry("https://"+host+"/charts/web/", "right")}, false},
		"the host":           {[]string{entry(host+"/other", "wrong"), entry(host+"/v2/", "right")}, false},
		"half a name":        {[]string{entry(host+"/char", "right")}, true},
		"another path":       {[]string{entry(host+"/charts/api", "right")}, true},
		"the longest refuse": {[]string{entry(host, "right"), entry(host+"/charts/web", "wrong")}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			auth := transport.Auth{CA: sources.Certificate(server.Server), DockerConfig: []byte(`{"auths":{` + strings.Join(tc.entries, ",") + `}}`)}
			_, err := NewStore(t.TempDir(), loopback).Fetch(t.Context(), Source{Repository: server.Repository(), Name: "web", Auth: auth})
			if tc.refused {
				sources.WantError(t, err, failure.ErrAuthentication, host)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAClientCertificateNeedsItsKey(t *testing.T) {
	certificate, key, _ := clientCertificate(t)
	_, other, _ := clientCertificate(t)
	cases := map[string]struct {
		certificate, key []byte
		says             string
	}{
		"both":           {certificate, key, ""},
		"no key":         {certificate, nil, "tls.crt but no tls.key"},
		"no certificate": {nil, key, "tls.key but no tls.crt"},
		"of another":     {certificate, other, "are not a certificate and its private key"},
		"no PEM":         {[]byte("hunter2"), []byte("hunter2"), "are not a certificate and its private key"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			auth, err := transport.AuthFromSecret("team", "git", map[string][]byte{"tls.crt": tc.certificate, "tls.key": tc.key})
			if tc.says != "" {
				sources.WantError(t, err, failure.ErrInvalid, tc.says)
				sources.WantNoSecret(t, err, "hunter2")
				return
			}
			if err != nil || !bytes.Equal(auth.Certificate, certificate) || !bytes.Equal(auth.PrivateKey, key) || !auth.Anonymous() {
				t.Errorf("%v, %v", auth, err)
			}
		})
	}
}
