package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/internal/store"
)

func payerOf(name, uid string, created time.Time, list string) store.Payer {
	return store.Payer{TenantRef: store.TenantRef{Name: name, UID: uid, Created: created}, PriceList: list}
}

func wantPayers(t *testing.T, s store.Store, name string, want ...store.Payer) {
	t.Helper()
	got, err := s.ListPayers(t.Context(), name)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v: -want +payers of %q:\n%s", err, name, diff)
	}
}

func recordPayers(t *testing.T, s store.Store, at time.Time, all ...store.Payer) {
	t.Helper()
	if err := s.RecordPayers(t.Context(), all, at); err != nil {
		t.Fatal(err)
	}
}

// payers: whoever is not recorded any more is gone from then on, until it is there again, and keeps what it named last.
func payers(t *testing.T, s store.Store) {
	acme, beta := payerOf("acme", "1", now.Add(-day), "standard"), payerOf("beta", "2", now, "")
	recordPayers(t, s, now, beta, acme)
	wantPayers(t, s, "", acme, beta)
	acme.PriceList = "other"
	recordPayers(t, s, later, acme, beta)
	wantPayers(t, s, "acme", acme)
	// One was there only between two rounds.
	short := payerOf("acme", "3", later, "")
	short.Gone = later.Add(time.Hour)
	recordPayers(t, s, later.Add(time.Hour), beta, short)
	acme.Gone = later.Add(time.Hour)
	wantPayers(t, s, "", acme, short, beta)
	again := short
	again.Gone = later.Add(3 * time.Hour)
	recordPayers(t, s, later.Add(2*time.Hour), beta, again)
	wantPayers(t, s, "acme", acme, short)
	acme.Gone = time.Time{}
	recordPayers(t, s, later.Add(2*time.Hour), beta, acme)
	wantPayers(t, s, "", acme, short, beta)
	wantPayers(t, s, "gamma")
}

// payersEnd: one that is gone stays for as long as usage of it is kept, and one that exists for ever.
func payersEnd(t *testing.T, s store.Store) {
	acme, beta := payerOf("acme", "1", now, ""), payerOf("beta", "2", now, "")
	recordPayers(t, s, now, acme, beta)
	recordPayers(t, s, later, beta)
	acme.Gone = later
	for _, c := range []struct {
		at   time.Time
		left []store.Payer
	}{{later.Add(store.KeepUsage - time.Second), []store.Payer{acme, beta}}, {later.Add(store.KeepUsage), []store.Payer{beta}}} {
		if err := s.Sweep(t.Context(), c.at); err != nil {
			t.Fatal(err)
		}
		wantPayers(t, s, "", c.left...)
	}
}

// alerts: one with a key that was recorded before writes nothing, until usage of that time is not kept any more.
func alerts(t *testing.T, s store.Store) {
	addWebhookOf(t, s, store.TenantRef{Name: "acme", UID: "uid"}, "a", now)
	record := func(key, id string, want bool) {
		t.Helper()
		m := messageOf("budget/acme", id)
		m.TenantUID = "uid"
		if first, err := s.RecordAlert(t.Context(), key, m); err != nil || first != want {
			t.Errorf("%v: %s is the first one with %s: %t", err, id, key, first)
		}
	}
	record("uid/80", "1", true)
	record("uid/80", "2", false)
	record("uid/100", "3", true)
	for _, at := range []time.Time{now.Add(store.KeepUsage - time.Second), now.Add(store.KeepUsage)} {
		if err := s.Sweep(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		record("uid/80", "later", at.Equal(now.Add(store.KeepUsage)))
	}
	if got := messagesOf(t, s, "a"); !slices.Equal(got, []string{"1", "3", "later"}) {
		t.Errorf("the messages are %q", got)
	}
}
