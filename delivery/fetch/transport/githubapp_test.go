package transport

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// github is a server that takes only the token it issued last to App 7's installation 42.
type github struct {
	*httptest.Server
	key   *rsa.PrivateKey
	clock *clocktesting.FakePassiveClock

	mu     sync.Mutex
	issued int
	// answer, if set, is the answer to requests for tokens.
	answer func(http.ResponseWriter)
	seen   []string
}

func newGitHub(t *testing.T) *github {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	g := &github{key: key, clock: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))}
	g.Server = httptest.NewServer(g)
	t.Cleanup(g.Close)
	return g
}

// privateKey is the App's key in PEM.
func (g *github) privateKey() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(g.key)})
}

// proven checks a token of the App, without a library for tokens, so that the one that signs them is not its own judge.
// https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-json-web-token-jwt-for-a-github-app
func (g *github) proven(token string) error {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return fmt.Errorf("the token has %d parts", len(parts))
	}
	now := g.clock.Now().Unix()
	for i, want := range []map[string]any{
		{"alg": "RS256", "typ": "JWT"},
		{"iss": "7", "iat": float64(now - 60), "exp": float64(now + 480)},
	} {
		text, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil {
			return err
		}
		var got map[string]any
		if err := json.Unmarshal(text, &got); err != nil {
			return err
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("part %d of the token (-want +got):\n%s", i, diff)
		}
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	return rsa.VerifyPKCS1v15(&g.key.PublicKey, crypto.SHA256, sum[:], signature)
}

