package tokens

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/internal/manager/page"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/token"
	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/testenv/operated"
)

// newTokens serves the operations. Every project is there but those named "none".
func newTokens(t *testing.T, faults func(store.Store) store.Store) (s *operated.Served, o *Operations) {
	t.Helper()
	s = operated.Start(t, func(s *operated.Served, api huma.API) {
		o = &Operations{Store: s.Store, Signing: s.Signing, JWTs: NewJWTLimit(s.Now), Now: s.Now}
		if faults != nil {
			o.Store = faults(s.Store)
		}
		o.Register(api)
	})
	return s, o
}

// created is a token that was made.
type created struct {
	Token
	Secret string `json:"token"`
}

func create(t *testing.T, s *operated.Served, caller, body string) created {
	t.Helper()
	return operated.Read[created](t, s.Do(caller, "POST", "/v1/tokens", body), http.StatusCreated)
}

// TestACallerPassesOnNoMoreThanItAdministers tries to make tokens with each scope.
func TestACallerPassesOnNoMoreThanItAdministers(t *testing.T) {
	scopes := []string{"admin", "tenant:acme:admin", "tenant:acme:view", "project:acme/shop:deploy", "tenant:beta:view"}
	for caller, want := range map[string]string{ // y: it gets one with the scope, n: it does not.
		"admin": "yyyyy", "tenant:acme:admin": "nyyyn", "tenant:beta:admin": "nnnny", "tenant:acme:edit": "nnnnn", "tenant:acme:view": "nnnnn", "project:acme/shop:edit": "nnnnn", "project:acme/shop:deploy": "nnnnn",
	} {
		t.Run(caller, func(t *testing.T) {
			s, _ := newTokens(t, nil)
			secret := s.Token("caller", caller)
			for i, scope := range scopes {
				answer := s.Do(secret, "POST", "/v1/tokens", fmt.Sprintf(`{"name":"x","scopes":[%q]}`, scope))
				if want[i] == 'n' {
					operated.Refused(t, answer, problem.Forbidden)
					continue
				}
				made := operated.Read[created](t, answer, http.StatusCreated)
				if diff := cmp.Diff([]string{scope}, made.Scopes); diff != "" || made.CreatedBy != "caller" {
					t.Errorf("by %s (-want +got):\n%s", made.CreatedBy, diff)
				}
				if diff := cmp.Diff(made.Token, operated.Read[Token](t, s.Do(made.Secret, "GET", "/v1/caller", ""), http.StatusOK), ignoreLastUsed); diff != "" {
					t.Errorf("the caller with it (-want +got):\n%s", diff)
				}
			}
		})
	}
	s, _ := newTokens(t, nil)
	operated.Refused(t, s.Do("", "POST", "/v1/tokens", `{"name":"x","scopes":["admin"]}`), problem.Unauthenticated)
	mixed := s.Token("mixed", "tenant:acme:admin")
	p := operated.Refused(t, s.Do(mixed, "POST", "/v1/tokens", `{"name":"x","scopes":["tenant:acme:view","tenant:beta:view"]}`), problem.Invalid)
	if len(p.Errors) != 1 || p.Errors[0].Location != "body.scopes" {
		t.Errorf("%+v", p)
	}
}

var ignoreLastUsed = cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".LastUsed" }, cmp.Ignore())

