// Package operated serves the operations of one package of the management API to its tests: to callers with real tokens, with a real store, and at a
// time that the test sets. Package managed serves the whole API.
package operated

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubeop/kubeop/internal/kms"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/request"
	"github.com/kubeop/kubeop/internal/manager/signing"
	"github.com/kubeop/kubeop/internal/manager/token"
	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/sqlite"
)

// Served are operations that are served.
type Served struct {
	http.Handler
	Store store.Store
	// Time is what the clock shows. It stands still until the test sets it.
	Time time.Time
	// Signing signs JWTs once it has a key, see Key.
	Signing *signing.Keys

	t testing.TB
}

// Start serves the operations that register adds, until the test ends.
func Start(t testing.TB, register func(*Served, huma.API)) *Served {
	t.Helper()
	s := &Served{t: t, Store: Store(t), Time: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)}
	s.Signing = &signing.Keys{Issuer: "https://kubeop.example.com", File: filepath.Join(t.TempDir(), "keys"), Store: s.Store, Now: s.Now}
	mux, settings := http.NewServeMux(), huma.DefaultConfig("test", "0")
	settings.RejectUnknownQueryParameters, settings.CreateHooks = true, nil
	settings.Formats = map[string]huma.Format{"application/json": problem.JSON, "json": problem.JSON}
	api := humago.New(mux, settings)
	allowed := func(string) *problem.Problem { return nil }
	api.UseMiddleware((&auth.Authenticator{Tokens: s.Store, Projects: s.Signing, Limit: allowed, Now: s.Now}).Middleware(api))
	register(s, api)
	route := func(*http.Request) string { return "" }
	s.Handler = request.NewFollower(logr.Discard(), prometheus.NewRegistry(), nil, problem.New(problem.Internal, "").Write).Follow(route, mux)
	return s
}

// Store opens a store that is closed when the test ends.
func Store(t testing.TB) store.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), filepath.Join(t.TempDir(), "manager.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Key gives keys for JWTs one that signs.
func Key(t testing.TB, keys *signing.Keys) {
	t.Helper()
	line, err := kms.NewKey("k")
	if err == nil {
		err = os.WriteFile(keys.File, []byte(line), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	keys.Refresh(context.Background())
	if err := keys.Check(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// Now returns what the clock shows.
func (s *Served) Now() time.Time { return s.Time }

// Token stores a token with an id and scopes, valid for an hour, and returns it.
func (s *Served) Token(id string, scopes ...string) string {
	s.t.Helper()
	return Token(s.t, s.Store, s.Time, id, scopes...)
}

// Token stores a token with an id and scopes that are of one tenant, valid for an hour, and returns it. Its event is of the action "test".
func Token(t testing.TB, in store.Store, now time.Time, id string, scopes ...string) string {
	t.Helper()
	secret, tenant := token.New(), ""
	if scopes[0] != "admin" {
		tenant = strings.FieldsFunc(scopes[0], func(r rune) bool { return r == ':' || r == '/' })[1]
	}
	held := store.Token{ID: id, Name: id, Hash: token.Hash(secret), Scopes: scopes, Tenant: tenant, Created: now, CreatedBy: "test", Expires: now.Add(time.Hour)}
	if err := in.CreateToken(context.Background(), held, store.Event{At: now, Action: "test", Tenant: tenant}); err != nil {
		t.Fatal(err)
	}
	return secret
}

// Do sends a request with a token, without one if it is "", and with headers such as "If-Match: *". It returns the answer.
func (s *Served) Do(secret, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	s.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, r)
	return answer
}

// Read reads an answer that has to have a status.
func Read[T any](t testing.TB, answer *httptest.ResponseRecorder, status int) (body T) {
	t.Helper()
	if answer.Code != status {
		t.Fatalf("%d %s, want %d", answer.Code, answer.Body, status)
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &body); err != nil {
		t.Fatal(err)
	}
	return body
}

// Refused reports an answer that is not a problem with a code and its status, and returns the problem.
func Refused(t testing.TB, answer *httptest.ResponseRecorder, want problem.Code) problem.Problem {
	t.Helper()
	var p problem.Problem
	if err := json.Unmarshal(answer.Body.Bytes(), &p); err != nil {
		t.Fatalf("%v: %d %s", err, answer.Code, answer.Body)
	}
	if p.Code != want || answer.Code != problem.Codes()[want] || p.Status != answer.Code || answer.Header().Get("Content-Type") != problem.ContentType {
		t.Errorf("%d %s: %+v, want the code %s", answer.Code, answer.Header().Get("Content-Type"), p, want)
	}
	return p
}
