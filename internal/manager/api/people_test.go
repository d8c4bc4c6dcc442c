package api

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/oidc"
	"github.com/kubeop/kubeop/internal/manager/owners"
	"github.com/kubeop/kubeop/internal/manager/problem"
)

// issuer is an issuer of ID tokens that all tests share.
type issuer struct {
	*httptest.Server
	key jose.JSONWebKey
}

var sharedIssuer = sync.OnceValue(func() *issuer {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	i := &issuer{key: jose.JSONWebKey{Key: private, KeyID: "k", Algorithm: "ES256"}}
	i.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/keys" {
			_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{i.key.Public()}})
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/keys"})
	}))
	return i
})

// takesPeople has a manager take the tokens of the issuer.
func (m *manager) takesPeople() {
	m.Helper()
	file := filepath.Join(m.TempDir(), "ca.crt")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: sharedIssuer().Certificate().Raw}), 0o600); err != nil {
		m.Fatal(err)
	}
	var err error
	m.issuers, err = oidc.New([]oidc.Settings{
		{URL: sharedIssuer().URL, Audience: "kubeop", UsernameClaim: "sub", UsernamePrefix: "corp:", GroupsClaim: "groups", CAFile: file},
		{URL: "https://127.0.0.1:1", Audience: "kubeop", UsernameClaim: "sub", UsernamePrefix: "down:"},
	}, func() time.Time { return m.now })
	if err != nil {
		m.Fatal(err)
	}
	m.owners = owners.New()
	m.owners.Synced, m.owners.Behind = func(context.Context) error { return nil }, func() time.Duration { return 0 }
}

// person returns the ID token of a person, valid for an hour.
func (m *manager) person(from, name string, groups ...string) string {
	m.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: sharedIssuer().key}, nil)
	if err != nil {
		m.Fatal(err)
	}
	text, err := jwt.Signed(signer).Claims(map[string]any{
		"iss": from, "aud": "kubeop", "sub": name, "groups": groups, "iat": m.now.Unix(), "exp": m.now.Add(time.Hour).Unix(), "email": name + "@example.com", "email_verified": true,
	}).Serialize()
	if err != nil {
		m.Fatal(err)
	}
	return text
}

// personWith returns the ID token of a person with a scope, by the owners of tenants or as an administrator.
func (m *manager) personWith(text string) string {
	m.Helper()
	scope, err := access.ParseScope(text)
	if err != nil || scope.Project != "" {
		m.Fatalf("no person has the scope %s: %v", text, err)
	}
	if scope.Role == access.Admin {
		m.owners.Administer(nil, []string{"sre"})
		return m.person(sharedIssuer().URL, "root", "sre")
	}
	m.owners.Put(scope.Tenant, []v1alpha1.Owner{{Kind: "User", Name: "corp:ann", Role: strings.TrimPrefix(string(scope.Role), "tenant:")}})
	return m.person(sharedIssuer().URL, "ann")
}