func TestATokenIsValidUntilItsExpiry(t *testing.T) {
	for name, c := range map[string]struct {
		wanted string
		lives  time.Duration // 0: it is not made.
	}{
		"not said":            {"", 90 * 24 * time.Hour},
		"null":                {`,"expires":null`, 90 * 24 * time.Hour},
		"in a second":         {`,"expires":"2026-11-28T12:00:01Z"`, time.Second},
		"in another zone":     {`,"expires":"2026-11-28T14:00:00+01:00"`, time.Hour},
		"in 366 days":         {`,"expires":"2027-11-29T12:00:00Z"`, 366 * 24 * time.Hour},
		"in 366 days and 1 s": {`,"expires":"2027-11-29T12:00:01Z"`, 0},
		"now":                 {`,"expires":"2026-11-28T12:00:00Z"`, 0},
		"in the past":         {`,"expires":"2026-11-28T11:59:59Z"`, 0},
		"in the year 0":       {`,"expires":"0000-01-01T00:00:00Z"`, 0},
		"in the year 9999":    {`,"expires":"9999-12-31T23:59:59Z"`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newTokens(t, nil)
			answer := s.Do(s.Token("root", "admin"), "POST", "/v1/tokens", `{"name":"x","scopes":["admin"]`+c.wanted+`}`)
			if c.lives == 0 {
				if p := operated.Refused(t, answer, problem.Invalid); len(p.Errors) != 1 || p.Errors[0].Location != "body.expires" {
					t.Errorf("%+v", p)
				}
				return
			}
			made := operated.Read[created](t, answer, http.StatusCreated)
			if !made.Expires.Equal(s.Time.Add(c.lives)) {
				t.Errorf("it expires at %s", made.Expires)
			}
			s.Time = s.Time.Add(c.lives - 1)
			operated.Read[Token](t, s.Do(made.Secret, "GET", "/v1/caller", ""), http.StatusOK)
			s.Time = s.Time.Add(1)
			operated.Refused(t, s.Do(made.Secret, "GET", "/v1/caller", ""), problem.Unauthenticated)
		})
	}
}

// TestATokenOfAnotherTenantIsNotThereForItsAdministrators: to revoke one says the same of it as of none.
func TestATokenOfAnotherTenantIsNotThereForItsAdministrators(t *testing.T) {
	s, _ := newTokens(t, nil)
	root, acme, viewer := s.Token("root", "admin"), s.Token("acme", "tenant:acme:admin"), s.Token("viewer", "tenant:acme:view")
	foreign := s.Token("foreign", "tenant:beta:view")
	own := s.Token("own", "project:acme/shop:deploy")
	for name, c := range map[string]struct {
		caller, id string
		want       problem.Code
	}{
		"of another tenant":      {acme, "foreign", problem.NotFound},
		"of the platform":        {acme, "root", problem.NotFound},
		"none":                   {acme, "missing", problem.NotFound},
		"by who may only read":   {viewer, "own", problem.Forbidden},
		"SQL":                    {acme, "%27%20OR%201=1%20--", problem.NotFound},
		"a long id":              {acme, strings.Repeat("a", 65), problem.Invalid},
		"by nobody":              {"", "own", problem.Unauthenticated},
		"none, by administrator": {root, "missing", problem.NotFound},
	} {
		t.Run(name, func(t *testing.T) { operated.Refused(t, s.Do(c.caller, "DELETE", "/v1/tokens/"+c.id, ""), c.want) })
	}
	for _, secret := range []string{root, foreign, own} {
		operated.Read[Token](t, s.Do(secret, "GET", "/v1/caller", ""), http.StatusOK)
	}
	for caller, want := range map[string]string{root: "acme foreign own root viewer", acme: "acme own viewer"} {
		var ids []string
		for _, held := range operated.Read[page.List[Token]](t, s.Do(caller, "GET", "/v1/tokens", ""), http.StatusOK).Items {
			ids = append(ids, held.ID)
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("the list is %s, want %s", got, want)
		}
	}
	operated.Refused(t, s.Do(viewer, "GET", "/v1/tokens", ""), problem.Forbidden)
	operated.Refused(t, s.Do(acme, "GET", "/v1/tokens?tenant=beta", ""), problem.Forbidden)
}

