// Package storetest has the tests that every store passes.
package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/internal/store"
)

// tests are those of one manager.
var tests = map[string]func(*testing.T, store.Store){
	"a webhook is kept with its secrets":                           webhooks,
	"messages to a webhook are claimed, in order for each object":  outbox,
	"a webhook is changed, and keeps no secret that is old":        webhookChanges,
	"a tenant has at most so many webhooks":                        tooManyWebhooks,
	"a message is sent again, or written for one webhook":          redelivery,
	"what is kept of messages is bounded":                          outboxIsBounded,
	"a change of an object is recorded once, with its messages":    observations,
	"a new tenant has no webhook of an earlier one":                newTenant,
	"a webhook is of a tenant with a UID, whatever the clocks say": tenantsByUID,
	"webhooks of a tenant that is gone are removed":                tenantIsGone,
	"webhooks of an earlier tenant are removed":                    earlierIsGone,
	"a message that is sent again is not removed at its end":       prunedByEnd,
	"a message waits for an older one that is sent again":          sentAgainMeanwhile,
	"what is parked is recorded once in an hour":                   parkedIsLogged,
	"what the manager cannot send is tried for a day from then":    held,
	"a webhook that is gone is disabled":                           gone,
	"what waits for a webhook is bounded":                          fullOutbox,
	"a secret that signs no more is removed":                       webhookSweep,
	"a kubeconfig ends with its last token":                        kubeconfigs,
	"kubeconfigs are listed by their owners, and by their ends":    kubeconfigLists,
	"a tenant has at most so many kubeconfigs":                     tooManyKubeconfigs,
	"a token is found by its hash as it was stored":                tokenIsFound,
	"a write that fails leaves nothing":                            failedWriteLeavesNothing,
	"lists are in order, in pages and of one tenant":               listsArePaged,
	"a revocation is of the own tenant, once":                      revocation,
	"the first administrator is one, by one code":                  firstAdministrator,
	"the last use never goes back":                                 lastUse,
	"a tenant has at most so many valid tokens":                    tokensOfTenant,
	"a request is kept once, with its answer":                      requests,
	"a write that is made elsewhere is recorded":                   recorded,
	"keys that sign follow each other":                             signingKeys,
	"a secret is replaced as it was read":                          sealed,
	"what ended long ago is removed":                               sweep,
	"a tenant gets at most so many tokens in a day":                tokensOfDay,
	"of requests without an answer the newest stay":                unanswered,
	"what no database can keep is kept in part":                    strangeText,
	"a minute of usage is added once":                              minutes,
	"usage is listed by place and hour":                            usageIsListed,
	"usage that others measure is set":                             foreignUsage,
	"a tenant whose usage is set has an event if it changed":       onlyWhatChanged,
	"what was measured is not set":                                 measuredStays,
	"many places are measured":                                     manyPlaces,
	"old usage is removed":                                         oldUsage,
	"a month has one invoice, by the next number":                  invoices,
	"a credit note knows those before it":                          creditNotes,
	"an invoice that fails leaves no gap":                          noGaps,
	"an invoice has one message to webhooks":                       invoiceMessages,
	"who pays is kept while usage of it may be":                    payers,
	"who pays is removed with the usage":                           payersEnd,
	"an alert is recorded once, with its message":                  alerts,
	"invoices stay": invoicesStay,
}

// Run runs the tests, each on a new store. open opens the same store again when it is called again in the same test.
func Run(t *testing.T, open func(*testing.T) store.Store) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			defer closeStore(t, s)
			test(t, s)
		})
	}
	for name, test := range managers {
		t.Run(name, func(t *testing.T) {
			both := [2]store.Store{open(t), open(t)}
			defer closeStore(t, both[0])
			defer closeStore(t, both[1])
			test(t, both)
		})
	}
	t.Run("a store that is closed says so and keeps its data", func(t *testing.T) { closed(t, open(t), open) })
}

func closeStore(t *testing.T, s store.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("closing the store: %v", err)
	}
}

func tokenIsFound(t *testing.T, s store.Store) {
	want := create(t, s, "acme", "a")
	create(t, s, "", "b")
	got, err := s.TokenByHash(t.Context(), want.Hash)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-stored +found:\n%s", diff)
	}
	for _, hash := range [][]byte{nil, {}, []byte("hash of"), []byte("hash of a ")} {
		if _, err := s.TokenByHash(t.Context(), hash); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%q: %v", hash, err)
		}
	}
	events, err := s.ListEvents(t.Context(), "acme", 0, 10)
	if err != nil || len(events) != 1 {
		t.Fatalf("%v: %v", err, events)
	}
	recorded := eventOf("acme", "a")
	recorded.ID = events[0].ID
	if diff := cmp.Diff(recorded, events[0]); diff != "" {
		t.Errorf("-event +recorded:\n%s", diff)
	}
}

