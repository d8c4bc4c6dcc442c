package oidc

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-cmp/cmp"
)

// server is an issuer.
type server struct {
	*testing.T
	*httptest.Server
	asked atomic.Int32

	mu   sync.Mutex
	keys []jose.JSONWebKey
	// broken is what it answers instead of its keys, "" for these. waits is closed when it may answer.
	broken string
	waits  chan struct{}
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{T: t}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.waits != nil {
			<-s.waits
		}
		if r.URL.Path == "/.well-known/openid-configuration" {
			_ = json.NewEncoder(w).Encode(map[string]any{"issuer": s.URL, "jwks_uri": s.URL + "/keys", "id_token_signing_alg_values_supported": []string{"HS256", "none"}})
			return
		}
		s.asked.Add(1)
		if s.broken != "" {
			http.Error(w, s.broken, http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: s.keys})
	}))
	t.Cleanup(s.Close)
	return s
}

// serve changes what it answers.
func (s *server) serve(broken string, keys ...jose.JSONWebKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken, s.keys = broken, nil
	for _, k := range keys {
		if !k.IsPublic() {
			k = k.Public()
		}
		s.keys = append(s.keys, k)
	}
}

// settings trust the server's certificate.
func (s *server) settings() Settings {
	s.Helper()
	file := filepath.Join(s.TempDir(), "ca.crt")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		s.Fatal(err)
	}
	return Settings{URL: s.URL, Audience: "kubeop", UsernameClaim: "name", UsernamePrefix: "corp:", GroupsClaim: "groups", GroupsPrefix: "corp-", CAFile: file}
}

// stage has an issuer with one key, and a clock.
type stage struct {
	*server
	*Issuers
	key jose.JSONWebKey
	now time.Time
}

func newKey(t *testing.T, id string) jose.JSONWebKey {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return jose.JSONWebKey{Key: private, KeyID: id, Algorithm: "ES256", Use: "sig"}
}

func newStage(t *testing.T, further ...Settings) *stage {
	t.Helper()
	s := &stage{server: newServer(t), key: newKey(t, "k1"), now: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)}
	s.serve("", s.key)
	var err error
	if s.Issuers, err = New(append(further, s.settings()), func() time.Time { return s.now }); err != nil {
		t.Fatal(err)
	}
	return s
}

type claims map[string]any

// sign returns a token that is valid but for changes.
func (s *stage) sign(key jose.JSONWebKey, changes claims) string {
	s.Helper()
	all := claims{
		"iss": s.URL, "aud": "kubeop", "sub": "1", "name": "ann", "groups": []string{"dev", "ops"}, "iat": s.now.Unix(), "nbf": s.now.Unix(), "exp": s.now.Add(time.Hour).Unix(),
	}
	for name, value := range changes {
		all[name] = value
		if value == nil {
			delete(all, name)
		}
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(key.Algorithm), Key: key}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		s.Fatal(err)
	}
	text, err := jwt.Signed(signer).Claims(map[string]any(all)).Serialize()
	if err != nil {
		s.Fatal(err)
	}
	return text
}

func (s *stage) verify(text string) (Identity, error) { return s.Verify(s.Context(), s.URL, text) }

