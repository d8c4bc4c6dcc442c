package fetch

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// clientCertificate makes one that is its own authority.
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

// heard is a server that writes down who it was asked by.
type heard struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string
}

func listen(t *testing.T, start func(http.Handler) *httptest.Server, answer http.HandlerFunc) *heard {
	t.Helper()
	h := &heard{}
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

func (h *heard) all() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := strings.Join(h.seen, "\n")
	h.seen = nil
	return seen
}

// startAsking starts a TLS server that asks for a client certificate as policy says.
func startAsking(policy tls.ClientAuthType, authority *x509.CertPool) func(http.Handler) *httptest.Server {
	return func(handler http.Handler) *httptest.Server {
		server := httptest.NewUnstartedServer(handler)
		server.TLS = &tls.Config{ClientAuth: policy, ClientCAs: authority}
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.StartTLS()
		return server
	}
}

func TestChartWithClientCertificate(t *testing.T) {
	const required = tls.RequireAndVerifyClientCert
	client, key, authority := clientCertificate(t)
	archive, _ := tgz(t, "1.0.0")
	other := listen(t, startAsking(tls.RequestClientCert, nil), func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) })
	server := listen(t, startAsking(required, authority), func(w http.ResponseWriter, req *http.Request) {
		if strings.HasSuffix(req.URL.Path, "index.yaml") {
			_, _ = fmt.Fprintf(w, "entries:\n  web:\n  - {version: 1.0.0, urls: [web.tgz]}\n  abroad:\n  - {version: 1.0.0, urls: [%s/x.tgz]}\n", other.URL)
			return
		}
		_, _ = w.Write(archive)
	})
	registry := serveOCI(t, startAsking(required, authority))
	registry.push(t, "1.0.0", chartMediaType)
	registry.away = other.URL
	ca := certificate(server.Server)
	auth := Auth{Certificate: client, PrivateKey: key, CA: ca}
	for name, src := range map[string]Chart{
		"web": {Repository: server.URL, Name: "web", Auth: auth}, "abroad": {Repository: server.URL, Name: "abroad", Auth: auth},
		"registry": {Repository: registry.repository(), Name: "web", Auth: auth},
	} {
		_, err := NewChartStore(t.TempDir(), loopback).Fetch(t.Context(), src)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		src.Auth = Auth{CA: ca}
		_, err = NewChartStore(t.TempDir(), loopback).Fetch(t.Context(), src)
		wantError(t, err, ErrAuthentication, "as tls.crt and tls.key of the Secret")
	}
	if got := other.all(); strings.Contains(got, "certificate") || strings.Count(got, "GET") != 2 {
		t.Errorf("the other host got %q", got)
	}
}

// Wherever a repository leads, what was given for its host stays there.
func TestChartCredentialsAndRedirects(t *testing.T) {
	archive, _ := tgz(t, "x")
	var home, other *heard
	other = listen(t, httptest.NewServer, func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/index.yaml":
			_, _ = fmt.Fprintf(w, "entries:\n  web:\n  - {version: 1.0.0, urls: [%s/private.tgz]}\n  here:\n  - {version: 1.0.0, urls: [here.tgz]}\n", home.URL)
		default:
			_, _ = w.Write(archive)
		}
	})
	home = listen(t, httptest.NewServer, func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/index.yaml":
			http.Redirect(w, req, other.URL+"/index.yaml", http.StatusFound)
		case "/here.tgz":
			http.Redirect(w, req, other.URL+"/here.tgz", http.StatusTemporaryRedirect)
		default:
			_, _ = w.Write(archive)
		}
	})
	for sent, auth := range map[string]Auth{
		"Basic Ym90Omh1bnRlcjI=": {Username: "bot", Password: "hunter2"},
		"Bearer hunter2":         {BearerToken: "hunter2"},
	} {
		store := NewChartStore(t.TempDir(), loopback)
		for _, name := range []string{"web", "here"} {
			if _, err := store.Fetch(t.Context(), Chart{Repository: home.URL, Name: name, Auth: auth}); err != nil {
				t.Error(err)
			}
		}
		if got, want := other.all(), "GET /index.yaml\nGET /index.yaml\nGET /here.tgz"; got != want {
			t.Errorf("the other host got\n%s\nwant\n%s", got, want)
		}
		index := "GET /index.yaml " + sent + "\n"
		if got, want := home.all(), index+"GET /private.tgz "+sent+"\n"+index+"GET /here.tgz "+sent; got != want {
			t.Errorf("the host itself got\n%s\nwant\n%s", got, want)
		}
	}
}

