package storetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/kubeop/kubeop/internal/store"
)

// acme returns one of several tenants of this name.
func acme(uid string, created time.Time) store.TenantRef {
	return store.TenantRef{Name: "acme", UID: uid, Created: created}
}

// addWebhookOf stores a webhook of a tenant, whatever the clocks say of when each was created.
func addWebhookOf(t *testing.T, s store.Store, of store.TenantRef, id string, created time.Time) {
	t.Helper()
	w := store.Webhook{ID: id, Tenant: of.Name, TenantUID: of.UID, URL: "https://hooks.example.com/" + id, Types: []string{"*"}, Created: created, Secret: webhookSecret(id + "/1")}
	if err := s.CreateWebhook(t.Context(), w, eventOf(of.Name, "webhook/"+id)); err != nil {
		t.Fatal(err)
	}
}

// createTenant records that a tenant is new.
func createTenant(t *testing.T, s store.Store, of store.TenantRef) {
	t.Helper()
	change := store.StateChange{Object: "tenant/" + of.UID, To: "1", NewTenant: of}
	if _, err := s.RecordChanges(t.Context(), []store.StateChange{change}); err != nil {
		t.Fatal(err)
	}
}

func enable(t *testing.T, s store.Store, id string, of store.TenantRef) {
	t.Helper()
	change := func(w *store.Webhook) error {
		w.Enable(of)
		return nil
	}
	if _, err := s.ChangeWebhook(t.Context(), store.OfEarlier(of.Name), id, change, store.Event{At: later, Action: "patchWebhook"}); err != nil {
		t.Fatal(err)
	}
}

// newTenant: the webhooks of an earlier tenant of the name are nobody's until an administrator enables them, and those that the new one has already are its own.
func newTenant(t *testing.T, s store.Store) {
	addWebhook(t, s, "acme", "a", "*")
	addWebhook(t, s, "beta", "b", "*")
	addWebhook(t, s, "", "c", "*")
	enqueueAll(t, s, messageOf("app/web", "m1"))
	createTenant(t, s, acme("1", now))
	if w, err := s.GetWebhook(t.Context(), "acme", "a"); err != nil || w.Disabled {
		t.Errorf("a webhook that is not older than its tenant is %+v, %v", w, err)
	}
	createTenant(t, s, acme("2", later))
	ofNobody(t, s)
	enqueueAll(t, s, messageOf("app/web", "m2"))
	if got := deliveryStates(t, s); len(got) != 1 {
		t.Errorf("it gets a message of the new tenant: %q", got)
	}
	enable(t, s, "a", acme("2", later))
	if w, err := s.GetWebhook(t.Context(), "acme", "a"); err != nil || w.Disabled || w.DisabledReason != "" || w.TenantUID != "2" {
		t.Errorf("the webhook that was enabled is %+v, %v", w, err)
	}
}

// ofNobody checks that the new tenant does not have the webhook a, and that it is there with what waits for it.
func ofNobody(t *testing.T, s store.Store) {
	t.Helper()
	if own, err := s.ListWebhooks(t.Context(), "acme", "", 10); err != nil || len(own) != 0 {
		t.Errorf("the new tenant has %v, %v", own, err)
	}
	if _, err := s.GetWebhook(t.Context(), "acme", "a"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the new tenant reads the webhook of the earlier one: %v", err)
	}
	w, err := s.GetWebhook(t.Context(), "", "a")
	if err != nil || !w.Disabled || w.DisabledReason == "" || w.Tenant != store.OfEarlier("acme") || w.Secret.ID != "a/1" {
		t.Errorf("the webhook of the earlier tenant is %+v, %v", w, err)
	}
	if got := deliveryStates(t, s); len(got) != 1 {
		t.Errorf("of what waits for it are left: %q", got)
	}
	events, err := s.ListEvents(t.Context(), "", 0, 100)
	if err != nil || !slices.ContainsFunc(events, func(e store.Event) bool {
		return e.Action == "disableWebhook" && e.Object == "webhook/a" && e.Tenant == w.Tenant
	}) {
		t.Errorf("the events are %+v, %v", events, err)
	}
}

