package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kubeop/kubeop/internal/store"
)

const day = 24 * time.Hour

// sweep: more tokens than one transaction removes, created and revoked in a loop, leave nothing; those that are valid, or ended lately, the events of writes, and those
// about tokens that wrote stay.
func sweep(t *testing.T, s store.Store) {
	for i := range 600 {
		id := fmt.Sprint("gone", i)
		token := tokenOf("acme", id)
		token.Created = now.Add(time.Duration(i) * time.Hour)
		if err := errors.Join(s.CreateToken(t.Context(), token, eventOf("acme", "token/"+id)), s.RevokeToken(t.Context(), "acme", id, store.Event{At: now, Object: "token/" + id})); err != nil {
			t.Fatal(err)
		}
	}
	for id, token := range map[string]store.Token{"valid": {Expires: now.Add(90 * day)}, "lately": {Expires: now.Add(5 * day)}, "expired": {Expires: now.Add(day)}} {
		expires := token.Expires
		token = tokenOf("beta", id)
		token.Expires = expires
		if err := s.CreateToken(t.Context(), token, eventOf("beta", "token/"+id)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.RecordEvent(t.Context(), store.Event{At: now, Actor: "gone2", Action: "createApp", Object: "app/acme/shop/web", Tenant: "acme"}); err != nil {
		t.Fatal(err)
	}
	for _, caller := range []string{"gone1", "valid"} {
		if _, err := s.BeginRequest(t.Context(), store.Request{Caller: caller, Key: "k", Hash: []byte(caller), Created: now, Expires: now.Add(90 * day)}); err != nil {
			t.Fatal(err)
		}
	}
	wantTokens(t, s, now.Add(29*day), 603)
	wantTokens(t, s, now.Add(31*day), 2)
	if got := objects(t, s, ""); !slices.Equal(sorted(got), []string{" token/gone2", "createApp app/acme/shop/web", "createToken token/gone2", "createToken token/lately", "createToken token/valid"}) {
		t.Errorf("the events are about %q", got)
	}
	for caller, kept := range map[string]bool{"gone1": false, "valid": true} {
		r, err := s.BeginRequest(t.Context(), store.Request{Caller: caller, Key: "k", Hash: []byte("another"), Created: now, Expires: now.Add(90 * day)})
		if err != nil || (string(r.Hash) == caller) != kept {
			t.Errorf("the request of %s is %q, %v", caller, r.Hash, err)
		}
	}
}

func wantTokens(t *testing.T, s store.Store, at time.Time, want int) {
	t.Helper()
	if err := s.Sweep(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	left, err := s.ListTokens(t.Context(), "", "", 1000)
	if err != nil || len(left) != want {
		t.Errorf("%d tokens are left, want %d: %v", len(left), want, err)
	}
}

func sorted(all []string) []string {
	slices.Sort(all)
	return all
}

// tokensOfDay: also if none of them is valid any more.
func tokensOfDay(t *testing.T, s store.Store) {
	add := func(tenant string, i int, at time.Time) error {
		id := fmt.Sprint(tenant, i)
		token := tokenOf(tenant, id)
		token.Created, token.Expires = at, at // It is never valid.
		return s.CreateToken(t.Context(), token, eventOf(tenant, "token/"+id))
	}
	for i := range store.MaxTokensOfDay {
		if err := add("acme", i, now); err != nil {
			t.Fatal(err)
		}
	}
	if err := add("acme", -1, now.Add(day-time.Minute)); !errors.Is(err, store.ErrTooOften) {
		t.Errorf("one more: %v", err)
	}
	if err := errors.Join(add("beta", 0, now), add("acme", -2, now.Add(day))); err != nil {
		t.Errorf("another tenant, and a day later: %v", err)
	}
}

func unanswered(t *testing.T, s store.Store) {
	begin := func(key string, at time.Time, hash string) store.Request {
		t.Helper()
		kept, err := s.BeginRequest(t.Context(), store.Request{Caller: "a", Key: key, Hash: []byte(hash), Created: at, Expires: at.Add(7 * day)})
		if err != nil {
			t.Fatal(err)
		}
		return kept
	}
	answered := begin("answered", now, "h")
	answered.Answer = []byte("yes")
	if err := s.FinishRequest(t.Context(), answered, store.Event{}); err != nil {
		t.Fatal(err)
	}
	for i := range store.MaxUnanswered + 1 {
		begin(fmt.Sprint(i), now.Add(time.Duration(i)*time.Second), "h")
	}
	event := store.Event{At: now, Action: "patchApp", Object: "app/acme/shop/web", Tenant: "acme"}
	for range 2 { // Of the one that is answered already, nothing is recorded.
		if err := s.FinishRequest(t.Context(), answered, event); err != nil {
			t.Fatal(err)
		}
	}
	if got := objects(t, s, "acme"); len(got) > 0 {
		t.Errorf("there are events about %q", got)
	}
	forgotten := store.Request{Caller: "a", Key: "0", Hash: []byte("h"), Answer: []byte("late")}
	if err := s.FinishRequest(t.Context(), forgotten, event); err != nil {
		t.Fatal(err)
	}
	if got := objects(t, s, "acme"); !slices.Equal(got, []string{"patchApp app/acme/shop/web"}) {
		t.Errorf("of one that was forgotten before its end there are events about %q", got)
	}
	later := now.Add(time.Hour)
	if kept := begin("answered", later, "other"); string(kept.Answer) != "yes" {
		t.Errorf("the one with an answer is %+v", kept)
	}
	if kept := begin("1", later, "other"); string(kept.Hash) != "h" {
		t.Error("one of the newest is forgotten")
	}
	if kept := begin("0", later, "other"); string(kept.Hash) != "other" {
		t.Error("the oldest is kept")
	}
}
