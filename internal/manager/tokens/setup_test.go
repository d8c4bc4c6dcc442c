package tokens

import (
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/token"
	"github.com/kubeop/kubeop/internal/testenv/operated"
)

func claim(code string) string { return `{"name":"me","code":"` + code + `"}` }

func TestACodeMakesOneAdministratorWithinAnHour(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration
		code  func(offered string) string
		want  problem.Code
	}{
		"at once":           {0, func(code string) string { return code }, ""},
		"just before":       {time.Hour - time.Second, func(code string) string { return code }, ""},
		"after an hour":     {time.Hour, func(code string) string { return code }, problem.Unauthenticated},
		"another code":      {0, func(string) string { return token.NewCode() }, problem.Unauthenticated},
		"its hash":          {0, func(code string) string { return hex.EncodeToString(token.Hash(code)) }, problem.Unauthenticated},
		"a part of it":      {0, func(code string) string { return code[:len(code)-1] }, problem.Unauthenticated},
		"no code":           {0, func(string) string { return "" }, problem.Unauthenticated},
		"with a space":      {0, func(code string) string { return code + " " }, problem.Unauthenticated},
		"SQL for a code":    {0, func(string) string { return "' OR 1=1 --" }, problem.Unauthenticated},
		"one that is large": {0, func(code string) string { return code + strings.Repeat("a", 100) }, problem.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			s, o := newTokens(t, nil)
			code, expires, err := o.OfferSetup(t.Context())
			if err != nil || code == "" || !expires.Equal(s.Time.Add(time.Hour)) {
				t.Fatalf("%q, %s, %v", code, expires, err)
			}
			s.Time = s.Time.Add(c.after)
			answer := s.Do("", "POST", "/v1/setup", claim(c.code(code)))
			if c.want != "" {
				operated.Refused(t, answer, c.want)
				return
			}
			made := operated.Read[created](t, answer, http.StatusCreated)
			if diff := cmp.Diff([]string{"admin"}, made.Scopes); diff != "" || made.CreatedBy != bySetup || !made.Expires.Equal(s.Time.Add(defaultLife)) {
				t.Errorf("by %s until %s (-want +got):\n%s", made.CreatedBy, made.Expires, diff)
			}
			operated.Read[Token](t, s.Do(made.Secret, "GET", "/v1/caller", ""), http.StatusOK)
			operated.Refused(t, s.Do("", "POST", "/v1/setup", claim(code)), problem.Conflict)
			events, err := s.Store.ListEvents(t.Context(), "", 0, 10)
			if err != nil || len(events) != 1 || events[0].Actor != bySetup || events[0].Action != "claimSetup" || events[0].Object != "token/"+made.ID {
				t.Errorf("%v: %+v", err, events)
			}
		})
	}
}

// TestACodeIsOfferedWhileThereIsNoAdministrator: also after the token of the last one ended; and a new one ends the one before.
func TestACodeIsOfferedWhileThereIsNoAdministrator(t *testing.T) {
	s, o := newTokens(t, nil)
	s.Token("acme", "tenant:acme:admin") // It administers only its tenant.
	first, _, err := o.OfferSetup(t.Context())
	if err != nil || first == "" {
		t.Fatalf("%q, %v", first, err)
	}
	second, _, err := o.OfferSetup(t.Context())
	if err != nil || second == "" || second == first {
		t.Fatalf("%q, %v", second, err)
	}
	operated.Refused(t, s.Do("", "POST", "/v1/setup", claim(first)), problem.Unauthenticated)
	s.Token("root", "admin") // It is valid for an hour.
	if code, _, err := o.OfferSetup(t.Context()); code != "" || err != nil {
		t.Errorf("with an administrator: %q, %v", code, err)
	}
	operated.Refused(t, s.Do("", "POST", "/v1/setup", claim(second)), problem.Conflict)
	s.Time = s.Time.Add(time.Hour)
	if code, _, err := o.OfferSetup(t.Context()); code == "" || err != nil {
		t.Errorf("after the token ended: %q, %v", code, err)
	}
}