func failedWriteLeavesNothing(t *testing.T, s store.Store) {
	create(t, s, "acme", "a")
	same := tokenOf("acme", "other")
	same.Hash = tokenOf("acme", "a").Hash
	for _, again := range []store.Token{tokenOf("acme", "a"), same} {
		if err := s.CreateToken(t.Context(), again, eventOf("acme", "again")); err == nil {
			t.Errorf("%s is stored twice", again.ID)
		}
	}
	if diff := cmp.Diff([]string{"createToken a"}, objects(t, s, "")); diff != "" {
		t.Errorf("-want +events:\n%s", diff)
	}
}

func listsArePaged(t *testing.T, s store.Store) {
	for i := range 10 {
		create(t, s, []string{"acme", "beta"}[i%2], fmt.Sprintf("%02d", 9-i))
	}
	for of, want := range map[string][]string{
		"acme": {"01", "03", "05", "07", "09"}, "gone": nil, "": {"00", "01", "02", "03", "04", "05", "06", "07", "08", "09"},
	} {
		var got []string
		for after := ""; ; {
			some, err := s.ListTokens(t.Context(), of, after, 3)
			if err != nil {
				t.Fatal(err)
			}
			for _, token := range some {
				got, after = append(got, token.ID), token.ID
			}
			if len(some) < 3 {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("tokens of %q (-want +got):\n%s", of, diff)
		}
	}
	first, err := s.ListEvents(t.Context(), "beta", 0, 2)
	if err != nil || len(first) != 2 {
		t.Fatalf("%v: %v", err, first)
	}
	second, err := s.ListEvents(t.Context(), "beta", first[1].ID, 9)
	if err != nil || len(second) != 3 || second[0].ID >= first[1].ID || first[0].Object != "00" || second[2].Object != "08" {
		t.Errorf("%v: %v then %v", err, first, second)
	}
}

func revocation(t *testing.T, s store.Store) {
	a := create(t, s, "acme", "a")
	at := now.Add(time.Minute)
	revoke := func(of, id string) error {
		return s.RevokeToken(t.Context(), of, id, store.Event{At: at, Actor: "root", Action: "revokeToken", Object: id})
	}
	for _, other := range [][2]string{{"beta", "a"}, {"acme", "b"}, {"", "b"}} {
		if err := revoke(other[0], other[1]); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s revokes %s: %v", other[0], other[1], err)
		}
	}
	for range 2 {
		if err := revoke("acme", "a"); err != nil {
			t.Fatal(err)
		}
		at = at.Add(time.Minute) // The second one changes nothing.
	}
	if got, err := s.TokenByHash(t.Context(), a.Hash); err != nil || !got.Revoked.Equal(now.Add(time.Minute)) {
		t.Errorf("%v: revoked at %s", err, got.Revoked)
	}
	if diff := cmp.Diff([]string{"revokeToken a", "createToken a"}, objects(t, s, "acme")); diff != "" {
		t.Errorf("-want +events:\n%s", diff)
	}
}

