package signing

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/kubeop/kubeop/internal/kms"
	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/sqlite"
)

const issuer = "https://kubeop.example.com"

// stage is a store with the keys of one manager.
type stage struct {
	*testing.T
	*Keys
	store store.Store
	now   time.Time
}

func newStage(t *testing.T) *stage {
	t.Helper()
	dir := t.TempDir()
	opened, err := sqlite.Open(t.Context(), filepath.Join(dir, "manager.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &stage{T: t, store: opened, now: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)}
	s.Keys = s.manager(filepath.Join(dir, "keys"))
	s.wrap("k1")
	s.Refresh(t.Context())
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// manager returns the keys of another manager with the same store.
func (s *stage) manager(file string) *Keys {
	return &Keys{Issuer: issuer, File: file, Store: s.store, Now: func() time.Time { return s.now }}
}

// wrap writes a file with one new key.
func (s *stage) wrap(id string) {
	s.Helper()
	line, err := kms.NewKey(id)
	if err == nil {
		err = os.WriteFile(s.File, []byte(line), 0o600)
	}
	if err != nil {
		s.Fatal(err)
	}
}

// sign returns a JWT that is valid for so long.
func (s *stage) sign(life time.Duration) string {
	s.Helper()
	text, err := s.Sign(s.claims(life))
	if err != nil {
		s.Fatal(err)
	}
	return text
}

// publishedBy returns the keys as a verifier reads them.
func publishedBy(s *stage) (set jose.JSONWebKeySet) {
	s.Helper()
	text, err := json.Marshal(map[string]any{"keys": s.Published()})
	if err == nil {
		err = json.Unmarshal(text, &set)
	}
	if err != nil {
		s.Fatal(err)
	}
	return set
}

func (s *stage) claims(life time.Duration) Claims {
	return Claims{Name: "CI", Scope: "project:acme/shop:deploy", Claims: jwt.Claims{ID: "1", IssuedAt: TimeOf(s.now), NotBefore: TimeOf(s.now), Expiry: TimeOf(s.now.Add(life))}}
}

// TestAKeyIsPublishedBeforeItSignsAndAfterwards follows two managers over three months, each three hours: no JWT is ever without its key,
// at the manager and at a verifier who reads the published keys once in a day.
func TestAKeyIsPublishedBeforeItSignsAndAfterwards(t *testing.T) {
	s := newStage(t)
	other := s.manager(s.File)
	other.Refresh(t.Context())
	published := publishedBy(s)
	used := map[string]bool{}
	type issued struct {
		text string
		ends time.Time
	}
	var valid []issued
	for hour := 3; hour < 24*90; hour += 3 {
		s.now = s.now.Add(3 * time.Hour)
		s.Refresh(t.Context())
		other.Refresh(t.Context())
		if hour%24 == 3 { // The last time before a key signs is 21 hours before.
			if published = publishedBy(s); len(published.Keys) > 3 {
				t.Fatalf("%d keys are published", len(published.Keys))
			}
		}
		text := s.sign(MaxLife)
		valid = append(valid, issued{text, s.now.Add(MaxLife)})
		valid = slices.DeleteFunc(valid, func(i issued) bool { return !s.now.Before(i.ends) })
		for _, i := range valid {
			if _, err := other.Verify(i.text); err != nil {
				t.Fatalf("hour %d: the other manager: %v", hour, err)
			}
		}
		parsed, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.EdDSA})
		if err != nil {
			t.Fatal(err)
		}
		id := parsed.Headers[0].KeyID
		used[id] = true
		if len(published.Key(id)) != 1 {
			t.Fatalf("hour %d: a verifier does not have the key", hour)
		}
		if err := parsed.Claims(published.Key(id)[0].Key, &Claims{}); err != nil {
			t.Fatalf("hour %d: a verifier: %v", hour, err)
		}
	}
	if len(used) != 4 && len(used) != 3 {
		t.Errorf("%d keys signed", len(used))
	}
	if stored, err := s.store.ListSigningKeys(t.Context()); err != nil || len(stored) > 3 {
		t.Errorf("%d keys are kept: %v", len(stored), err)
	}
}

func TestOnlyTheManagersOwnValidJWTsAreTaken(t *testing.T) {
	s := newStage(t)
	good := s.sign(time.Hour)
	if c, err := s.Verify(good); err != nil || c.Scope != "project:acme/shop:deploy" || c.Name != "CI" || c.Issuer != issuer {
		t.Fatalf("%+v, %v", c, err)
	}
	id := s.current().id
	_, forged, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sign := func(algorithm jose.SignatureAlgorithm, key any, id string, change func(*Claims)) string {
		t.Helper()
		c := s.claims(time.Hour)
		c.Issuer, c.Audience = issuer, jwt.Audience{issuer}
		change(&c)
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", id).WithType("JWT"))
		if err != nil {
			t.Fatal(err)
		}
		text, err := jwt.Signed(signer).Claims(c).Serialize()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	same, private := func(*Claims) {}, s.current().private
	parts := strings.Split(good, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"` + id + `"}`))
	for name, text := range map[string]string{
		"another key of this id":      sign(jose.EdDSA, forged, id, same),
		"another id":                  sign(jose.EdDSA, private, "x", same),
		"HS256 with the public key":   sign(jose.HS256, []byte(private.Public().(ed25519.PublicKey)), id, same),
		"no algorithm":                none + "." + parts[1] + ".",
		"no algorithm, and signature": none + "." + parts[1] + "." + parts[2],
		"another issuer":              sign(jose.EdDSA, private, id, func(c *Claims) { c.Issuer = "https://evil.example.com" }),
		"another audience":            sign(jose.EdDSA, private, id, func(c *Claims) { c.Audience = jwt.Audience{"https://registry.example.com"} }),
		"no audience":                 sign(jose.EdDSA, private, id, func(c *Claims) { c.Audience = nil }),
		"no expiry":                   sign(jose.EdDSA, private, id, func(c *Claims) { c.Expiry = nil }),
		"no time of issue":            sign(jose.EdDSA, private, id, func(c *Claims) { c.IssuedAt = nil }),
		"issued in future":            sign(jose.EdDSA, private, id, func(c *Claims) { c.IssuedAt = TimeOf(s.now.Add(time.Minute)) }),
		"not valid yet":               sign(jose.EdDSA, private, id, func(c *Claims) { c.NotBefore = TimeOf(s.now.Add(time.Minute)) }),
		"too long a life":             sign(jose.EdDSA, private, id, func(c *Claims) { c.Expiry = TimeOf(s.now.Add(MaxLife + time.Hour)) }),
		"another scope":               parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"scope":"admin"}`)) + "." + parts[2],
		"as JSON":                     `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`,
		"empty":                       "",
	} {
		if _, err := s.Verify(text); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text := sign(jose.EdDSA, private, id, same); text == "" {
		t.Error("what is changed above is not valid without the change")
	} else if _, err := s.Verify(text); err != nil {
		t.Errorf("what is changed above is not valid without the change: %v", err)
	}
	s.now = s.now.Add(time.Hour)
	if _, err := s.Verify(good); !errors.Is(err, ErrExpired) {
		t.Errorf("after its expiry: %v", err)
	}
	if c, err := s.Verify(s.sign(MaxLife)); err != nil || c.Expiry.Time().Sub(c.IssuedAt.Time()) != MaxLife {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestThePublishedKeysAreNoPrivateOnes(t *testing.T) {
	s := newStage(t)
	text, err := json.Marshal(s.Published())
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Published()) != 1 || !strings.Contains(string(text), `"kty":"OKP"`) || strings.Contains(string(text), `"d":`) {
		t.Errorf("published: %s", text)
	}
}

// TestADatabaseIsUselessWithoutItsKey: another manager with a copy of it signs nothing, and says what to do.
func TestADatabaseIsUselessWithoutItsKey(t *testing.T) {
	s := newStage(t)
	good := s.sign(time.Hour)
	s.wrap("k1") // Another one of this id.
	other := s.manager(s.File)
	other.Refresh(t.Context())
	if _, err := other.Sign(s.claims(time.Hour)); !errors.Is(err, ErrNoKey) {
		t.Errorf("it signs: %v", err)
	}
	if _, err := other.Verify(good); !errors.Is(err, ErrInvalid) {
		t.Errorf("it verifies: %v", err)
	}
	if err := other.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "manager revoke-jwts") {
		t.Errorf("it says %v", err)
	}
	// One that has read the keys goes on, and says so.
	s.Refresh(t.Context())
	if _, err := s.Verify(good); err != nil || s.Check(t.Context()) == nil {
		t.Errorf("one that runs: %v, %v", err, s.Check(t.Context()))
	}
	if err := s.store.DropSigningKeys(t.Context(), s.now.Add(1000*time.Hour)); err != nil {
		t.Fatal(err)
	}
	s.Refresh(t.Context())
	if _, err := s.Verify(good); !errors.Is(err, ErrInvalid) {
		t.Errorf("after the revocation of all: %v", err)
	}
	if _, err := s.Verify(s.sign(time.Hour)); err != nil {
		t.Errorf("with the new keys: %v", err)
	}
}