// TestARevocationCountsAtOnceAndIsOneEvent, however often it is requested.
func TestARevocationCountsAtOnceAndIsOneEvent(t *testing.T) {
	s, _ := newTokens(t, nil)
	acme := s.Token("acme", "tenant:acme:admin")
	made := create(t, s, acme, `{"name":"x","scopes":["tenant:acme:view"]}`)
	for range 2 {
		if answer := s.Do(acme, "DELETE", "/v1/tokens/"+made.ID, ""); answer.Code != http.StatusNoContent || answer.Body.Len() != 0 {
			t.Errorf("%d %s", answer.Code, answer.Body)
		}
		operated.Refused(t, s.Do(made.Secret, "GET", "/v1/caller", ""), problem.Unauthenticated)
	}
	events, err := s.Store.ListEvents(t.Context(), "acme", 0, 10)
	if err != nil || len(events) != 3 || events[0].Action != "revokeToken" || events[1].Action != "createToken" || events[0].Object != "token/"+made.ID || events[0].Actor != "acme" {
		t.Errorf("%v: %+v", err, events)
	}
	listed := s.Do(acme, "GET", "/v1/tokens", "").Body.String()
	if strings.Contains(listed, made.Secret) || strings.Count(listed, `"revoked":"2026-11-28T12:00:00Z"`) != 1 {
		t.Errorf("the list is %s", listed)
	}
	// A caller may revoke its own.
	if answer := s.Do(acme, "DELETE", "/v1/tokens/acme", ""); answer.Code != http.StatusNoContent {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
	operated.Refused(t, s.Do(acme, "GET", "/v1/tokens", ""), problem.Unauthenticated)
}

// broken is a store whose writes fail.
type broken struct {
	store.Store
	err error
}

// CreateToken implements store.Tokens.
func (b broken) CreateToken(ctx context.Context, t store.Token, e store.Event) error { return b.err }

// ClaimSetup implements store.Setup.
func (b broken) ClaimSetup(ctx context.Context, hash []byte, t store.Token, e store.Event) error {
	return b.err
}

// RevokeToken implements store.Tokens.
func (b broken) RevokeToken(ctx context.Context, of, id string, e store.Event) error { return b.err }

// RecordEvent implements store.Audit.
func (b broken) RecordEvent(ctx context.Context, e store.Event) error { return b.err }

// TestErrorsOfTheStoreAreNotAnswered: the answer has no token that is not stored, and no reason that names the inside of the manager.
func TestErrorsOfTheStoreAreNotAnswered(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		want  problem.Code
		says  string
		again string
	}{
		"it is full":                     {errors.New("disk 7 of db1 is full"), problem.Unavailable, "The store of the manager does not answer.", ""},
		"the tenant has enough":          {store.ErrTooMany, problem.Conflict, "500 valid tokens", ""},
		"the tenant got enough in a day": {store.ErrTooOften, problem.TooManyRequests, "1000 tokens within a day", "3600"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newTokens(t, func(real store.Store) store.Store { return broken{real, c.err} })
			answer := s.Do(s.Token("root", "admin"), "POST", "/v1/tokens", `{"name":"x","scopes":["tenant:acme:view"]}`)
			p := operated.Refused(t, answer, c.want)
			if text := answer.Body.String(); strings.Contains(text, token.Prefix) || strings.Contains(text, "db1") || !strings.Contains(p.Detail, c.says) || answer.Header().Get("Retry-After") != c.again {
				t.Errorf("again after %q: %s", answer.Header().Get("Retry-After"), text)
			}
		})
	}
	s, o := newTokens(t, func(real store.Store) store.Store { return broken{real, errors.New("disk 7 of db1 is full")} })
	o.Project = func(context.Context, string, string) error { return nil }
	operated.Key(t, s.Signing)
	root := s.Token("root", "admin")
	for path, body := range map[string]string{"POST /v1/setup": `{"name":"x","code":"y"}`, "DELETE /v1/tokens/root": "", "POST /v1/projects/acme/shop/jwt": `{"name":"x","role":"view"}`} {
		method, at, _ := strings.Cut(path, " ")
		answer := s.Do(root, method, at, body)
		operated.Refused(t, answer, problem.Unavailable)
		if text := answer.Body.String(); strings.Contains(text, "db1") || strings.Contains(text, "eyJ") || strings.Contains(text, token.Prefix) {
			t.Errorf("%s: %s", path, text)
		}
	}
}