// A registry may name a token server, which gets the credentials once; nobody it leads to does.
func TestChartTokenServers(t *testing.T) {
	const basicHeader = "Basic Ym90Omh1bnRlcjI="
	var third *heard
	third = listen(t, httptest.NewTLSServer, func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/first" {
			http.Redirect(w, req, third.URL+"/second", http.StatusTemporaryRedirect)
			return
		}
		_, _ = w.Write([]byte(`{"token":"t0ken"}`))
	})
	answer := func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/away" {
			http.Redirect(w, req, third.URL+"/first", http.StatusTemporaryRedirect)
			return
		}
		_, _ = w.Write([]byte(`{"token":"t0ken","access_token":"t0ken"}`))
	}
	secure, plain := listen(t, httptest.NewTLSServer, answer), listen(t, httptest.NewServer, answer)
	own := Auth{Username: "bot", Password: "hunter2"}
	refresh := func(host string) Auth {
		return Auth{DockerConfig: []byte(`{"auths":{"` + host + `":{"identitytoken":"hunter2"}}}`)}
	}
	cases := map[string]struct {
		realm      string
		insecure   bool
		refresh    bool
		got, third string
		kind       error
		says       string
	}{
		"over TLS":                  {realm: secure.URL + "/token", got: "GET /token " + basicHeader},
		"without TLS":               {realm: plain.URL + "/token", kind: errServer, says: "uses http but registry was contacted over https"},
		"without TLS, insecure":     {realm: plain.URL + "/token", insecure: true, got: "GET /token " + basicHeader},
		"redirected":                {realm: secure.URL + "/away", got: "GET /away " + basicHeader, third: "GET /first\nGET /second"},
		"refresh token":             {realm: secure.URL + "/token", refresh: true, got: "POST /token client_id=oras-go&grant_type=refresh_token&refresh_token=hunter2&scope=repository%3Acharts%2Fweb%3Apull&service=registry"},
		"refresh token, redirected": {realm: secure.URL + "/away", refresh: true, got: "POST /away client_id=oras-go&grant_type=refresh_token&refresh_token=hunter2&scope=repository%3Acharts%2Fweb%3Apull&service=registry", kind: ErrInvalid, says: "the server redirects what it was sent to"},
		"of another scheme":         {realm: "file:///etc/passwd", kind: errServer, says: "unsupported scheme"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			start := httptest.NewTLSServer
			if tc.insecure {
				start = httptest.NewServer
			}
			registry := serveOCI(t, start)
			registry.Config.ErrorLog = log.New(io.Discard, "", 0)
			registry.push(t, "1.0.0", chartMediaType)
			registry.allow, registry.challenge = bearer("t0ken"), `Bearer realm="`+tc.realm+`",service="registry"`
			src := Chart{Repository: registry.repository(), Name: "web", Version: "1.0.0", Insecure: tc.insecure, Auth: own}
			if tc.refresh {
				src.Auth = refresh(registry.Listener.Addr().String())
			}
			src.Auth.CA = certificate(secure.Server)
			_, err := NewChartStore(t.TempDir(), loopback).Fetch(t.Context(), src)
			if tc.kind != nil {
				wantError(t, err, tc.kind, tc.says)
				wantNoSecret(t, err, "hunter2")
			} else if err != nil {
				t.Error(err)
			}
			if got := secure.all() + plain.all(); got != tc.got {
				t.Errorf("the token server got %q, want %q", got, tc.got)
			}
			if got := third.all(); got != tc.third {
				t.Errorf("the third got %q, want %q", got, tc.third)
			}
		})
	}
}

func TestChartFromRegistryByPath(t *testing.T) {
	server := serveOCI(t, httptest.NewTLSServer)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.push(t, "1.0.0", chartMediaType)
	server.allow, server.challenge = basic("bot", "right"), `Basic realm="registry"`
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
			auth := Auth{CA: certificate(server.Server), DockerConfig: []byte(`{"auths":{` + strings.Join(tc.entries, ",") + `}}`)}
			_, err := NewChartStore(t.TempDir(), loopback).Fetch(t.Context(), Chart{Repository: server.repository(), Name: "web", Auth: auth})
			if tc.refused {
				wantError(t, err, ErrAuthentication, host)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestClientCertificateOfASecret(t *testing.T) {
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
			auth, err := AuthFromSecret(map[string][]byte{"tls.crt": tc.certificate, "tls.key": tc.key})
			if tc.says != "" {
				wantError(t, err, ErrInvalid, tc.says)
				wantNoSecret(t, err, "hunter2")
				return
			}
			if err != nil || !bytes.Equal(auth.Certificate, certificate) || !bytes.Equal(auth.PrivateKey, key) || !auth.anonymous() {
				t.Errorf("%v, %v", auth, err)
			}
		})
	}
}