func TestAPersonHasTheNameThatTheAPIServerGives(t *testing.T) {
	s := newStage(t)
	for name, c := range map[string]struct {
		changes claims
		want    Identity
	}{
		"groups":                           {nil, Identity{User: "corp:ann", Groups: []string{"corp-dev", "corp-ops"}}},
		"one group as a text":              {claims{"groups": "dev"}, Identity{User: "corp:ann", Groups: []string{"corp-dev"}}},
		"no groups":                        {claims{"groups": nil}, Identity{User: "corp:ann"}},
		"null":                             {claims{"groups": (*string)(nil)}, Identity{User: "corp:ann"}},
		"a group that is too long":         {claims{"groups": []string{strings.Repeat("x", 300), "dev"}}, Identity{User: "corp:ann", Groups: []string{"corp-dev"}}},
		"an address":                       {claims{"groups": nil, "email": "a@example.com", "email_verified": true}, Identity{User: "corp:ann", Email: "a@example.com"}},
		"an address that nobody verified":  {claims{"groups": nil, "email": "a@example.com"}, Identity{User: "corp:ann"}},
		"several audiences":                {claims{"groups": nil, "aud": []string{"other", "kubeop"}}, Identity{User: "corp:ann"}},
		"a clock that is a little behind":  {claims{"groups": nil, "iat": s.now.Unix() + 29, "nbf": s.now.Unix() + 29}, Identity{User: "corp:ann"}},
		"a clock that is a little further": {claims{"groups": nil, "exp": s.now.Unix() - 29}, Identity{User: "corp:ann"}},
		"no time from which it is valid":   {claims{"groups": nil, "nbf": nil}, Identity{User: "corp:ann"}},
	} {
		got, err := s.verify(s.sign(s.key, c.changes))
		got.Issued, got.Expires = time.Time{}, time.Time{}
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestATokenThatIsNotForTheManagerIsNotTaken(t *testing.T) {
	other := newStage(t)
	s := newStage(t, other.settings())
	if _, err := s.verify(s.sign(s.key, nil)); err != nil {
		t.Fatalf("without a change: %v", err)
	}
	public, err := x509.MarshalPKIXPublicKey(s.key.Public().Key)
	if err != nil {
		t.Fatal(err)
	}
	symmetric := jose.JSONWebKey{Key: public, KeyID: "k1", Algorithm: "HS256"}
	asPEM := jose.JSONWebKey{Key: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), KeyID: "k1", Algorithm: "HS256"}
	good := s.sign(s.key, nil)
	parts := strings.Split(good, ".")
	header := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for name, text := range map[string]string{
		"forged":                     s.sign(newKey(t, "k1"), nil),
		"an unknown key":             s.sign(newKey(t, "k2"), nil),
		"the key of another issuer":  s.sign(other.key, nil),
		"no algorithm":               header(`{"alg":"none","kid":"k1"}`) + "." + parts[1] + ".",
		"None":                       header(`{"alg":"None","kid":"k1"}`) + "." + parts[1] + "." + parts[2],
		"HS256 with the public key":  s.sign(symmetric, nil),
		"HS256 with the PEM":         s.sign(asPEM, nil),
		"a key in the header":        header(`{"alg":"ES256","jwk":{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}}`) + "." + parts[1] + "." + parts[2],
		"a critical extension":       header(`{"alg":"ES256","kid":"k1","crit":["x"],"x":1}`) + "." + parts[1] + "." + parts[2],
		"other claims":               parts[0] + "." + header(`{"iss":"`+s.URL+`","aud":"kubeop","name":"root","exp":9999999999}`) + "." + parts[2],
		"no signature":               parts[0] + "." + parts[1] + ".",
		"the form of JSON":           `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`,
		"another issuer":             s.sign(s.key, claims{"iss": other.URL}),
		"another audience":           s.sign(s.key, claims{"aud": "other"}),
		"no audience":                s.sign(s.key, claims{"aud": nil}),
		"an audience in another":     s.sign(s.key, claims{"aud": "kubeop-other"}),
		"no expiry":                  s.sign(s.key, claims{"exp": nil}),
		"an expiry that is a text":   s.sign(s.key, claims{"exp": "tomorrow"}),
		"issued in future":           s.sign(s.key, claims{"iat": s.now.Unix() + 60}),
		"not valid yet":              s.sign(s.key, claims{"nbf": s.now.Unix() + 60}),
		"a second expiry":            s.sign(s.key, claims{"exp": s.now.Unix() - 60, "EXP": s.now.Unix() + 60}),
		"a second audience":          s.sign(s.key, claims{"aud": "other", "Aud": "kubeop"}),
		"no name":                    s.sign(s.key, claims{"name": nil}),
		"an empty name":              s.sign(s.key, claims{"name": ""}),
		"a name that is a number":    s.sign(s.key, claims{"name": 1}),
		"a name of many lines":       s.sign(s.key, claims{"name": "ann\nroot"}),
		"a name that turns the text": s.sign(s.key, claims{"name": "ann\u202e"}),
		"a long name":                s.sign(s.key, claims{"name": strings.Repeat("x", 250)}),
		"the name in another case":   s.sign(s.key, claims{"name": nil, "Name": "root"}),
		"groups that are a number":   s.sign(s.key, claims{"groups": 1}),
		"groups that are numbers":    s.sign(s.key, claims{"groups": []int{1}}),
		"nothing":                    "",
	} {
		if got, err := s.verify(text); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := s.verify(s.sign(s.key, claims{"exp": s.now.Unix() - 31})); !errors.Is(err, ErrExpired) {
		t.Errorf("expired: %v", err)
	}
	if _, err := s.Verify(t.Context(), other.URL, s.sign(s.key, claims{"iss": other.URL})); !errors.Is(err, ErrInvalid) {
		t.Errorf("as the other issuer, with the key of this one: %v", err)
	}
}

// TestAnIssuerWithoutAClaimForGroupsGivesNone, also not by a claim with an empty name: another issuer's prefix would not be before them.
func TestAnIssuerWithoutAClaimForGroupsGivesNone(t *testing.T) {
	s := newStage(t)
	settings := s.settings()
	settings.GroupsClaim, settings.GroupsPrefix = "", ""
	var err error
	if s.Issuers, err = New([]Settings{settings}, func() time.Time { return s.now }); err != nil {
		t.Fatal(err)
	}
	if who, err := s.verify(s.sign(s.key, claims{"": []string{"corp-platform"}})); err != nil || who.User != "corp:ann" || len(who.Groups) > 0 {
		t.Errorf("%v: %+v", err, who)
	}
}

// TestReservedNamesOfKubernetesAreRefused, if an issuer without a prefix says them.
func TestReservedNamesOfKubernetesAreRefused(t *testing.T) {
	s := newStage(t)
	from := s.all[s.URL]
	from.UsernamePrefix, from.GroupsPrefix = "", ""
	if _, err := s.verify(s.sign(s.key, claims{"name": "system:admin"})); !errors.Is(err, ErrInvalid) {
		t.Errorf("a user: %v", err)
	}
	if got, err := s.verify(s.sign(s.key, claims{"groups": []string{"system:masters", "dev"}})); err != nil || len(got.Groups) != 1 {
		t.Errorf("a group: %+v, %v", got, err)
	}
	from.UsernameClaim = "email"
	for verified, want := range map[any]error{true: nil, false: ErrInvalid, "true": ErrInvalid, nil: nil} {
		if _, err := s.verify(s.sign(s.key, claims{"email": "a@example.com", "email_verified": verified})); !errors.Is(err, want) {
			t.Errorf("an address, verified %v: %v", verified, err)
		}
	}
}

func TestKeysAreReplacedWithoutAnError(t *testing.T) {
	s := newStage(t)
	old := s.sign(s.key, nil)
	if _, err := s.verify(old); err != nil {
		t.Fatal(err)
	}
	s.now = s.now.Add(pause)
	next := newKey(t, "k2")
	s.serve("", s.key, next)
	if _, err := s.verify(s.sign(next, nil)); err != nil {
		t.Errorf("the next key: %v", err)
	}
	if _, err := s.verify(old); err != nil {
		t.Errorf("the old key while it is published: %v", err)
	}
	s.now = s.now.Add(pause)
	s.serve("", next)
	if _, err := s.verify(s.sign(newKey(t, "k3"), nil)); !errors.Is(err, ErrInvalid) {
		t.Errorf("an unknown key: %v", err)
	}
	if _, err := s.verify(s.sign(s.key, nil)); !errors.Is(err, ErrInvalid) {
		t.Errorf("the old key after it was taken back: %v", err)
	}
}

// TestUnknownKeysDoNotFloodTheIssuer: anybody can name a key that does not exist.
func TestUnknownKeysDoNotFloodTheIssuer(t *testing.T) {
	s := newStage(t)
	forged := s.sign(newKey(t, "forged"), nil)
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			if _, err := s.verify(forged); err == nil {
				t.Error("it is taken")
			}
		})
	}
	all.Wait()
	if n := s.asked.Load(); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
	if _, err := s.verify(s.sign(s.key, nil)); err != nil {
		t.Errorf("a valid one meanwhile: %v", err)
	}
	s.now = s.now.Add(pause)
	for range 10 {
		if _, err := s.verify(forged); !errors.Is(err, ErrInvalid) {
			t.Error(err)
		}
	}
	if n := s.asked.Load(); n != 2 {
		t.Errorf("after the pause it was asked %d times", n)
	}
	s.now = s.now.Add(-time.Hour) // A clock that goes back does not stop it.
	if _, err := s.verify(forged); !errors.Is(err, ErrInvalid) || s.asked.Load() != 3 {
		t.Errorf("%v, asked %d times", err, s.asked.Load())
	}
}

