package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubeop/kubeop/internal/manager/live"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/signing"
	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/testenv/operated"
)

// signs gives a manager a key that signs.
func (m *manager) signs() {
	m.Helper()
	operated.Key(m, m.signing)
}

type madeJWT struct{ ID, JWT, Scope, Audience, Expires string }

// TestATenantGetsSoManyJWTsInADay: each is an event, which stays.
func TestATenantGetsSoManyJWTsInADay(t *testing.T) {
	m, _, _ := newCluster(t)
	m.signs()
	admin, made := m.holder("root", "admin"), 0
	for ; made < 2*store.MaxTokensOfDay; made++ {
		m.now = m.now.Add(100 * time.Millisecond)
		answer := m.as(admin, "POST", "/v1/projects/acme/shop/jwt", `{"name":"x","role":"view"}`)
		if answer.Code == http.StatusTooManyRequests && answer.Header().Get("Retry-After") != "" {
			break
		}
		if answer.Code != http.StatusCreated {
			t.Fatalf("%d: %d %s", made, answer.Code, answer.Body)
		}
	}
	if made < store.MaxTokensOfDay || made > store.MaxTokensOfDay+10 {
		t.Errorf("it got %d", made)
	}
}

func TestAJWTOfAProjectIsUsedLikeAToken(t *testing.T) {
	m, _, _ := newCluster(t)
	m.signs()
	made := read[madeJWT](m, m.as(m.holder("root", "admin"), "POST", "/v1/projects/acme/shop/jwt", `{"name":"CI","role":"deploy","seconds":600}`), http.StatusCreated)
	if made.Scope != "project:acme/shop:deploy" || made.Audience != "https://kubeop.example.com" || made.Expires != "2026-11-28T12:10:00Z" {
		t.Errorf("%+v", made)
	}
	caller := read[struct {
		ID, Name, Expires string
		Scopes            []string
	}](m, m.as(made.JWT, "GET", "/v1/caller", ""), http.StatusOK)
	if caller.ID != "jwt:"+made.ID || caller.Name != "CI" || caller.Expires != made.Expires || fmt.Sprint(caller.Scopes) != "[project:acme/shop:deploy]" {
		t.Errorf("the caller is %+v", caller)
	}
	for path, want := range map[string]int{
		"/v1/apps/acme/shop": http.StatusOK, "/v1/apps/acme/blog": http.StatusNotFound, "/v1/apps/beta/shop": http.StatusNotFound, "/v1/tokens": http.StatusForbidden, "/v1/audit": http.StatusForbidden,
	} {
		if answer := m.as(made.JWT, "GET", path, ""); answer.Code != want {
			t.Errorf("%s: %d", path, answer.Code)
		}
	}
	events, err := m.store.ListEvents(t.Context(), "acme", 0, 10)
	if err != nil || len(events) != 1 || events[0].Action != "createJWT" || events[0].Actor != "root" || events[0].Object != "jwt/"+made.ID {
		t.Errorf("%v: %+v", err, events)
	}
	m.now = m.now.Add(10 * time.Minute)
	if p := problemOf(t, m.as(made.JWT, "GET", "/v1/caller", "")); p.Code != problem.Unauthenticated || p.Detail != "The JWT expired." {
		t.Errorf("after its expiry: %+v", p)
	}
}

// TestOnlyWhoAdministersATenantMakesJWTs tries each role, in its own project, in another one of its tenant, in another tenant and where nothing is.
func TestOnlyWhoAdministersATenantMakesJWTs(t *testing.T) {
	m, _, _ := newCluster(t)
	m.signs()
	const yes, no, none = http.StatusCreated, http.StatusForbidden, http.StatusNotFound
	for role, want := range map[string][4]int{
		"admin": {yes, yes, yes, none}, "tenant:acme:admin": {yes, yes, none, none}, "tenant:acme:edit": {no, no, none, none}, "tenant:acme:view": {no, no, none, none},
		"project:acme/shop:view": {no, none, none, none}, "project:acme/shop:edit": {no, none, none, none}, "project:acme/shop:deploy": {no, none, none, none}, "jwt": {no, none, none, none},
	} {
		var caller string
		if role == "jwt" {
			caller = read[madeJWT](m, m.as(m.holder("for jwt", "admin"), "POST", "/v1/projects/acme/shop/jwt", `{"name":"x","role":"edit"}`), yes).JWT
		} else {
			caller = m.holder(role, role)
		}
		for i, path := range []string{"acme/shop", "acme/blog", "beta/shop", "acme/none"} {
			if answer := m.as(caller, "POST", "/v1/projects/"+path+"/jwt", `{"name":"x","role":"view"}`); answer.Code != want[i] {
				t.Errorf("%s in %s: %d %s", role, path, answer.Code, answer.Body)
			}
		}
	}
}

