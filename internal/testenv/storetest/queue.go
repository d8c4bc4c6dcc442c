package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/internal/store"
)

func redeliver(t *testing.T, s store.Store, id int64, at time.Time) {
	t.Helper()
	e := eventOf("", "webhook/a")
	e.At = at
	if _, err := s.Redeliver(t.Context(), "a", id, e); err != nil {
		t.Fatal(err)
	}
}

// prunedByEnd: of the messages that were delivered those stay that were so last. An old one that is sent again is not removed by its own success.
func prunedByEnd(t *testing.T, s store.Store) {
	addWebhook(t, s, "acme", "a", "*")
	enqueueAll(t, s, messageOf("app/first", "first"))
	_, all := claim(t, s, "one", now)
	finish(t, s, all[0], store.Parked, "one")
	first := all[0]
	messages := make([]store.Message, store.MaxDelivered)
	for i := range messages {
		messages[i] = messageOf(fmt.Sprint("app/", i), fmt.Sprint("d", i))
	}
	enqueueAll(t, s, messages...)
	for _, all = claim(t, s, "two", now); len(all) > 0; _, all = claim(t, s, "two", now) {
		for _, d := range all {
			finish(t, s, d, store.Delivered, "two")
		}
	}
	redeliver(t, s, first.ID, later)
	_, all = claim(t, s, "three", later)
	all[0].Tried = later.Add(time.Second)
	finishAs(t, s, all[0], store.Delivered, "three")
	got := deliveryStates(t, s)
	if len(got) != store.MaxDelivered || got[0] != "first delivered" || slices.Contains(got, "d0 delivered") {
		t.Errorf("%d are kept, from %q", len(got), got[:2])
	}
}

// sentAgainMeanwhile: an attempt fails after an older message about its object was sent again. It waits for that one.
func sentAgainMeanwhile(t *testing.T, s store.Store) {
	addWebhook(t, s, "acme", "a", "*")
	enqueueAll(t, s, messageOf("app/web", "w1"), messageOf("app/web", "w2"))
	_, first := claim(t, s, "one", now)
	finish(t, s, first[0], store.Parked, "one")
	ids, second := claim(t, s, "two", later)
	if !slices.Equal(ids, []string{"w2"}) {
		t.Fatalf("claimed %q", ids)
	}
	redeliver(t, s, first[0].ID, later)
	second[0].Due = later
	finish(t, s, second[0], store.Waiting, "two")
	at := later.Add(time.Hour)
	ids, again := claim(t, s, "three", at)
	if !slices.Equal(ids, []string{"w1"}) {
		t.Fatalf("claimed are %q at once", ids)
	}
	finish(t, s, again[0], store.Delivered, "three")
	if ids, _ := claim(t, s, "four", at); !slices.Equal(ids, []string{"w2"}) {
		t.Errorf("then are claimed %q", ids)
	}
}

// parkedIsLogged once in an hour for each webhook.
func parkedIsLogged(t *testing.T, s store.Store) {
	addWebhook(t, s, "acme", "a", "*")
	for i, c := range []struct {
		after  time.Duration
		events int
	}{{0, 1}, {time.Minute, 1}, {store.ParkedEvery - time.Second, 1}, {store.ParkedEvery, 2}, {store.ParkedEvery + time.Minute, 2}} {
		enqueueAll(t, s, messageOf("app/web", fmt.Sprint("m", i)))
		_, all := claim(t, s, "one", now)
		all[0].Tried = now.Add(c.after)
		finishAs(t, s, all[0], store.Parked, "one")
		events := slices.DeleteFunc(objects(t, s, "acme"), func(e string) bool { return e != "parkDelivery webhook/a" })
		if len(events) != c.events {
			t.Errorf("after %s there are %d events, want %d", c.after, len(events), c.events)
		}
	}
}

// held: what waits for a webhook to which the manager cannot send is tried for a day from then on, and no attempt counts.
func held(t *testing.T, s store.Store) {
	addWebhook(t, s, "acme", "a", "*")
	addWebhook(t, s, "acme", "b", "*")
	lately := messageOf("app/api", "lately")
	lately.At = now.Add(90 * time.Minute)
	enqueueAll(t, s, messageOf("app/web", "w1"), messageOf("app/web", "w2"), lately)
	at := now.Add(2 * time.Hour)
	_, all := claim(t, s, "one", at)
	d := all[0]
	d.Due = at.Add(time.Minute)
	if err := s.FinishAttempt(t.Context(), store.Outcome{Delivery: d, Claim: "one", Held: at}); err != nil {
		t.Fatal(err)
	}
	for webhook, want := range map[string]map[string]time.Time{"a": {"w1": at, "w2": at, "lately": lately.At}, "b": {"w1": now, "w2": now, "lately": lately.At}} {
		found, err := s.ListDeliveries(t.Context(), webhook, store.Waiting, 0, 10)
		got := map[string]time.Time{}
		for _, d := range found {
			got[d.Message.ID] = d.Since
			if d.Attempts != 0 || !d.Tried.IsZero() {
				t.Errorf("an attempt counts: %+v", d)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v: %s: -want +since:\n%s", err, webhook, diff)
		}
	}
}