func TestAnIssuerThatDoesNotAnswerIsNamedAndItsKeysAreUsedForADay(t *testing.T) {
	s := newStage(t)
	s.serve("hunter2")
	text := s.sign(s.key, nil)
	if _, err := s.verify(text); !errors.Is(err, ErrUnavailable) || s.Check(s.URL) == nil {
		t.Errorf("before it ever answered: %v, %v", err, s.Check(s.URL))
	}
	s.now = s.now.Add(pause)
	s.serve("", s.key)
	if _, err := s.verify(text); err != nil || s.Check(s.URL) != nil {
		t.Errorf("it answers: %v, %v", err, s.Check(s.URL))
	}
	s.serve("gone")
	s.now = s.now.Add(pause)
	if _, err := s.verify(s.sign(newKey(t, "k2"), nil)); !errors.Is(err, ErrUnavailable) || s.Check(s.URL) == nil {
		t.Errorf("a key that it may have: %v", err)
	}
	if _, err := s.verify(text); err != nil {
		t.Errorf("a key that it had: %v", err)
	}
	s.now = s.now.Add(maxAge)
	if _, err := s.verify(s.sign(s.key, nil)); !errors.Is(err, ErrUnavailable) {
		t.Errorf("after a day: %v", err)
	}
}

// TestASlowIssuerHoldsNoRequestForLong, and the one answer is for all.
func TestASlowIssuerHoldsNoRequestForLong(t *testing.T) {
	s := newStage(t)
	s.waits = make(chan struct{})
	defer close(s.waits)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Verify(ctx, s.URL, s.sign(s.key, nil)); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
}

