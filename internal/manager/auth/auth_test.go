package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/token"
	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/testenv/operated"
)

// who is the answer of both operations.
type who struct {
	Body struct{ ID, Tenant, Place, Refused string }
}

// serve serves two operations. caller is the one of the last request.
func serve(t *testing.T) (s *operated.Served, caller *auth.Caller) {
	t.Helper()
	caller = &auth.Caller{}
	s = operated.Start(t, func(_ *operated.Served, api huma.API) {
		huma.Register(api, huma.Operation{OperationID: "who", Method: http.MethodGet, Path: "/who", Security: auth.Required}, func(ctx context.Context, in *struct {
			Tenant string `query:"tenant"`
		}) (*who, error) {
			*caller = auth.Of(ctx)
			answer := &who{}
			place, refused := caller.Place(in.Tenant, access.Tokens)
			if answer.Body.ID, answer.Body.Tenant, answer.Body.Place = caller.Token.ID, caller.Token.Tenant, place; refused != nil {
				answer.Body.Refused = string(refused.Code)
			}
			return answer, nil
		})
		huma.Register(api, huma.Operation{OperationID: "anybody", Method: http.MethodGet, Path: "/anybody"}, func(ctx context.Context, _ *struct{}) (*who, error) {
			*caller = auth.Of(ctx)
			return &who{}, nil
		})
	})
	return s, caller
}

// TestOnlyAValidTokenIsACaller: whatever is wrong with it, the operation is not called.
func TestOnlyAValidTokenIsACaller(t *testing.T) {
	s, caller := serve(t)
	valid, revoked := s.Token("valid", "admin"), s.Token("revoked", "tenant:acme:admin")
	if err := s.Store.RevokeToken(t.Context(), "", "revoked", store.Event{At: s.Time}); err != nil {
		t.Fatal(err)
	}
	newer := token.New()
	if err := s.Store.CreateToken(t.Context(), store.Token{ID: "newer", Hash: token.Hash(newer), Scopes: []string{"admin", "galaxy:admin"}, Expires: s.Time.Add(time.Hour)}, store.Event{}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		header string
		says   string // "": it is valid.
	}{
		"a token":                    {"Bearer " + valid, ""},
		"another case of the scheme": {"bEARER " + valid, ""},
		"no header":                  {"", "no token"},
		"another scheme":             {"Basic " + valid, "no token"},
		"only a scheme":              {"Bearer", "no token"},
		"two spaces":                 {"Bearer  " + valid, "no token"},
		"two tokens":                 {"Bearer " + valid + " " + valid, "no token"},
		"a token and a comma":        {"Bearer " + valid + ",", "no token"},
		"half a token":               {"Bearer " + valid[:30], "no token"},
		"its hash":                   {"Bearer " + string(token.Hash(valid)), "no token"},
		"a code":                     {"Bearer " + token.NewCode(), "no token"},
		"SQL":                        {"Bearer kubeop_' OR 1=1 --", "no token"},
		"a forged token":             {"Bearer " + token.New(), "is unknown"},
		"a revoked token":            {"Bearer " + revoked, "was revoked"},
		"scopes of a newer version":  {"Bearer " + newer, "unknown to this version"},
		"a JWT of nobody":            {"Bearer eyJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwczovL2V4YW1wbGUuY29tIn0.x", "is not one that the manager takes"},
		"a JWT in our name":          {"Bearer eyJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwczovL2t1YmVvcC5leGFtcGxlLmNvbSIsInNjb3BlIjoiYWRtaW4ifQ.x", "is not one that the manager takes"},
	} {
		t.Run(name, func(t *testing.T) {
			*caller = auth.Caller{}
			var headers []string
			if c.header != "" {
				headers = append(headers, "Authorization: "+c.header)
			}
			answer := s.Do("", "GET", "/who", "", headers...)
			if c.says == "" {
				if answer.Code != http.StatusOK || caller.Token.ID != "valid" {
					t.Errorf("%d, %+v", answer.Code, caller)
				}
				return
			}
			p := operated.Refused(t, answer, problem.Unauthenticated)
			if !strings.Contains(p.Detail, c.says) || answer.Header().Get("WWW-Authenticate") != `Bearer realm="kubeop"` || caller.Token.ID != "" {
				t.Errorf("%+v, %+v", p, caller)
			}
			if answer := s.Do("", "GET", "/anybody", "", headers...); answer.Code != http.StatusOK || caller.Token.ID != "" || len(caller.Grant) != 0 {
				t.Errorf("without a caller: %d, %+v", answer.Code, caller)
			}
		})
	}
	if again := (auth.Caller{}).Again(t.Context()); again == nil || again.Code != problem.Unauthenticated {
		t.Errorf("nobody may go on: %v", again)
	}
}