func (g *github) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.URL.Path == "/api/v3/app/installations/42/access_tokens" && r.Method == http.MethodPost {
		if err := g.proven(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")); err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.Header.Get("Accept") != "application/vnd.github+json" {
			w.WriteHeader(http.StatusNotAcceptable)
			return
		}
		if g.answer != nil {
			g.answer(w)
			return
		}
		g.issued++
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"token": "token-%d", "expires_at": %q}`, g.issued, g.clock.Now().Add(time.Hour).Format(time.RFC3339))
		return
	}
	user, password, basic := r.BasicAuth()
	g.seen = append(g.seen, fmt.Sprint(basic, user))
	valid := fmt.Sprintf("token-%d", g.issued)
	if password != valid && r.Header.Get("Authorization") != "Bearer "+valid {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	_, _ = io.Copy(w, r.Body)
}

// auth are the credentials of a Secret of the App.
func (g *github) auth(t *testing.T, change map[string]string) (Auth, error) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(g.key)
	if err != nil {
		t.Fatal(err)
	}
	data := map[string][]byte{
		"githubAppID": []byte("7"), "githubAppInstallationID": []byte("42"), "githubAppPrivateKey": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
	}
	for key, value := range change {
		data[key] = []byte(value)
	}
	return AuthFromSecret("acme", "github", data)
}

func (g *github) network() *Network {
	return &Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Clock: g.clock}
}

func (g *github) client(t *testing.T, network *Network, auth Auth, of func(*Network, Auth, *url.URL) (*http.Client, error)) *http.Client {
	t.Helper()
	origin, err := url.Parse(g.URL)
	if err != nil {
		t.Fatal(err)
	}
	client, err := of(network, auth, origin)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// post sends a body, and expects it back.
func (g *github) post(t *testing.T, client *http.Client) {
	t.Helper()
	res, err := client.Post(g.URL+"/acme/web", "text/plain", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK || string(text) != "body" {
		t.Errorf("%s: %q, %v", res.Status, text, err)
	}
}

// TestAKeyOfAGitHubAppSignsWhatGitHubTakes, with a key as GitHub issues it and with a converted one, also between two seconds.
func TestAKeyOfAGitHubAppSignsWhatGitHubTakes(t *testing.T) {
	g := newGitHub(t)
	g.clock.SetTime(g.clock.Now().Add(900 * time.Millisecond))
	pkcs8, err := x509.MarshalPKCS8PrivateKey(g.key)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string][]byte{
		"PKCS #1":                       g.privateKey(),
		"PKCS #8":                       pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}),
		"PKCS #8 labelled as the other": pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: pkcs8}),
	} {
		app := &GitHubApp{ID: "7", Installation: "42", PrivateKey: key}
		if err := app.check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		token, err := (&installation{app: app, clock: g.clock}).proof()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := g.proven(token); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAGitHubAppGetsOneTokenForAllItsSources, before the last one ends, and at once when it is refused.
func TestAGitHubAppGetsOneTokenForAllItsSources(t *testing.T) {
	g := newGitHub(t)
	auth, err := g.auth(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	if auth.Anonymous() || strings.Contains(fmt.Sprintf("%v %#v", auth, auth), "PRIVATE") || !strings.Contains(auth.String(), "githubApp") {
		t.Errorf("the credentials print as %v", auth)
	}
	network := g.network()
	git, api := g.client(t, network, auth, NewGitClient), g.client(t, network, auth, NewClient)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() { g.post(t, git) })
	}
	all.Wait()
	g.post(t, api)
	if g.issued != 1 || g.seen[0] != "truex-access-token" || g.seen[10] != "false" {
		t.Errorf("%d tokens were issued; requests: %v", g.issued, g.seen)
	}
	g.clock.SetTime(g.clock.Now().Add(49 * time.Minute))
	g.post(t, git)
	if g.issued != 1 {
		t.Error("a token was requested while the last one was valid")
	}
	g.clock.SetTime(g.clock.Now().Add(2 * time.Minute))
	g.post(t, git)
	if g.issued != 2 {
		t.Errorf("%d tokens after 51 minutes, want 2", g.issued)
	}
	g.issued++ // The token of before is revoked.
	g.post(t, git)
	if g.issued != 4 {
		t.Errorf("%d tokens after one was revoked, want 4", g.issued)
	}
	other, err := g.auth(t, map[string]string{"githubAppBaseURL": g.URL + "/api/v3/"})
	if err != nil {
		t.Fatal(err)
	}
	g.post(t, g.client(t, network, other, NewGitClient))
	if g.issued != 5 || other.Digest("") == auth.Digest("") {
		t.Errorf("%d tokens: other credentials share one", g.issued)
	}
}

// TestATokenThatIsRefusedTwiceIsRefused: the server would be asked forever, or with half a body.
func TestATokenThatIsRefusedTwiceIsRefused(t *testing.T) {
	g := newGitHub(t)
	auth, err := g.auth(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	g.answer = func(w http.ResponseWriter) {
		g.issued++
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"token": "refused", "expires_at": %q}`, g.clock.Now().Add(time.Hour).Format(time.RFC3339))
	}
	again := func() io.ReadCloser { return io.NopCloser(strings.NewReader("body")) }
	for name, c := range map[string]struct {
		body    io.ReadCloser
		getBody func() (io.ReadCloser, error)
		asked   int
	}{
		"no body":                {nil, nil, 2},
		"an empty body":          {http.NoBody, nil, 2},
		"a body to read again":   {again(), func() (io.ReadCloser, error) { return again(), nil }, 2},
		"a body that reads once": {again(), nil, 1},
	} {
		g.seen, g.issued = nil, 0
		client := g.client(t, g.network(), auth, NewGitClient)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.URL+"/acme/web", c.body)
		if err != nil {
			t.Fatal(err)
		}
		req.Body, req.GetBody = c.body, c.getBody
		res, err := client.Do(req)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusUnauthorized || len(g.seen) != c.asked || g.issued != c.asked {
			t.Errorf("%s: %s after %d requests with %d tokens, want %d", name, res.Status, len(g.seen), g.issued, c.asked)
		}
	}
	gone := errors.New("the body is gone")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Body, req.GetBody = again(), func() (io.ReadCloser, error) { return nil, gone }
	if res, err := g.client(t, g.network(), auth, NewGitClient).Do(req); !errors.Is(err, gone) {
		t.Errorf("a body that cannot be read again: %v, %v", res, err)
	}
}

func TestAGitHubAppThatGetsNoToken(t *testing.T) {
	g := newGitHub(t)
	auth, err := g.auth(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		answer func(http.ResponseWriter)
		kind   error
		says   string
	}{
		"a revoked key":   {func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) }, failure.ErrAuthentication, "rejected the key of GitHub App 7 (401)"},
		"an installation": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }, failure.ErrAuthentication, "GitHub App 7 has no usable installation 42"},
		"a failure":       {func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) }, failure.ErrServer, "answered 502"},
		"no token":        {func(w http.ResponseWriter) { w.WriteHeader(http.StatusCreated) }, failure.ErrServer, "with none"},
		"a broken token": {func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"token": "a\nb", "expires_at": "2027-01-01T00:00:00Z"}`)
		}, failure.ErrServer, "with none"},
		"an endless answer": {func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"token": "`+strings.Repeat("a", 1<<20)+`"}`)
		}, failure.ErrServer, "with none"},
	} {
		g.answer = tc.answer
		client := g.client(t, g.network(), auth, NewGitClient)
		_, err := client.Get(g.URL)
		err = auth.NameSecret(RequestError(err, "git.example.com"))
		if !errors.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", name, err)
		}
		if errors.Is(tc.kind, failure.ErrAuthentication) && (!strings.Contains(err.Error(), "acme/github") || !strings.Contains(err.Error(), "githubAppPrivateKey")) {
			t.Errorf("%s: %v does not say how to write the Secret", name, err)
		}
	}
	if len(g.seen) > 0 {
		t.Errorf("requests without a token: %v", g.seen)
	}
	g.answer = nil
	g.key, err = rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.client(t, g.network(), auth, NewGitClient).Get(g.URL); err == nil || !strings.Contains(err.Error(), "rejected the key") {
		t.Errorf("another key: %v", err)
	}
}