func TestRevokedKeysAreDroppedWhileTheKeyFileIsBroken(t *testing.T) {
	s := newStage(t)
	leaked := s.sign(time.Hour)
	if err := os.WriteFile(s.File, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Refresh(t.Context())
	if _, err := s.Verify(leaked); err != nil {
		t.Errorf("before: %v", err)
	}
	if err := s.store.DropSigningKeys(t.Context(), s.now.Add(1000*time.Hour)); err != nil {
		t.Fatal(err)
	}
	s.Refresh(t.Context())
	if _, err := s.Verify(leaked); !errors.Is(err, ErrInvalid) || s.Check(t.Context()) == nil {
		t.Errorf("after the revocation: %v, %v", err, s.Check(t.Context()))
	}
}

// unreadable is a store of keys that cannot list them once it has some.
type unreadable struct{ store.SigningKeys }

func (u unreadable) ListSigningKeys(ctx context.Context) ([]store.SigningKey, error) {
	keys, err := u.SigningKeys.ListSigningKeys(ctx)
	if len(keys) > 0 {
		return nil, errors.New("the database is away")
	}
	return keys, err
}

// TestAManagerThatCannotReadItsFirstKeyBackIsNotReady: it made the key a moment ago, and signs nothing yet.
func TestAManagerThatCannotReadItsFirstKeyBackIsNotReady(t *testing.T) {
	s := newStage(t)
	if err := s.store.DropSigningKeys(t.Context(), s.now.Add(1000*time.Hour)); err != nil {
		t.Fatal(err)
	}
	other := s.manager(s.File)
	other.Store = unreadable{s.store}
	other.Refresh(t.Context())
	if err := other.Check(t.Context()); err == nil || err.Error() != "the database is away" {
		t.Errorf("got %v", err)
	}
}

// TestClocksMayDiffer: one that goes back an hour still signs.
func TestClocksMayDiffer(t *testing.T) {
	s := newStage(t)
	s.now = s.now.Add(-time.Hour)
	if _, err := s.Verify(s.sign(time.Hour)); err != nil {
		t.Error(err)
	}
}