func TestBadJWTsAreNotMade(t *testing.T) {
	m, cluster, _ := newCluster(t)
	admin := m.holder("root", "admin")
	if p := problemOf(t, m.as(admin, "POST", "/v1/projects/acme/shop/jwt", `{"name":"x","role":"view"}`)); p.Code != problem.Unavailable || !strings.Contains(p.Detail, "KEY_FILE") {
		t.Errorf("without a key: %+v", p)
	}
	m.signs()
	for _, body := range []string{
		`{"name":"x","role":"admin"}`, `{"name":"x","role":"tenant:admin"}`, `{"name":"","role":"view"}`, `{"name":"x"}`, `{"name":"x","role":"view","seconds":86401}`,
		`{"name":"x","role":"view","seconds":59}`, `{"name":"x","role":"view","seconds":-1}`, `{"name":"x","role":"view","scope":"admin"}`,
	} {
		if p := problemOf(t, m.as(admin, "POST", "/v1/projects/acme/shop/jwt", body)); p.Code != problem.Invalid {
			t.Errorf("%s: %+v", body, p)
		}
	}
	// What is not recorded is not answered.
	failing := &unrecorded{broken: broken{Store: m.store}}
	handler, err := New(Options{
		Log: logr.Discard(), Registry: prometheus.NewRegistry(), Checks: noChecks(), Store: failing, Signing: m.signing, RequestsPerSecond: 100, Burst: 100, Now: func() time.Time { return m.now },
		Live: &live.Operations{Index: cluster, Synced: func(context.Context) error { return nil }},
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Handler = handler
	if answer := m.as(admin, "POST", "/v1/projects/acme/shop/jwt", `{"name":"x","role":"view"}`); answer.Code != http.StatusServiceUnavailable || strings.Contains(answer.Body.String(), "eyJ") {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
}

type unrecorded struct{ broken }

// RecordEvent implements store.Audit.
func (*unrecorded) RecordEvent(context.Context, store.Event) error { return errors.New("disk full") }

// TestAJWTForOthersIsVerifiedByThePublishedKeys, and not taken here.
func TestAJWTForOthersIsVerifiedByThePublishedKeys(t *testing.T) {
	m, _, _ := newCluster(t)
	m.signs()
	made := read[madeJWT](m, m.as(m.holder("root", "admin"), "POST", "/v1/projects/acme/shop/jwt", `{"name":"x","role":"edit","audience":"registry.example.com"}`), http.StatusCreated)
	if p := problemOf(t, m.as(made.JWT, "GET", "/v1/caller", "")); p.Code != problem.Unauthenticated {
		t.Errorf("the manager takes it: %+v", p)
	}
	answer := m.as("", "GET", "/.well-known/jwks.json", "")
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(answer.Body.Bytes(), &set); err != nil || answer.Header().Get("Cache-Control") != "public, max-age=300" {
		t.Fatalf("%v: %s", err, answer.Body)
	}
	parsed, err := jwt.ParseSigned(made.JWT, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		t.Fatal(err)
	}
	var claims signing.Claims
	if err := parsed.Claims(set, &claims); err != nil {
		t.Fatal(err)
	}
	expected := jwt.Expected{Issuer: "https://kubeop.example.com", Subject: "project:acme/shop:edit", AnyAudience: jwt.Audience{"registry.example.com"}, Time: m.now}
	if err := claims.Validate(expected); err != nil || claims.Expiry.Time().Sub(claims.IssuedAt.Time()) != time.Hour {
		t.Errorf("%v: %+v", err, claims)
	}
}

// TestJWTsNeedNoStore: they are read when it fails.
func TestJWTsNeedNoStore(t *testing.T) {
	m, _, _ := newCluster(t)
	m.signs()
	made := read[madeJWT](m, m.as(m.holder("root", "admin"), "POST", "/v1/projects/acme/shop/jwt", `{"name":"x","role":"view"}`), http.StatusCreated)
	m.signing.Store = nil // It is not used.
	handler, err := New(Options{
		Log: logr.Discard(), Live: noCluster(), Registry: prometheus.NewRegistry(), Checks: noChecks(), Store: &broken{Store: m.store, all: errors.New("gone")}, Signing: m.signing, RequestsPerSecond: 100, Burst: 100,
		Now: func() time.Time { return m.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Handler = handler
	if answer := m.as(made.JWT, "GET", "/v1/caller", ""); answer.Code != http.StatusOK {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
}

// from sends a request from an address, and returns the status of its answer.
func (m *manager) from(address, secret string) int {
	r := httptest.NewRequest("GET", "/v1/caller", nil)
	r.RemoteAddr = address
	r.Header.Set("Authorization", "Bearer "+secret)
	answer := httptest.NewRecorder()
	m.ServeHTTP(answer, r)
	return answer.Code
}

// TestNewJWTsAreNoNewShare: who makes many may not send more than by one.
func TestNewJWTsAreNoNewShare(t *testing.T) {
	m, _, _ := newCluster(t)
	m.signs()
	admin := m.holder("root", "admin")
	var all []string
	for range 3 {
		all = append(all, read[madeJWT](m, m.as(admin, "POST", "/v1/projects/acme/shop/jwt", `{"name":"x","role":"view"}`), http.StatusCreated).JWT)
	}
	other := read[madeJWT](m, m.as(admin, "POST", "/v1/projects/acme/blog/jwt", `{"name":"x","role":"view"}`), http.StatusCreated).JWT
	handler, err := New(Options{
		Log: logr.Discard(), Live: noCluster(), Registry: prometheus.NewRegistry(), Checks: noChecks(), Store: m.store, Signing: m.signing, RequestsPerSecond: 0.001, Burst: 4, Now: func() time.Time { return m.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Handler = handler
	var got []int
	for i, caller := range append(all, all[0], all[1], other) {
		got = append(got, m.from(fmt.Sprintf("192.0.2.%d:1", i), caller))
	}
	if want := "[200 200 200 200 429 200]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}
