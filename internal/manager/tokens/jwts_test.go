package tokens

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/testenv/operated"
)

const jwts = "/v1/projects/acme/shop/jwt"

// newSigner serves the operations with a key that signs, and every project but those named "none".
func newSigner(t *testing.T) (s *operated.Served, root string) {
	t.Helper()
	s, o := newTokens(t, nil)
	operated.Key(t, s.Signing)
	o.Project = func(_ context.Context, _, project string) error {
		if project == "none" {
			return problem.New(problem.NotFound, "")
		}
		return nil
	}
	return s, s.Token("root", "admin")
}

func TestAJWTIsValidAsLongAsWasAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		wanted string
		lives  time.Duration // 0: it is not made.
	}{
		"not said":       {"", time.Hour},
		"a minute":       {`,"seconds":60`, time.Minute},
		"a day":          {`,"seconds":86400`, 24 * time.Hour},
		"59 seconds":     {`,"seconds":59`, 0},
		"a day and 1 s":  {`,"seconds":86401`, 0},
		"less than none": {`,"seconds":-60`, 0},
		"a fraction":     {`,"seconds":60.5`, 0},
		"a text":         {`,"seconds":"60"`, 0},
		"64 bits":        {`,"seconds":9223372036854775807`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, root := newSigner(t)
			answer := s.Do(root, "POST", jwts, `{"name":"x","role":"deploy"`+c.wanted+`}`)
			if c.lives == 0 {
				operated.Refused(t, answer, problem.Invalid)
				return
			}
			made := operated.Read[JWT](t, answer, http.StatusCreated)
			if !made.Created.Equal(s.Time) || !made.Expires.Equal(s.Time.Add(c.lives)) || made.Scope != "project:acme/shop:deploy" || made.Audience != s.Signing.Issuer {
				t.Errorf("%+v", made)
			}
			s.Time = made.Expires.Add(-time.Second)
			if caller := operated.Read[Token](t, s.Do(made.JWT, "GET", "/v1/caller", ""), http.StatusOK); caller.ID != "jwt:"+made.ID || fmt.Sprint(caller.Scopes) != "[project:acme/shop:deploy]" {
				t.Errorf("the caller is %+v", caller)
			}
			s.Time = made.Expires
			operated.Refused(t, s.Do(made.JWT, "GET", "/v1/caller", ""), problem.Unauthenticated)
		})
	}
}

func TestOnlyAdministratorsMakeJWTs(t *testing.T) {
	s, root := newSigner(t)
	made := operated.Read[JWT](t, s.Do(root, "POST", jwts, `{"name":"x","role":"edit"}`), http.StatusCreated)
	for name, c := range map[string]struct {
		caller, path, body string
		want               problem.Code
	}{
		"an administrator of the tenant":   {s.Token("1", "tenant:acme:admin"), jwts, "", ""},
		"an administrator of another one":  {s.Token("2", "tenant:beta:admin"), jwts, "", problem.Forbidden},
		"who edits the tenant":             {s.Token("3", "tenant:acme:edit"), jwts, "", problem.Forbidden},
		"who edits the project":            {s.Token("4", "project:acme/shop:edit"), jwts, "", problem.Forbidden},
		"who deploys the project":          {s.Token("5", "project:acme/shop:deploy"), jwts, "", problem.Forbidden},
		"a JWT of the project":             {made.JWT, jwts, "", problem.Forbidden},
		"nobody":                           {"", jwts, "", problem.Unauthenticated},
		"a project that is not there":      {root, "/v1/projects/acme/none/jwt", "", problem.NotFound},
		"one that is not there, by anyone": {s.Token("6", "tenant:acme:view"), "/v1/projects/acme/none/jwt", "", problem.NotFound},
		"a role of a tenant":               {root, jwts, `{"name":"x","role":"admin"}`, problem.Invalid},
		"a role with a tenant":             {root, jwts, `{"name":"x","role":"tenant:admin"}`, problem.Invalid},
		"no name":                          {root, jwts, `{"name":"","role":"view"}`, problem.Invalid},
		"a scope of its own":               {root, jwts, `{"name":"x","role":"view","scope":"admin"}`, problem.Invalid},
		"a long audience":                  {root, jwts, `{"name":"x","role":"view","audience":"` + strings.Repeat("a", 201) + `"}`, problem.Invalid},
		"a large body":                     {root, jwts, `{"name":"` + strings.Repeat("a", 16<<10) + `","role":"view"}`, problem.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			body := c.body
			if body == "" {
				body = `{"name":"x","role":"view"}`
			}
			answer := s.Do(c.caller, "POST", c.path, body)
			if c.want != "" {
				operated.Refused(t, answer, c.want)
				return
			}
			operated.Read[JWT](t, answer, http.StatusCreated)
		})
	}
	// The manager does not take one that is for somebody else.
	other := operated.Read[JWT](t, s.Do(root, "POST", jwts, `{"name":"x","role":"view","audience":"registry.example.com"}`), http.StatusCreated)
	operated.Refused(t, s.Do(other.JWT, "GET", "/v1/caller", ""), problem.Unauthenticated)
	unsigned, o := newTokens(t, nil)
	o.Project = func(context.Context, string, string) error { return nil }
	if p := operated.Refused(t, unsigned.Do(unsigned.Token("root", "admin"), "POST", jwts, `{"name":"x","role":"view"}`), problem.Unavailable); !strings.Contains(p.Detail, "KEY_FILE") {
		t.Errorf("without a key: %+v", p)
	}
}

// TestATenantGetsSoManyJWTsADayAndThenOneByOne: those of others do not count.
func TestATenantGetsSoManyJWTsADayAndThenOneByOne(t *testing.T) {
	s, root := newSigner(t)
	const body = `{"name":"x","role":"view"}`
	for i := range store.MaxTokensOfDay {
		if answer := s.Do(root, "POST", jwts, body); answer.Code != http.StatusCreated {
			t.Fatalf("number %d: %d %s", i, answer.Code, answer.Body)
		}
	}
	answer := s.Do(root, "POST", jwts, body)
	operated.Refused(t, answer, problem.TooManyRequests)
	wait, err := strconv.Atoi(answer.Header().Get("Retry-After"))
	if err != nil || wait < 86 || wait > 87 {
		t.Errorf("again after %q seconds", answer.Header().Get("Retry-After"))
	}
	operated.Read[JWT](t, s.Do(root, "POST", "/v1/projects/beta/shop/jwt", body), http.StatusCreated)
	s.Time = s.Time.Add(time.Duration(wait) * time.Second)
	operated.Read[JWT](t, s.Do(root, "POST", jwts, body), http.StatusCreated)
	operated.Refused(t, s.Do(root, "POST", jwts, body), problem.TooManyRequests)
}

func TestThePublicKeysAreForEverybody(t *testing.T) {
	s, _ := newSigner(t)
	answer := s.Do("", "GET", "/.well-known/jwks.json", "")
	set := operated.Read[struct{ Keys []map[string]any }](t, answer, http.StatusOK)
	if len(set.Keys) == 0 || answer.Header().Get("Cache-Control") != "public, max-age=300" {
		t.Errorf("%s %s", answer.Header().Get("Cache-Control"), answer.Body)
	}
	for _, key := range set.Keys {
		if _, private := key["d"]; private || key["kty"] == nil {
			t.Errorf("a key is published as %v", key)
		}
	}
}