// TestARequestGoesOnAsSoonAsTheKeysAreThere: it waits for the issuer, not for the end of the longest wait.
func TestARequestGoesOnAsSoonAsTheKeysAreThere(t *testing.T) {
	s := newStage(t)
	began := time.Now()
	if _, err := s.verify(s.sign(s.key, nil)); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took >= waitTimeout {
		t.Errorf("it took %s", took)
	}
}

func TestOnlyKeysThatVerifyAreUsed(t *testing.T) {
	s := newStage(t)
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	weak := jose.JSONWebKey{Key: small, KeyID: "weak", Algorithm: "RS256"}
	encrypts := newKey(t, "enc")
	encrypts.Use = "enc"
	s.serve("", weak, encrypts, s.key)
	if _, err := s.verify(s.sign(s.key, nil)); err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]jose.JSONWebKey{"a weak key": weak, "a key that encrypts": encrypts} {
		if _, err := s.verify(s.sign(key, nil)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(s.all[s.URL].keys.set) != 1 {
		t.Errorf("%d keys are used", len(s.all[s.URL].keys.set))
	}
	s.now = s.now.Add(pause)
	s.serve("", weak)
	if _, err := s.verify(s.sign(weak, nil)); !errors.Is(err, ErrUnavailable) || !strings.Contains(s.Check(s.URL).Error(), "0 keys") {
		t.Errorf("no key that verifies: %v, %v", err, s.Check(s.URL))
	}
}

func TestAFileWithoutCertificatesIsNamed(t *testing.T) {
	for _, file := range []string{"/nowhere", "/dev/null"} {
		if _, err := New([]Settings{{URL: "https://a", CAFile: file}}, time.Now); err == nil || !strings.Contains(err.Error(), "https://a") || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", file, err)
		}
	}
	s := newStage(t)
	untrusted := s.settings()
	untrusted.CAFile = ""
	issuers, err := New([]Settings{untrusted}, func() time.Time { return s.now })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := issuers.Verify(t.Context(), s.URL, s.sign(s.key, nil)); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a certificate that nobody trusts: %v", err)
	}
}