func TestAPersonIsKnownByTheIssuerAndTheOwnersOfTenants(t *testing.T) {
	m, _, _ := newCluster(t)
	m.owners.Put("acme", []v1alpha1.Owner{{Kind: "Group", Name: "dev", Role: "admin"}})
	m.owners.Put("beta", []v1alpha1.Owner{{Kind: "User", Name: "corp:ann", Role: "view"}})
	ann := m.person(sharedIssuer().URL, "ann", "dev")
	caller := read[struct {
		ID, Name string
		Scopes   []string
	}](m, m.as(ann, "GET", "/v1/caller", ""), http.StatusOK)
	if caller.ID != "user:corp:ann" || caller.Name != "corp:ann" || fmt.Sprint(caller.Scopes) != "[tenant:acme:admin tenant:beta:view]" {
		t.Errorf("the caller is %+v", caller)
	}
	if got := names(m, ann, "/v1/tenants"); got != "acme beta" {
		t.Errorf("tenants: %s", got)
	}
	made := read[struct{ ID, CreatedBy string }](m, m.as(ann, "POST", "/v1/tokens", `{"name":"x","scopes":["tenant:acme:view"]}`), http.StatusCreated)
	if made.CreatedBy != "user:corp:ann" {
		t.Errorf("made by %s", made.CreatedBy)
	}
	m.holder("foreign", "tenant:beta:view")
	for path, want := range map[string]int{
		"POST /v1/tokens?beta": http.StatusForbidden, "GET /v1/tokens": http.StatusUnprocessableEntity, "GET /v1/tokens?tenant=acme": http.StatusOK, "GET /v1/tokens?tenant=beta": http.StatusForbidden,
		"GET /v1/tokens?tenant=none": http.StatusForbidden, "GET /v1/audit": http.StatusUnprocessableEntity, "GET /v1/audit?tenant=acme": http.StatusOK, "GET /v1/audit?tenant=beta": http.StatusForbidden,
		"GET /v1/audit/export": http.StatusUnprocessableEntity, "GET /v1/audit/export?tenant=acme": http.StatusOK, "GET /v1/audit/export?tenant=beta": http.StatusForbidden,
		"DELETE /v1/tokens/foreign": http.StatusNotFound, "DELETE /v1/tokens/none": http.StatusNotFound,
	} {
		method, path, _ := strings.Cut(path, " ")
		body := ""
		if strings.HasSuffix(path, "?beta") {
			path, body = "/v1/tokens", `{"name":"x","scopes":["tenant:beta:view"]}`
		}
		answer := m.as(ann, method, path, body)
		if answer.Code != want || strings.Contains(answer.Body.String(), "foreign") {
			t.Errorf("%s %s: %d %s", method, path, answer.Code, answer.Body)
		}
	}
	if answer := m.as(ann, "DELETE", "/v1/tokens/"+made.ID, ""); answer.Code != http.StatusNoContent {
		t.Errorf("revoking: %d %s", answer.Code, answer.Body)
	}
	// The rights end with the owners, and the token with its time.
	m.owners.Forget("acme")
	m.owners.Forget("beta")
	for path, want := range map[string]int{"/v1/tokens": http.StatusForbidden, "/v1/projects/acme": http.StatusNotFound, "/v1/tenants/beta": http.StatusNotFound, "/v1/caller": http.StatusOK} {
		if answer := m.as(ann, "GET", path, ""); answer.Code != want {
			t.Errorf("without rights, %s: %d %s", path, answer.Code, answer.Body)
		}
	}
	m.now = m.now.Add(time.Hour + time.Minute)
	if p := problemOf(t, m.as(ann, "GET", "/v1/caller", "")); p.Code != problem.Unauthenticated || p.Detail != "The ID token expired." {
		t.Errorf("%+v", p)
	}
}

// TestTheAnswerDoesNotSayWhatIsWrongWithAToken, except that it expired, which only its holder learns.
func TestTheAnswerDoesNotSayWhatIsWrongWithAToken(t *testing.T) {
	m, _, _ := newCluster(t)
	m.signs()
	good := m.person(sharedIssuer().URL, "ann")
	cut := strings.LastIndex(good, ".")
	mine := read[madeJWT](m, m.as(m.holder("root", "admin"), "POST", "/v1/projects/acme/shop/jwt", `{"name":"x","role":"view"}`), http.StatusCreated).JWT
	details := map[string]bool{}
	for _, text := range []string{
		good[:cut] + ".AAAA", mine[:strings.LastIndex(mine, ".")] + ".AAAA", m.person("https://evil.example.com", "ann"), m.person(m.signing.Issuer, "ann"),
		mine[:strings.Index(mine, ".")] + good[strings.Index(good, "."):],
	} {
		p := problemOf(t, m.as(text, "GET", "/v1/caller", ""))
		if p.Code != problem.Unauthenticated || len(p.Errors) != 0 {
			t.Errorf("%+v", p)
		}
		details[p.Detail] = true
	}
	if len(details) != 1 {
		t.Errorf("the details are %v", details)
	}
	if p := problemOf(t, m.as(strings.Repeat("x", 13<<10)+good, "GET", "/v1/caller", "")); p.Code != problem.Unauthenticated {
		t.Errorf("a huge one: %+v", p)
	}
}

// TestPeopleDoNotDependOnWhatTheyDoNotNeed: an issuer that is down is named, and others are as ever; so is a store, and a cluster that is not followed.
func TestPeopleDoNotDependOnWhatTheyDoNotNeed(t *testing.T) {
	m, _, _ := newCluster(t)
	root := m.holder("root", "admin")
	if p := problemOf(t, m.as(m.person("https://127.0.0.1:1", "ann"), "GET", "/v1/caller", "")); p.Code != problem.Unavailable || strings.Contains(p.Detail, "127.0.0.1") {
		t.Errorf("an issuer that is down: %+v", p)
	}
	for _, caller := range []string{root, m.person(sharedIssuer().URL, "ann")} {
		if answer := m.as(caller, "GET", "/v1/caller", ""); answer.Code != http.StatusOK {
			t.Errorf("others: %d %s", answer.Code, answer.Body)
		}
	}
	m.owners.Synced = func(context.Context) error { return errors.New("not read") }
	if p := problemOf(t, m.as(m.person(sharedIssuer().URL, "ann"), "GET", "/v1/caller", "")); p.Code != problem.Unavailable {
		t.Errorf("owners that are not known: %+v", p)
	}
	if answer := m.as(m.personWith("admin"), "GET", "/v1/caller", ""); answer.Code != http.StatusOK {
		t.Errorf("an administrator: %d %s", answer.Code, answer.Body)
	}
}
