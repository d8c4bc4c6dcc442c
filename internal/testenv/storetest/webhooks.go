package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/internal/store"
)

// later is when a claim of now ends.
var later = now.Add(time.Minute)

func webhookSecret(id string) store.Sealed {
	return store.Sealed{Kind: store.KindWebhookSecret, ID: id, Key: "k1", Data: []byte("\x00sealed " + id)}
}

func addWebhook(t *testing.T, s store.Store, tenant, id string, types ...string) store.Webhook {
	t.Helper()
	w := store.Webhook{ID: id, Name: "chat", Tenant: tenant, URL: "https://hooks.example.com/" + id, Types: types, Created: now, CreatedBy: "root", Secret: webhookSecret(id + "/1")}
	if err := s.CreateWebhook(t.Context(), w, eventOf(tenant, "webhook/"+id)); err != nil {
		t.Fatal(err)
	}
	return w
}

func webhooks(t *testing.T, s store.Store) {
	want := addWebhook(t, s, "acme", "a", "app.*", "claim.created")
	addWebhook(t, s, "", "b", "*")
	if got, err := s.GetWebhook(t.Context(), "acme", "a"); err != nil || !cmp.Equal(want, got) {
		t.Errorf("%v: -stored +found:\n%s", err, cmp.Diff(want, got))
	}
	if _, err := s.GetWebhook(t.Context(), "acme", "b"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the platform's is found by a tenant: %v", err)
	}
	for of, ids := range map[string][]string{"": {"a", "b"}, "acme": {"a"}, "beta": nil} {
		var got []string
		all, err := s.ListWebhooks(t.Context(), of, "", 10)
		for _, w := range all {
			got = append(got, w.ID)
		}
		if err != nil || !slices.Equal(ids, got) {
			t.Errorf("%v: those of %q are %q", err, of, got)
		}
	}
}

func webhookChanges(t *testing.T, s store.Store) {
	want := addWebhook(t, s, "acme", "a", "app.*", "claim.created")
	addWebhook(t, s, "", "b", "*")
	rotate := func(secret string) func(*store.Webhook) error {
		return func(w *store.Webhook) error {
			w.Previous, w.PreviousUntil, w.Secret, w.Disabled = w.Secret, now.Add(time.Hour), webhookSecret(secret), true
			return nil
		}
	}
	for _, secret := range []string{"a/2", "a/3"} {
		if _, err := s.ChangeWebhook(t.Context(), "acme", "a", rotate(secret), eventOf("", "webhook/a")); err != nil {
			t.Fatal(err)
		}
	}
	refused := errors.New("refused")
	if _, err := s.ChangeWebhook(t.Context(), "acme", "a", func(w *store.Webhook) error { w.URL = "x"; return refused }, eventOf("", "x")); !errors.Is(err, refused) {
		t.Error(err)
	}
	want.Secret, want.Previous, want.PreviousUntil, want.Disabled = webhookSecret("a/3"), webhookSecret("a/2"), now.Add(time.Hour), true
	if got, err := s.GetWebhook(t.Context(), "", "a"); err != nil || !cmp.Equal(want, got) {
		t.Errorf("%v: -changed +found:\n%s", err, cmp.Diff(want, got))
	}
	if err := s.DeleteWebhook(t.Context(), "beta", "a", eventOf("", "x")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another tenant deletes it: %v", err)
	}
	if err := s.DeleteWebhook(t.Context(), "acme", "a", eventOf("", "webhook/a")); err != nil {
		t.Fatal(err)
	}
	if left, err := s.ListSealed(t.Context(), store.Sealed{}, 10); err != nil || len(left) != 1 || left[0].ID != "b/1" {
		t.Errorf("%v: the secrets that are left are %v", err, left)
	}
	if got := objects(t, s, "acme"); len(got) != 4 {
		t.Errorf("the events are %q", got)
	}
}

func tooManyWebhooks(t *testing.T, s store.Store) {
	for i := range store.MaxWebhooks {
		addWebhook(t, s, "acme", fmt.Sprintf("c%d", i), "*")
	}
	if err := s.CreateWebhook(t.Context(), store.Webhook{ID: "z", Tenant: "acme", Secret: webhookSecret("z/1")}, eventOf("acme", "z")); !errors.Is(err, store.ErrTooManyWebhooks) {
		t.Errorf("one too many: %v", err)
	}
}

// webhookSweep: a secret that signs no more is removed.
func webhookSweep(t *testing.T, s store.Store) {
	addWebhook(t, s, "acme", "a", "*")
	rotate := func(w *store.Webhook) error {
		w.Previous, w.PreviousUntil, w.Secret = w.Secret, later, webhookSecret("a/2")
		return nil
	}
	if _, err := s.ChangeWebhook(t.Context(), "acme", "a", rotate, eventOf("", "webhook/a")); err != nil {
		t.Fatal(err)
	}
	for _, at := range []time.Time{now, later} {
		if err := s.Sweep(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		left, err := s.ListSealed(t.Context(), store.Sealed{}, 10)
		w, found := s.GetWebhook(t.Context(), "", "a")
		if signs := at.Equal(now); err != nil || found != nil || (len(left) == 2) != signs || (w.Previous.ID != "") != signs || w.Secret.ID != "a/2" {
			t.Errorf("%v, %v: at %s are left %v, of %+v", err, found, at, left, w)
		}
	}
}