// TestACallerMayGoOnUntilItsTokenEnds, which an answer that goes on for long has to ask.
func TestACallerMayGoOnUntilItsTokenEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*operated.Served) error
		says string
	}{
		"valid":   {func(s *operated.Served) error { s.Time = s.Time.Add(time.Hour - time.Second); return nil }, ""},
		"expired": {func(s *operated.Served) error { s.Time = s.Time.Add(time.Hour); return nil }, "expired"},
		"revoked": {func(s *operated.Served) error {
			return s.Store.RevokeToken(context.Background(), "acme", "id", store.Event{At: s.Time})
		}, "revoked"},
		"revoked by another tenant": {func(s *operated.Served) error {
			if err := s.Store.RevokeToken(context.Background(), "beta", "id", store.Event{At: s.Time}); !errors.Is(err, store.ErrNotFound) {
				return fmt.Errorf("it is found: %w", err)
			}
			return nil
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, caller := serve(t)
			s.Do(s.Token("id", "tenant:acme:view"), "GET", "/who", "")
			if err := c.end(s); err != nil {
				t.Fatal(err)
			}
			refused := caller.Again(t.Context())
			if (refused == nil) != (c.says == "") || refused != nil && (refused.Code != problem.Unauthenticated || !strings.Contains(refused.Detail, c.says)) {
				t.Errorf("%v", refused)
			}
		})
	}
}

// TestTheLastUseOfATokenIsExactToTheMinute: a write for each request would cost more than the request.
func TestTheLastUseOfATokenIsExactToTheMinute(t *testing.T) {
	s, _ := serve(t)
	secret, start := s.Token("id", "admin"), s.Time
	for _, c := range []struct{ at, want time.Duration }{{0, 0}, {59 * time.Second, 0}, {time.Minute, time.Minute}, {90 * time.Second, time.Minute}, {2 * time.Minute, 2 * time.Minute}} {
		s.Time = start.Add(c.at)
		if answer := s.Do(secret, "GET", "/who", ""); answer.Code != http.StatusOK {
			t.Fatalf("%d %s", answer.Code, answer.Body)
		}
		held, err := s.Store.TokenByHash(t.Context(), token.Hash(secret))
		if err != nil || !held.LastUsed.Equal(start.Add(c.want)) {
			t.Errorf("after %s it was used at %s, %v", c.at, held.LastUsed, err)
		}
	}
}

func TestAListIsOfTheTenantThatTheCallerIsOf(t *testing.T) {
	for name, c := range map[string]struct {
		scopes        []string
		named         string
		want, refused string
	}{
		"an administrator":              {[]string{"admin"}, "", "", ""},
		"an administrator, of one":      {[]string{"admin"}, "acme", "acme", ""},
		"of one tenant":                 {[]string{"tenant:acme:admin"}, "", "acme", ""},
		"of another tenant":             {[]string{"tenant:acme:admin"}, "beta", "", "forbidden"},
		"without the right":             {[]string{"tenant:acme:view"}, "", "", "forbidden"},
		"of two tenants":                {[]string{"tenant:acme:admin", "tenant:beta:admin"}, "", "", "invalid"},
		"of two tenants, one named":     {[]string{"tenant:acme:admin", "tenant:beta:admin"}, "beta", "beta", ""},
		"of two, the right in one only": {[]string{"tenant:acme:admin", "tenant:beta:view"}, "beta", "", "forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := serve(t)
			path := "/who"
			if c.named != "" {
				path += "?tenant=" + c.named
			}
			got := operated.Read[struct{ Place, Refused string }](t, s.Do(s.Token("id", c.scopes...), "GET", path, ""), http.StatusOK)
			if got.Place != c.want || got.Refused != c.refused {
				t.Errorf("%+v", got)
			}
		})
	}
}
