package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/internal/store"
)

func messageOf(object, id string) store.Message {
	return store.Message{ID: id, Type: "app.failed", Tenant: "acme", Object: object, At: now, Body: []byte(`{"id":"` + id + `"}`)}
}

func enqueueAll(t *testing.T, s store.Store, messages ...store.Message) {
	t.Helper()
	changes := make([]store.StateChange, 0, len(messages))
	for _, m := range messages {
		changes = append(changes, store.StateChange{Object: "message/" + m.ID, To: "1", Messages: []store.Message{m}})
	}
	if others, err := s.RecordChanges(t.Context(), changes); err != nil || len(others) > 0 {
		t.Errorf("%v: %q were recorded before", err, others)
	}
}

// claim returns the ids of the messages that are claimed for the webhook a, and the deliveries.
func claim(t *testing.T, s store.Store, by string, at time.Time) (ids []string, all []store.Delivery) {
	t.Helper()
	all, err := s.ClaimDeliveries(t.Context(), "a", store.Claim{By: by, Now: at, Until: at.Add(time.Minute)}, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		ids = append(ids, d.Message.ID)
	}
	return ids, all
}

// finish ends an attempt of who claimed it.
func finish(t *testing.T, s store.Store, d store.Delivery, state store.DeliveryState, by string) {
	t.Helper()
	d.Tried = later
	finishAs(t, s, d, state, by)
}

// finishAs is finish with the times that the delivery has.
func finishAs(t *testing.T, s store.Store, d store.Delivery, state store.DeliveryState, by string) {
	t.Helper()
	d.State = state
	d.Attempts++
	if err := s.FinishAttempt(t.Context(), store.Outcome{Delivery: d, Claim: by}); err != nil {
		t.Fatal(err)
	}
}