func tokensOfTenant(t *testing.T, s store.Store) {
	for i := range store.MaxTokensOfTenant {
		create(t, s, "acme", fmt.Sprint(i))
	}
	one := func(tenant, id string, at time.Time) error {
		token := tokenOf(tenant, id)
		token.Created = at
		return s.CreateToken(t.Context(), token, eventOf(tenant, id))
	}
	if err := one("acme", "more", now); !errors.Is(err, store.ErrTooMany) {
		t.Errorf("one more: %v", err)
	}
	if found := objects(t, s, ""); len(found) != store.MaxTokensOfTenant {
		t.Errorf("there are %d events", len(found))
	}
	for name, err := range map[string]error{"another tenant": one("beta", "b", now), "the platform": one("", "p", now), "when the others have expired": one("acme", "later", now.Add(time.Hour))} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func firstAdministrator(t *testing.T, s store.Store) {
	first, second := []byte("first"), []byte("second")
	claim := func(code []byte, id string, at time.Time) error {
		token := tokenOf("", id)
		token.Created, token.Expires = at, at.Add(time.Hour)
		return s.ClaimSetup(t.Context(), code, token, store.Event{At: at, Actor: "setup", Action: "claimSetup", Object: id})
	}
	if err := claim(first, "early", now); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("without an offer: %v", err)
	}
	for _, code := range [][]byte{first, second} {
		if err := s.OfferSetup(t.Context(), code, now, now.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	create(t, s, "acme", "of-a-tenant") // It administers nothing.
	if err := claim(first, "replaced", now); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("by the code before: %v", err)
	}
	if err := claim(second, "late", now.Add(time.Minute)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("by an expired code: %v", err)
	}
	if err := claim(second, "admin", now.Add(time.Second)); err != nil {
		t.Errorf("by the code: %v", err)
	}
	if err := claim(second, "another", now.Add(time.Second)); !errors.Is(err, store.ErrAdministrated) {
		t.Errorf("a second time: %v", err)
	}
	if err := s.OfferSetup(t.Context(), first, now.Add(time.Second), now.Add(time.Hour)); !errors.Is(err, store.ErrAdministrated) {
		t.Errorf("an offer while there is an administrator: %v", err)
	}
	if diff := cmp.Diff([]string{"claimSetup admin", "createToken of-a-tenant"}, objects(t, s, "")); diff != "" {
		t.Errorf("-want +events:\n%s", diff)
	}
	// The token of the administrator expires.
	later := now.Add(2 * time.Hour)
	if err := s.OfferSetup(t.Context(), first, later, later.Add(time.Minute)); err != nil {
		t.Errorf("an offer after the token expired: %v", err)
	}
	if err := claim(first, "next", later); err != nil {
		t.Errorf("a claim after the token expired: %v", err)
	}
}

func lastUse(t *testing.T, s store.Store) {
	a := create(t, s, "acme", "a")
	for _, at := range []time.Time{now.Add(time.Hour), now.Add(time.Minute)} {
		if err := s.UseToken(t.Context(), "a", at); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.TokenByHash(t.Context(), a.Hash); err != nil || !got.LastUsed.Equal(now.Add(time.Hour)) {
		t.Errorf("%v: last used at %s", err, got.LastUsed)
	}
}

func closed(t *testing.T, s store.Store, open func(*testing.T) store.Store) {
	a := create(t, s, "acme", "a")
	if err := errors.Join(s.Ping(t.Context()), s.Close()); err != nil {
		t.Fatal(err)
	}
	_, read := s.TokenByHash(t.Context(), a.Hash)
	for name, err := range map[string]error{"Ping": s.Ping(t.Context()), "a read": read, "a write": s.CreateToken(t.Context(), tokenOf("acme", "b"), eventOf("acme", "b"))} {
		if err == nil || errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s of a closed store: %v", name, err)
		}
	}
	everyCallFails(t, s)
	again := open(t)
	if _, err := again.TokenByHash(t.Context(), a.Hash); err != nil {
		t.Errorf("after it was opened again: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func requests(t *testing.T, s store.Store) {
	begin := func(caller, hash string, at time.Time) store.Request {
		t.Helper()
		kept, err := s.BeginRequest(t.Context(), store.Request{Caller: caller, Key: "k", Hash: []byte(hash), Created: at, Expires: at.Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		return kept
	}
	first := begin("a", "one", now)
	if diff := cmp.Diff(store.Request{Caller: "a", Key: "k", Hash: []byte("one"), Created: now, Expires: now.Add(time.Hour)}, first); diff != "" {
		t.Errorf("-want +kept:\n%s", diff)
	}
	if other := begin("b", "two", now); string(other.Hash) != "two" {
		t.Errorf("another caller has %q", other.Hash)
	}
	if again := begin("a", "two", now.Add(time.Minute)); string(again.Hash) != "one" || !again.Created.Equal(now) {
		t.Errorf("again it is %+v", again)
	}
	for range 2 { // Only the first answer counts, and is recorded.
		first.Answer = append([]byte("answer"), first.Answer...)
		if err := s.FinishRequest(t.Context(), first, eventOf("acme", "app")); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.ForgetRequest(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if again := begin("a", "one", now.Add(time.Minute)); string(again.Answer) != "answer" {
		t.Errorf("the answer is %q", again.Answer)
	}
	if got := objects(t, s, "acme"); len(got) != 1 {
		t.Errorf("recorded are %q", got)
	}
	refused := begin("b", "two", now)
	if err := s.ForgetRequest(t.Context(), refused); err != nil {
		t.Fatal(err)
	}
	if free := begin("b", "three", now); string(free.Hash) != "three" {
		t.Errorf("a forgotten key has %q", free.Hash)
	}
	if expired := begin("a", "three", now.Add(time.Hour)); string(expired.Hash) != "three" || expired.Answer != nil {
		t.Errorf("an expired key has %+v", expired)
	}
}

func recorded(t *testing.T, s store.Store) {
	want := eventOf("acme", "app/acme/shop/web")
	want.Commit = "0123456789012345678901234567890123456789"
	if err := s.RecordEvent(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	events, err := s.ListEvents(t.Context(), "acme", 0, 10)
	if err != nil || len(events) != 1 {
		t.Fatalf("%v: %v", err, events)
	}
	want.ID = events[0].ID
	if diff := cmp.Diff(want, events[0]); diff != "" {
		t.Errorf("-event +recorded:\n%s", diff)
	}
}

// strangeText: callers can send what PostgreSQL refuses in a text.
func strangeText(t *testing.T, s store.Store) {
	token, event := tokenOf("acme", "a"), eventOf("acme", "a\x00b\xffc")
	token.Name = "CI\x00\xc3"
	if err := s.CreateToken(t.Context(), token, event); err != nil {
		t.Fatal(err)
	}
	if got, err := s.TokenByHash(t.Context(), token.Hash); err != nil || got.Name != "CI\uFFFD\uFFFD" {
		t.Errorf("%v: the name is %q", err, got.Name)
	}
	if got := objects(t, s, "acme"); len(got) != 1 || got[0] != "createToken a\uFFFDb\uFFFDc" {
		t.Errorf("the events are about %q", got)
	}
	if all, err := s.ListTokens(t.Context(), "\x00", "\xff", 5); err != nil || len(all) > 0 {
		t.Errorf("%v: %v", err, all)
	}
}