// tenantsByUID: two clocks say of both webhooks that they are of the other tenant. Each gets the messages of its own.
func tenantsByUID(t *testing.T, s store.Store) {
	earlier, next := acme("1", now), acme("2", later)
	addWebhookOf(t, s, earlier, "earlier", later.Add(time.Second))
	addWebhookOf(t, s, next, "a", later.Add(-time.Second))
	addWebhookOf(t, s, store.TenantRef{}, "platform", now)
	of := func(m store.Message, uid string) store.Message {
		m.TenantUID = uid
		return m
	}
	enqueueAll(t, s, of(messageOf("app/old", "m1"), "1"), of(messageOf("app/web", "m2"), "2"))
	for id, want := range map[string][]string{"earlier": {"m1"}, "a": {"m2"}, "platform": {"m2", "m1"}} {
		var got []string
		found, err := s.ListDeliveries(t.Context(), id, "", 0, 10)
		for _, d := range found {
			got = append(got, d.Message.ID)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%v: %s gets %q", err, id, got)
		}
	}
	createTenant(t, s, next)
	if own, err := s.ListWebhooks(t.Context(), "acme", "", 10); err != nil || len(own) != 1 || own[0].ID != "a" || own[0].Disabled {
		t.Errorf("%v: the new tenant has %+v", err, own)
	}
}

// sweepTenants sweeps at the end of a day.
func sweepTenants(t *testing.T, s store.Store, days int, exist ...store.TenantRef) (left []string) {
	t.Helper()
	if err := s.SweepWebhooks(t.Context(), exist, now.Add(time.Duration(days)*day)); err != nil {
		t.Fatal(err)
	}
	all, err := s.ListWebhooks(t.Context(), "", "", 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range all {
		left = append(left, w.ID)
	}
	return left
}

// tenantIsGone: its webhooks are removed once it has been gone for 30 days without a break, and no others.
func tenantIsGone(t *testing.T, s store.Store) {
	own, beta := acme("1", now), store.TenantRef{Name: "beta", UID: "b"}
	addWebhookOf(t, s, own, "a", now)
	addWebhookOf(t, s, beta, "b", now)
	addWebhookOf(t, s, store.TenantRef{}, "c", now)
	m := messageOf("app/web", "m1")
	m.TenantUID = own.UID
	enqueueAll(t, s, m)
	if got := deliveryStates(t, s); len(got) != 1 {
		t.Fatalf("for it wait %q", got)
	}
	for _, c := range []struct {
		day   int
		exist []store.TenantRef
		left  []string
	}{
		{0, []store.TenantRef{beta}, []string{"a", "b", "c"}},
		{29, []store.TenantRef{beta}, []string{"a", "b", "c"}},
		{29, []store.TenantRef{beta, own}, []string{"a", "b", "c"}}, // It came back.
		{31, []store.TenantRef{beta}, []string{"a", "b", "c"}},
		{60, []store.TenantRef{beta, acme("2", later)}, []string{"a", "b", "c"}},
		{61, []store.TenantRef{beta, acme("2", later)}, []string{"b", "c"}},
	} {
		if left := sweepTenants(t, s, c.day, c.exist...); !slices.Equal(left, c.left) {
			t.Fatalf("after %d days, with %v, are left %q, want %q", c.day, c.exist, left, c.left)
		}
	}
	secrets, err := s.ListSealed(t.Context(), store.Sealed{}, 10)
	if err != nil || len(secrets) != 2 || len(deliveryStates(t, s)) != 0 {
		t.Errorf("%v: left are %v, and %q", err, secrets, deliveryStates(t, s))
	}
	if events := objects(t, s, "acme"); !slices.Contains(events, "deleteWebhook webhook/a") {
		t.Errorf("the events are %q", events)
	}
}

// earlierIsGone: the webhooks of an earlier tenant are kept for 30 days from when they were disabled, unless they are given to the tenant that has the name now.
func earlierIsGone(t *testing.T, s store.Store) {
	own, next := acme("1", now), acme("2", later)
	addWebhookOf(t, s, own, "a", now)
	addWebhookOf(t, s, own, "given", now)
	sweepTenants(t, s, 0)
	createTenant(t, s, next)
	enable(t, s, "given", next)
	for _, c := range []struct {
		day  int
		left []string
	}{{20, []string{"a", "given"}}, {49, []string{"a", "given"}}, {50, []string{"given"}}, {90, []string{"given"}}} {
		if left := sweepTenants(t, s, c.day, next); !slices.Equal(left, c.left) {
			t.Fatalf("after %d days are left %q, want %q", c.day, left, c.left)
		}
	}
}