func deliveryStates(t *testing.T, s store.Store) (all []string) {
	t.Helper()
	found, err := s.ListDeliveries(t.Context(), "a", "", 0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range slices.Backward(found) {
		all = append(all, d.Message.ID+" "+string(d.State))
	}
	return all
}

func outbox(t *testing.T, s store.Store) {
	addWebhook(t, s, "acme", "a", "app.*")
	addWebhook(t, s, "", "b", "tenant.*", "app.failed")
	addWebhook(t, s, "beta", "c", "*")
	enqueueAll(t, s, messageOf("app/web", "w1"), messageOf("app/web", "w2"), messageOf("app/api", "p1"))
	due, err := s.ListDue(t.Context(), now)
	if diff := cmp.Diff([]store.DueWebhook{{ID: "a", Tenant: "acme"}, {ID: "b"}}, due); diff != "" || err != nil {
		t.Fatalf("%v: -want +due:\n%s", err, diff)
	}
	ids, first := claim(t, s, "one", now)
	if !slices.Equal(ids, []string{"w1", "p1"}) {
		t.Fatalf("claimed %q", ids)
	}
	if ids, _ := claim(t, s, "two", now); len(ids) > 0 {
		t.Errorf("%q are claimed twice", ids)
	}
	finish(t, s, first[0], store.Delivered, "another") // Who does not have the claim changes nothing.
	finish(t, s, first[1], store.Delivered, "one")
	if got := deliveryStates(t, s); !slices.Equal(got, []string{"w1 waiting", "w2 waiting", "p1 delivered"}) {
		t.Errorf("they are %q", got)
	}
	// The first claim ended: its sender was killed.
	ids, again := claim(t, s, "two", later)
	if !slices.Equal(ids, []string{"w1"}) {
		t.Fatalf("claimed %q", ids)
	}
	finish(t, s, first[0], store.Delivered, "one")
	finish(t, s, again[0], store.Parked, "two")
	if events := objects(t, s, "acme"); !slices.Contains(events, "parkDelivery webhook/a") {
		t.Errorf("the events are %q", events)
	}
	ids, next := claim(t, s, "three", later)
	if !slices.Equal(ids, []string{"w2"}) {
		t.Fatalf("after one is parked: %q", ids)
	}
	if err := s.ReleaseDelivery(t.Context(), next[0].ID, "three"); err != nil {
		t.Fatal(err)
	}
	if ids, _ := claim(t, s, "four", later); !slices.Equal(ids, []string{"w2"}) {
		t.Errorf("after it was given up: %q", ids)
	}
}

func redelivery(t *testing.T, s store.Store) {
	addWebhook(t, s, "acme", "a", "*")
	addWebhook(t, s, "", "b", "*")
	enqueueAll(t, s, messageOf("app/web", "w1"), messageOf("app/web", "w2"))
	_, again := claim(t, s, "one", now)
	finish(t, s, again[0], store.Parked, "one")
	if _, err := s.Redeliver(t.Context(), "b", again[0].ID, eventOf("", "x")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another webhook's is sent again: %v", err)
	}
	e := eventOf("", "webhook/a")
	e.At = later
	if d, err := s.Redeliver(t.Context(), "a", again[0].ID, e); err != nil || d.State != store.Waiting || d.Attempts != 0 || !d.Due.Equal(later) {
		t.Errorf("%v: %+v", err, d)
	}
	if d, err := s.EnqueueFor(t.Context(), "a", messageOf("webhook/a", "ping"), e); err != nil || d.Message.ID != "ping" || string(d.Body) != `{"id":"ping"}` {
		t.Errorf("%v: %+v", err, d)
	}
	if ids, _ := claim(t, s, "two", later); !slices.Equal(ids, []string{"ping", "w1"}) {
		t.Errorf("claimed %q: what is newer about the object does not wait", ids)
	}
	if counts, err := s.CountDeliveries(t.Context()); err != nil || counts[store.Waiting] != 3+2 || counts[store.Delivered]+counts[store.Parked] != 0 {
		t.Errorf("%v: %v", err, counts)
	}
}

// manyClaim has several senders of two managers claim, while both write messages: each is claimed once, and those about an object in their order.
func manyClaim(t *testing.T, both [2]store.Store) {
	addWebhook(t, both[0], "acme", "a", "*")
	const each = 20
	var group sync.WaitGroup
	write := func(s store.Store, object string) {
		for i := range each {
			enqueueAll(t, s, messageOf("app/"+object, fmt.Sprintf("%s-%02d", object, i)))
		}
	}
	for object := range 3 {
		group.Go(func() { write(both[object%2], fmt.Sprint(object)) })
	}
	var mu sync.Mutex
	var got []string
	// claimAll claims and finishes what is due, and reports whether all was claimed by then.
	claimAll := func(s store.Store, by string) bool {
		_, all := claim(t, s, by, later)
		for _, d := range all {
			mu.Lock()
			got = append(got, d.Message.ID)
			mu.Unlock()
			finish(t, s, d, store.Delivered, by)
		}
		mu.Lock()
		defer mu.Unlock()
		return len(got) >= 3*each
	}
	deadline := time.Now().Add(time.Minute)
	for by := range 4 {
		group.Go(func() {
			for !claimAll(both[by%2], fmt.Sprint(by)) && time.Now().Before(deadline) {
				time.Sleep(time.Millisecond)
			}
		})
	}
	group.Wait()
	if len(got) != 3*each {
		t.Fatalf("%d were claimed, want %d", len(got), 3*each)
	}
	last := map[byte]string{}
	for _, id := range got {
		if id <= last[id[0]] {
			t.Errorf("%s comes after %s", id, last[id[0]])
		}
		last[id[0]] = id
	}
}

func outboxIsBounded(t *testing.T, s store.Store) {
	addWebhook(t, s, "acme", "a", "*")
	for i := range store.MaxDelivered + 3 {
		enqueueAll(t, s, messageOf("app/web", fmt.Sprint("d", i)))
		_, all := claim(t, s, "one", now)
		finish(t, s, all[0], store.Delivered, "one")
	}
	if got := deliveryStates(t, s); len(got) != store.MaxDelivered || got[0] != "d3 delivered" {
		t.Errorf("%d are kept, from %s", len(got), got[0])
	}
	// What waits for a webhook that has not answered for a day is parked with it.
	old := messageOf("app/old", "old")
	enqueueAll(t, s, old, messageOf("app/old", "old-2"), messageOf("app/web", "w"))
	_, all := claim(t, s, "two", now)
	d := all[0]
	d.State, d.Tried = store.Parked, now
	for _, other := range all[1:] {
		if err := s.ReleaseDelivery(t.Context(), other.ID, "two"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.FinishAttempt(t.Context(), store.Outcome{Delivery: d, Claim: "two", Expired: now}); err != nil {
		t.Fatal(err)
	}
	if counts, err := s.CountDeliveries(t.Context()); err != nil || counts[store.Waiting] != 0 || counts[store.Parked] != 3 {
		t.Errorf("%v: %v", err, counts)
	}
}

func observations(t *testing.T, s store.Store) {
	addWebhook(t, s, "acme", "a", "*")
	record := func(want []string, changes ...store.StateChange) {
		t.Helper()
		if others, err := s.RecordChanges(t.Context(), changes); err != nil || !slices.Equal(others, want) {
			t.Errorf("%v: others recorded %q, want %q", err, others, want)
		}
	}
	made := store.StateChange{Object: "app/web", To: "1", Messages: []store.Message{messageOf("app/web", "m1"), messageOf("app/web", "m2")}}
	record(nil, made, store.StateChange{Object: "app/api", To: "1"})
	record([]string{"app/web"}, made, store.StateChange{Object: "app/api", From: "1", To: "2"})
	record([]string{"app/web"}, store.StateChange{Object: "app/web", From: "0", Messages: []store.Message{messageOf("app/web", "m3")}})
	record(nil, store.StateChange{Object: "app/web", From: "1", Messages: []store.Message{messageOf("app/web", "m4")}})
	if diff := cmp.Diff([]string{"m1 waiting", "m2 waiting", "m4 waiting"}, deliveryStates(t, s)); diff != "" {
		t.Errorf("-want +enqueued:\n%s", diff)
	}
	if all, err := s.ListStates(t.Context(), "", 10); err != nil || !cmp.Equal(all, []store.ObservedState{{Object: "app/api", State: "2"}}) {
		t.Errorf("%v: %v", err, all)
	}
}

// gone: a webhook that wants no more messages is disabled, unless it has another URL by then. What waits for it is tried for a day from when it is enabled.
func gone(t *testing.T, s store.Store) {
	addWebhook(t, s, "acme", "a", "*")
	enqueueAll(t, s, messageOf("app/web", "w1"))
	for _, c := range []struct {
		url    string
		reason string
	}{{"https://hooks.example.com/before", ""}, {"https://hooks.example.com/a", "gone"}} {
		_, all := claim(t, s, c.url, later)
		d := all[0]
		d.Attempts, d.Tried, d.Due, d.Status, d.Answer = 1, later, later, 410, "gone"
		if err := s.FinishAttempt(t.Context(), store.Outcome{Delivery: d, Claim: c.url, GoneURL: c.url}); err != nil {
			t.Fatal(err)
		}
		if w, err := s.GetWebhook(t.Context(), "", "a"); err != nil || w.Disabled != (c.reason != "") || w.DisabledReason != c.reason {
			t.Errorf("%v: after %s it is %+v", err, c.url, w)
		}
	}
	if events := objects(t, s, "acme"); !slices.Contains(events, "disableWebhook webhook/a") {
		t.Errorf("the events are %q", events)
	}
	enabled := eventOf("", "webhook/a")
	enabled.At = later.Add(time.Hour)
	if _, err := s.ChangeWebhook(t.Context(), "acme", "a", func(w *store.Webhook) error { w.Disabled = false; return nil }, enabled); err != nil {
		t.Fatal(err)
	}
	if found, err := s.ListDeliveries(t.Context(), "a", "", 0, 10); err != nil || len(found) != 1 || found[0].State != store.Waiting || !found[0].Since.Equal(enabled.At) {
		t.Errorf("%v: %+v", err, found)
	}
}

// fullOutbox: of messages beyond MaxWaiting the oldest are parked, except one that is being sent, and of parked ones MaxParked are kept.
func fullOutbox(t *testing.T, s store.Store) {
	addWebhook(t, s, "acme", "a", "*")
	const step = 500
	write := func(from, to int) {
		t.Helper()
		for ; from < to; from += step {
			some := make([]store.Message, step)
			for i := range some {
				some[i] = messageOf("app/same", fmt.Sprintf("%05d", from+i))
			}
			enqueueAll(t, s, some...)
		}
	}
	write(0, store.MaxWaiting)
	if _, err := s.EnqueueFor(t.Context(), "a", messageOf("webhook/a", "ping"), eventOf("", "x")); !errors.Is(err, store.ErrTooManyWaiting) {
		t.Errorf("a message to try it: %v", err)
	}
	_, sent := claim(t, s, "one", now)
	write(store.MaxWaiting, store.MaxWaiting+step)
	finish(t, s, sent[0], store.Delivered, "one")
	write(store.MaxWaiting+step, store.MaxWaiting+store.MaxParked+2*step)
	counts, err := s.CountDeliveries(t.Context())
	if err != nil || counts[store.Delivered] != 1 || counts[store.Parked] != store.MaxParked || counts[store.Waiting] > store.MaxWaiting || counts[store.Waiting] < store.MaxWaiting-200 {
		t.Errorf("%v: there are %v", err, counts)
	}
	if events := objects(t, s, "acme"); !slices.Contains(events, "parkDelivery webhook/a") {
		t.Errorf("the events are %q", events)
	}
	all, err := s.ListDeliveries(t.Context(), "a", store.Parked, 0, 1)
	if err != nil || !strings.Contains(all[0].Answer, "more than") {
		t.Errorf("%v: %+v", err, all)
	}
	if ids, _ := claim(t, s, "two", now); len(ids) != 1 || ids[0] <= all[0].Message.ID {
		t.Errorf("after %s is parked %q are claimed", all[0].Message.ID, ids)
	}
}