func TestUnusableGitHubAppsAreExplained(t *testing.T) {
	g := newGitHub(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	inPEM := func(label string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: label, Bytes: der}))
	}
	for name, tc := range map[string]struct {
		change map[string]string
		says   string
	}{
		"no ID":           {map[string]string{"githubAppID": ""}, "githubAppID of the Secret is not the ID"},
		"no installation": {map[string]string{"githubAppInstallationID": "../7"}, "githubAppInstallationID of the Secret is not the number"},
		"no key":          {map[string]string{"githubAppPrivateKey": "secret"}, "githubAppPrivateKey of the Secret is not a private RSA key"},
		"another key":     {map[string]string{"githubAppPrivateKey": inPEM("PRIVATE KEY", other)}, "githubAppPrivateKey of the Secret is not a private RSA key"},
		"a public key":    {map[string]string{"githubAppPrivateKey": inPEM("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(&g.key.PublicKey))}, "githubAppPrivateKey of the Secret is not a private RSA key"},
		"a base":          {map[string]string{"githubAppBaseURL": "ftp://x"}, "githubAppBaseURL of the Secret is not an http or https URL"},
		"and a token":     {map[string]string{"bearerToken": "t"}, "holds a GitHub App and username, password or bearerToken"},
		"and a password":  {map[string]string{"username": "u", "password": "p"}, "holds a GitHub App and username, password or bearerToken"},
	} {
		if _, err := g.auth(t, tc.change); !errors.Is(err, failure.ErrInvalid) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	auth, err := g.auth(t, map[string]string{"githubAppBaseURL": "http://api.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewGitClient(nil, auth, &url.URL{Scheme: "https", Host: "github.com"}); !errors.Is(err, failure.ErrInvalid) || !strings.Contains(err.Error(), "without TLS") {
		t.Errorf("a base without TLS for a source with it: %v", err)
	}
	if _, _, err := NewRegistryClient(nil, auth, &url.URL{Scheme: "https", Host: "ghcr.io"}); !errors.Is(err, failure.ErrInvalid) || !strings.Contains(err.Error(), "a registry does not take") {
		t.Errorf("a registry: %v", err)
	}
	for origin, want := range map[string]string{"https://github.com": "https://api.github.com", "https://api.github.com": "https://api.github.com", "https://git.example.com:8443": "https://git.example.com:8443/api/v3"} {
		at, err := url.Parse(origin)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := (&GitHubApp{}).api(at); err != nil || got.String() != want {
			t.Errorf("%s: %s, %v, want %s", origin, got, err, want)
		}
	}
}

// TestAnAppThatCannotBeUsedIsRefused before anything is asked.
func TestAnAppThatCannotBeUsedIsRefused(t *testing.T) {
	origin := &url.URL{Scheme: "https", Host: "github.example.com"}
	for says, app := range map[string]*GitHubApp{
		"githubAppBaseURL of the Secret is not an http or https URL": {ID: "7", Installation: "42", BaseURL: "https://%zz"},
		"githubAppBaseURL of the Secret is without TLS":              {ID: "7", Installation: "42", BaseURL: "http://github.example.com"},
	} {
		for name, network := range map[string]*Network{"a network": loopback, "none": nil} {
			if _, err := NewClient(network, Auth{App: app}, origin); !errors.Is(err, failure.ErrInvalid) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: got %v, want %s", name, err, says)
			}
		}
	}
	client, err := NewClient(nil, Auth{App: &GitHubApp{ID: "7", Installation: "42", PrivateKey: []byte("none")}}, origin)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Get(t.Context(), client, origin, nil); !errors.Is(err, failure.ErrInvalid) || !strings.Contains(err.Error(), "githubAppPrivateKey of the Secret is not a private RSA key") {
		t.Errorf("got %v", err)
	}
}
