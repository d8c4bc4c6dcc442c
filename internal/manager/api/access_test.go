package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/manager/index"
	"github.com/kubeop/kubeop/internal/manager/live"
	"github.com/kubeop/kubeop/internal/manager/oidc"
	"github.com/kubeop/kubeop/internal/manager/owners"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/signing"
	"github.com/kubeop/kubeop/internal/manager/token"
	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/testenv/operated"
)

// manager is an API with a clock of its own.
type manager struct {
	*testing.T
	http.Handler
	store    store.Store
	signing  *signing.Keys
	issuers  *oidc.Issuers
	owners   *owners.Owners
	registry *prometheus.Registry
	now      time.Time
	// cluster is nil if the manager has none.
	cluster *index.Index
}

func newManager(t *testing.T) *manager {
	t.Helper()
	m := &manager{T: t, store: operated.Store(t), now: time.Date(2026, 11, 28, 13, 0, 0, 987, time.FixedZone("", 3600))}
	m.signing = &signing.Keys{Issuer: "https://kubeop.example.com", File: filepath.Join(t.TempDir(), "keys"), Store: m.store, Now: func() time.Time { return m.now }}
	m.takesPeople()
	handler, err := New(Options{
		Log: logr.Discard(), Live: noCluster(), Registry: prometheus.NewRegistry(), Checks: noChecks(), Store: m.store, Signing: m.signing, Issuers: m.issuers, Owners: m.owners, RequestsPerSecond: 10_000, Burst: 10_000,
		Now: func() time.Time { return m.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Handler = handler
	return m
}

// holder stores a token, valid for an hour, and returns it.
func (m *manager) holder(id string, scopes ...string) string {
	m.Helper()
	return operated.Token(m, m.store, m.now, id, scopes...)
}

func (m *manager) as(secret, method, path, body string) *httptest.ResponseRecorder {
	m.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	answer := httptest.NewRecorder()
	m.ServeHTTP(answer, r)
	return answer
}

// read reads an answer that has to have a status.
func read[T any](m *manager, answer *httptest.ResponseRecorder, status int) (body T) {
	m.Helper()
	return operated.Read[T](m, answer, status)
}

type list struct {
	Items []struct{ ID any }
	Next  string
}

func TestRequestsWithoutAValidTokenAreRefusedEverywhere(t *testing.T) {
	m := newManager(t)
	valid, revoked, expired := m.holder("valid", "admin"), m.holder("revoked", "admin"), m.holder("expired", "admin")
	if err := m.store.RevokeToken(t.Context(), "", "revoked", store.Event{At: m.now}); err != nil {
		t.Fatal(err)
	}
	unknown := store.Token{ID: "newer", Hash: token.Hash(expired[:len(expired)-1] + "x"), Scopes: []string{"galaxy:admin"}, Expires: m.now.Add(24 * time.Hour)}
	if err := m.store.CreateToken(t.Context(), unknown, store.Event{}); err != nil {
		t.Fatal(err)
	}
	headers := map[string]string{
		"no header": "", "no token": "Bearer ", "another scheme": "Basic " + valid, "a forged token": "Bearer " + token.New(), "half a token": "Bearer " + valid[:30],
		"the hash": "Bearer " + string(token.Hash(valid)), "a revoked token": "Bearer " + revoked, "a code": "Bearer " + token.NewCode(), "two tokens": "Bearer " + valid + " " + valid,
		"scopes of a newer version": "Bearer " + expired[:len(expired)-1] + "x", "SQL": "Bearer kubeop_' OR 1=1 --",
	}
	document := read[struct {
		Paths map[string]map[string]struct{ Security []any }
	}](m, m.as("", "GET", "/openapi.json", ""), http.StatusOK)
	open := []string{"/.well-known/jwks.json", "/healthz", "/readyz", "/v1/setup", "/version"}
	tried := 0
	for path, methods := range document.Paths {
		for method, operation := range methods {
			if slices.Contains(open, path) {
				continue
			}
			if len(operation.Security) == 0 {
				t.Errorf("%s %s needs no token", method, path)
			}
			for name, header := range headers {
				tried++
				r := httptest.NewRequest(strings.ToUpper(method), regexp.MustCompile(`{\w+}`).ReplaceAllString(path, "valid"), strings.NewReader(`{"name":"x","scopes":["admin"]}`))
				r.Header.Set("Authorization", header)
				answer := httptest.NewRecorder()
				m.ServeHTTP(answer, r)
				if p := problemOf(t, answer); p.Code != problem.Unauthenticated || answer.Header().Get("WWW-Authenticate") == "" {
					t.Errorf("%s to %s %s: %+v", name, method, path, p)
				}
			}
		}
	}
	if tried < 50 {
		t.Errorf("only %d were tried", tried)
	}
	if answer := m.as(valid, "GET", "/v1/caller", ""); answer.Code != http.StatusOK {
		t.Errorf("the valid token: %d", answer.Code)
	}
	m.now = m.now.Add(time.Hour)
	if p := problemOf(t, m.as(valid, "GET", "/v1/caller", "")); p.Code != problem.Unauthenticated {
		t.Errorf("the expired token: %+v", p)
	}
}

// TestEveryRoleMayWhatTheTableSays tries each role on each operation, on what is of its own tenant and of another one.
func TestEveryRoleMayWhatTheTableSays(t *testing.T) {
	for who, administers := range map[string]string{
		"admin": "all", "tenant:acme:admin": "own", "tenant:acme:edit": "", "tenant:acme:view": "",
		"project:acme/shop:view": "", "project:acme/shop:edit": "", "project:acme/shop:deploy": "",
		"a person with admin": "all", "a person with tenant:acme:admin": "own", "a person with tenant:acme:edit": "", "a person with tenant:acme:view": "",
	} {
		t.Run(who, func(t *testing.T) {
			m := newManager(t)
			var caller string
			if role, is := strings.CutPrefix(who, "a person with "); is {
				caller = m.personWith(role)
			} else {
				caller = m.holder("caller", who)
			}
			m.holder("own", "tenant:acme:view")
			m.holder("foreign", "tenant:beta:view")
			m.holder("platform", "admin")
			may := func(own, foreign int) (int, int) {
				switch administers {
				case "all":
					return own, own
				case "own":
					return own, foreign
				}
				return http.StatusForbidden, http.StatusForbidden
			}
			expect := func(method, path, body string, want int) {
				t.Helper()
				if answer := m.as(caller, method, path, body); answer.Code != want {
					t.Errorf("%s %s %s: %d, want %d: %s", method, path, body, answer.Code, want, answer.Body)
				}
			}
			expect("GET", "/v1/caller", "", http.StatusOK)
			all, _ := may(http.StatusOK, 0)
			expect("GET", "/v1/tokens", "", all)
			expect("GET", "/v1/audit", "", all)
			expect("GET", "/v1/audit/export", "", all)
			own, foreign := may(http.StatusCreated, http.StatusForbidden)
			for _, scope := range []string{"tenant:acme:view", "tenant:acme:admin", "project:acme/blog:deploy"} {
				expect("POST", "/v1/tokens", `{"name":"x","scopes":["`+scope+`"]}`, own)
			}
			for _, scope := range []string{"tenant:beta:view", "project:beta/shop:view", "admin"} {
				expect("POST", "/v1/tokens", `{"name":"x","scopes":["`+scope+`"]}`, foreign)
			}
			own, foreign = may(http.StatusNoContent, http.StatusNotFound)
			missing, _ := may(http.StatusNotFound, 0)
			expect("DELETE", "/v1/tokens/missing", "", missing)
			expect("DELETE", "/v1/tokens/foreign", "", foreign)
			expect("DELETE", "/v1/tokens/platform", "", foreign)
			expect("DELETE", "/v1/tokens/own", "", own)
			if administers == "own" {
				for _, path := range []string{"/v1/tokens", "/v1/audit", "/v1/audit/export"} {
					if text := m.as(caller, "GET", path, "").Body.String(); strings.Contains(text, "beta") || strings.Contains(text, "platform") || !strings.Contains(text, "acme") {
						t.Errorf("%s shows %s", path, text)
					}
				}
				if diff := cmp.Diff(problemOf(t, m.as(caller, "DELETE", "/v1/tokens/foreign", "")).Detail, problemOf(t, m.as(caller, "DELETE", "/v1/tokens/missing", "")).Detail); diff != "" {
					t.Errorf("the answer shows that another tenant has the token:\n%s", diff)
				}
			}
		})
	}
}

func TestATokenIsShownOnceUsedAndRevokedAtOnce(t *testing.T) {
	m := newManager(t)
	admin := m.holder("root", "admin")
	created := m.as(admin, "POST", "/v1/tokens", `{"name":"CI","scopes":["project:acme/shop:deploy"]}`)
	made := read[struct{ ID, Token, Created, CreatedBy string }](m, created, http.StatusCreated)
	if !token.IsToken(made.Token) || made.CreatedBy != "root" || made.Created != "2026-11-28T12:00:00Z" {
		t.Fatalf("created %+v", made)
	}
	m.now = m.now.Add(2 * time.Minute)
	if got := read[struct{ ID string }](m, m.as(made.Token, "GET", "/v1/caller", ""), http.StatusOK); got.ID != made.ID {
		t.Errorf("the caller is %s", got.ID)
	}
	listed := m.as(admin, "GET", "/v1/tokens", "").Body.String()
	if strings.Contains(listed, made.Token) || !strings.Contains(listed, `"lastUsed":"2026-11-28T12:02:00Z"`) {
		t.Errorf("the list is %s", listed)
	}
	for range 2 {
		if answer := m.as(admin, "DELETE", "/v1/tokens/"+made.ID, ""); answer.Code != http.StatusNoContent {
			t.Errorf("the revocation is answered by %d %s", answer.Code, answer.Body)
		}
		if p := problemOf(t, m.as(made.Token, "GET", "/v1/caller", "")); p.Code != problem.Unauthenticated {
			t.Errorf("after the revocation: %+v", p)
		}
	}
	events, err := m.store.ListEvents(t.Context(), "acme", 0, 10)
	if err != nil || len(events) != 2 {
		t.Fatalf("%v: %+v", err, events)
	}
	for i, action := range []string{"revokeToken", "createToken"} {
		e := events[i]
		if e.Action != action || e.Actor != "root" || e.Object != "token/"+made.ID || e.Address != "192.0.2.1" || e.RequestID == "" {
			t.Errorf("event %d is %+v", i, e)
		}
	}
}

func TestBadTokensAreNotCreated(t *testing.T) {
	m := newManager(t)
	admin := m.holder("root", "admin")
	for name, c := range map[string]struct {
		body  string
		fault string
		code  problem.Code
	}{
		"no JSON":                   {`{hunter2`, "", problem.BadRequest},
		"nothing":                   {``, "", problem.BadRequest},
		"no name":                   {`{"scopes":["admin"]}`, "body", problem.Invalid},
		"no scope":                  {`{"name":"x","scopes":[]}`, "body.scopes", problem.Invalid},
		"scopes that are null":      {`{"name":"x","scopes":null}`, "body.scopes", problem.Invalid},
		"an unknown scope":          {`{"name":"x","scopes":["hunter2"]}`, "body.scopes", problem.Invalid},
		"scopes of two tenants":     {`{"name":"x","scopes":["tenant:a:view","tenant:b:view"]}`, "body.scopes", problem.Invalid},
		"admin and more":            {`{"name":"x","scopes":["admin","tenant:b:view"]}`, "body.scopes", problem.Invalid},
		"another case":              {`{"Name":"x","scopes":["admin"]}`, "body", problem.Invalid},
		"an unknown field":          {`{"name":"x","scopes":["admin"],"tenant":"a"}`, "body.tenant", problem.Invalid},
		"an expiry in the past":     {`{"name":"x","scopes":["admin"],"expires":"2026-11-28T12:00:00Z"}`, "body.expires", problem.Invalid},
		"an expiry far in future":   {`{"name":"x","scopes":["admin"],"expires":"2028-01-01T00:00:00Z"}`, "body.expires", problem.Invalid},
		"an expiry that is no time": {`{"name":"x","scopes":["admin"],"expires":"hunter2"}`, "body.expires", problem.Invalid},
		"a large body":              {`{"name":"` + strings.Repeat("x", MaxBody) + `"}`, "", problem.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			p := problemOf(t, m.as(admin, "POST", "/v1/tokens", c.body))
			if strings.Contains(fmt.Sprint(p), "hunter2") {
				t.Errorf("it repeats what the caller sent: %+v", p)
			}
			if p.Code != c.code || c.fault != "" && (len(p.Errors) == 0 || p.Errors[0].Location != c.fault) {
				t.Errorf("%+v", p)
			}
		})
	}
	if events, err := m.store.ListEvents(t.Context(), "", 0, 10); err != nil || len(events) != 1 {
		t.Errorf("something was written: %v %+v", err, events)
	}
}

// TestATenantHasAtMostSoManyTokens: its administrators create them without asking anyone. Those of others do not count.
func TestATenantHasAtMostSoManyTokens(t *testing.T) {
	m := newManager(t)
	admin, other := m.holder("acme", "tenant:acme:admin"), m.holder("beta", "tenant:beta:admin")
	for i := range store.MaxTokensOfTenant - 1 {
		m.holder(fmt.Sprintf("acme-%d", i), "tenant:acme:view")
	}
	const wanted = `{"name":"x","scopes":["tenant:acme:view"]}`
	if p := problemOf(t, m.as(admin, "POST", "/v1/tokens", wanted)); p.Code != problem.Conflict || !strings.Contains(p.Detail, "500") {
		t.Errorf("%+v", p)
	}
	if answer := m.as(other, "POST", "/v1/tokens", strings.Replace(wanted, "acme", "beta", 1)); answer.Code != http.StatusCreated {
		t.Errorf("another tenant: %d %s", answer.Code, answer.Body)
	}
	if answer := m.as(admin, "DELETE", "/v1/tokens/acme-1", ""); answer.Code != http.StatusNoContent {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
	if answer := m.as(admin, "POST", "/v1/tokens", wanted); answer.Code != http.StatusCreated {
		t.Errorf("after one was revoked: %d %s", answer.Code, answer.Body)
	}
}

func TestListsHaveAStableOrderAndRefuseBadCursors(t *testing.T) {
	m := newManager(t)
	admin := m.holder("id-5", "admin")
	for _, i := range []int{3, 1, 4, 2} {
		m.holder(fmt.Sprintf("id-%d", i), "tenant:acme:view")
	}
	for path, want := range map[string][]any{"/v1/tokens": {"id-1", "id-2", "id-3", "id-4", "id-5"}, "/v1/audit": {5.0, 4.0, 3.0, 2.0, 1.0}} {
		var got []any
		for cursor := ""; ; {
			page := read[list](m, m.as(admin, "GET", path+"?limit=2&cursor="+cursor, ""), http.StatusOK)
			for _, item := range page.Items {
				got = append(got, item.ID)
			}
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
		for query, code := range map[string]problem.Code{
			"cursor=%25": problem.BadRequest, "cursor=%00": problem.BadRequest, "limit=0": problem.Invalid, "limit=501": problem.Invalid, "limit=x": problem.Invalid, "limit=2&order=name": problem.Invalid,
		} {
			if p := problemOf(t, m.as(admin, "GET", path+"?"+query, "")); p.Code != code {
				t.Errorf("%s?%s: %+v", path, query, p)
			}
		}
	}
	for _, key := range []string{"bmFtZQ", "LTE", "OTk5OTk5OTk5OTk5OTk5OTk5OTk5"} { // name, -1, 99999999999999999999
		if p := problemOf(t, m.as(admin, "GET", "/v1/audit?cursor="+key, "")); p.Code != problem.BadRequest {
			t.Errorf("the cursor %s: %+v", key, p)
		}
	}
}

// broken is a store of which one part fails.
type broken struct {
	store.Store
	use, all error
	asked    func(context.Context) error
}

// UseToken implements store.Tokens.
func (b *broken) UseToken(ctx context.Context, id string, at time.Time) error {
	return errors.Join(b.use, b.Store.UseToken(ctx, id, at))
}

// TokenByHash implements store.Tokens.
func (b *broken) TokenByHash(ctx context.Context, hash []byte) (store.Token, error) {
	if b.asked != nil {
		return store.Token{}, b.asked(ctx)
	}
	found, err := b.Store.TokenByHash(ctx, hash)
	return found, errors.Join(b.all, err)
}

func TestAStoreThatFailsIsReportedWithoutTheReason(t *testing.T) {
	m := newManager(t)
	admin := m.holder("root", "admin")
	failing := &broken{Store: m.store, use: errors.New("no space left on device")}
	handler, err := New(Options{
		Log: logr.Discard(), Live: noCluster(), Registry: prometheus.NewRegistry(), Checks: noChecks(), Store: failing, RequestsPerSecond: 100, Burst: 100, Now: func() time.Time { return m.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Handler = handler
	if answer := m.as(admin, "GET", "/v1/caller", ""); answer.Code != http.StatusOK {
		t.Errorf("a store that is full does not say who the caller is: %d %s", answer.Code, answer.Body)
	}
	failing.all = errors.New("/data/manager.db is closed")
	p := problemOf(t, m.as(m.holder("another", "admin"), "GET", "/v1/caller", ""))
	if p.Code != problem.Unavailable || strings.Contains(p.Detail, "/data") {
		t.Errorf("%+v", p)
	}
}

// ListTokens implements store.Tokens.
func (b *broken) ListTokens(ctx context.Context, of, after string, limit int) ([]store.Token, error) {
	found, err := b.Store.ListTokens(ctx, of, after, limit)
	return found, errors.Join(b.all, err)
}

// TestReadsGoOnWithoutTheStore, for callers whose tokens it confirmed shortly before. What needs the store says that it is not there.
func TestReadsGoOnWithoutTheStore(t *testing.T) {
	m, cluster, _ := newCluster(t)
	failing := &broken{Store: m.store}
	handler, err := New(Options{
		Log: logr.Discard(), Live: &live.Operations{Index: cluster, Synced: func(context.Context) error { return nil }}, Registry: prometheus.NewRegistry(), Checks: noChecks(), Store: failing,
		RequestsPerSecond: 1000, Burst: 1000, Now: func() time.Time { return m.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Handler = handler
	long, short, idle, unseen, revoked := m.holder("long", "admin"), m.holder("short", "project:acme/shop:view"), m.holder("idle", "admin"), m.holder("unseen", "admin"), m.holder("revoked", "admin")
	ask := func(secret string) int { return m.as(secret, "GET", "/v1/apps/acme/shop", "").Code }
	ask(idle)
	m.now = m.now.Add(time.Minute + time.Second)
	for _, secret := range []string{long, short, revoked} {
		if got := ask(secret); got != http.StatusOK {
			t.Fatalf("with the store it answers %d", got)
		}
	}
	if err := m.store.RevokeToken(t.Context(), "", "revoked", store.Event{At: m.now}); err != nil {
		t.Fatal(err)
	}
	if got := ask(revoked); got != http.StatusUnauthorized {
		t.Errorf("after the revocation it answers %d", got)
	}
	failing.all = errors.New("dial 10.0.0.1")
	for who, want := range map[string]int{long: http.StatusOK, short: http.StatusOK, idle: http.StatusServiceUnavailable, unseen: http.StatusServiceUnavailable} {
		if got := ask(who); got != want {
			t.Errorf("without the store it answers %d, want %d", got, want)
		}
	}
	if got := ask(revoked); got == http.StatusOK {
		t.Error("the revoked token is valid again")
	}
	if p := problemOf(t, m.as(long, "GET", "/v1/tokens", "")); p.Code != problem.Unavailable {
		t.Errorf("what needs the store: %+v", p)
	}
	if p := problemOf(t, m.as(short, "GET", "/v1/apps/beta/shop", "")); p.Code != problem.NotFound {
		t.Errorf("another tenant's: %+v", p)
	}
	m.now = m.now.Add(59 * time.Minute)
	if got := ask(long); got != http.StatusUnauthorized {
		t.Errorf("a token that expired meanwhile is answered by %d", got)
	}
	failing.all = nil
	forever := m.holder("forever", "admin")
	ask(forever)
	failing.all = errors.New("dial 10.0.0.1")
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{0, http.StatusOK}, {59*time.Minute + 59*time.Second, http.StatusOK}, {2 * time.Second, http.StatusServiceUnavailable}} {
		m.now = m.now.Add(c.after)
		if got := ask(forever); got != c.want {
			t.Errorf("%s later it answers %d, want %d", c.after, got, c.want)
		}
	}
}

// TestAnOperationHasADeadlineThatIsReportedToItsCaller, whether the store says so or is interrupted.
func TestAnOperationHasADeadlineThatIsReportedToItsCaller(t *testing.T) {
	m := newManager(t)
	admin := m.holder("root", "admin")
	failing := &broken{Store: m.store}
	handler, err := New(Options{
		Log: logr.Discard(), Live: noCluster(), Registry: prometheus.NewRegistry(), Checks: noChecks(), Store: failing, RequestsPerSecond: 100, Burst: 100, Now: func() time.Time { return m.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Handler = handler
	before := time.Now()
	failing.asked = func(ctx context.Context) error {
		if at, has := ctx.Deadline(); !has || at.After(time.Now().Add(config.OperationTimeout)) || at.Before(before.Add(config.OperationTimeout)) {
			t.Errorf("the deadline is %v %s", has, at)
		}
		return fmt.Errorf("reading: %w", context.DeadlineExceeded)
	}
	if p := problemOf(t, m.as(admin, "GET", "/v1/caller", "")); p.Code != problem.TookTooLong {
		t.Errorf("%+v", p)
	}
	failing.asked = func(ctx context.Context) error {
		<-ctx.Done()
		return errors.New("interrupted (9)")
	}
	limited, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	r := httptest.NewRequestWithContext(limited, "GET", "/v1/caller", nil)
	r.Header.Set("Authorization", "Bearer "+admin)
	answer := httptest.NewRecorder()
	m.ServeHTTP(answer, r)
	if p := problemOf(t, answer); p.Code != problem.TookTooLong {
		t.Errorf("%+v", p)
	}
}

func TestTheCodeIsForOneAdministrator(t *testing.T) {
	m := newManager(t)
	code := token.NewCode()
	if err := m.store.OfferSetup(t.Context(), token.Hash(code), m.now, m.now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if p := problemOf(t, m.as("", "POST", "/v1/setup", `{"name":"me","code":"`+token.NewCode()+`"}`)); p.Code != problem.Unauthenticated {
		t.Errorf("another code: %+v", p)
	}
	made := read[struct {
		Token  string
		Scopes []string
	}](m, m.as("", "POST", "/v1/setup", `{"name":"me","code":"`+code+`"}`), http.StatusCreated)
	if diff := cmp.Diff([]string{"admin"}, made.Scopes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if answer := m.as(made.Token, "GET", "/v1/audit", ""); answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), `"actor":"setup"`) {
		t.Errorf("the audit log is %d %s", answer.Code, answer.Body)
	}
	if p := problemOf(t, m.as("", "POST", "/v1/setup", `{"name":"me","code":"`+code+`"}`)); p.Code != problem.Conflict {
		t.Errorf("the code again: %+v", p)
	}
}
