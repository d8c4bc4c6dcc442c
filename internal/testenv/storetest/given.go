package storetest

import (
	"testing"
	"time"

	"github.com/kubeop/kubeop/internal/store"
)

var now = time.Date(2026, 11, 28, 12, 0, 0, 123000, time.UTC)

func tokenOf(tenant, id string) store.Token {
	scopes := []string{"admin"}
	if tenant != "" {
		scopes = []string{"tenant:" + tenant + ":view", "project:" + tenant + "/shop:deploy"}
	}
	return store.Token{
		ID: id, Name: "CI, \"quoted\" '; DROP TABLE tokens; -- é", Hash: []byte("hash of " + id), Scopes: scopes, Tenant: tenant, Created: now, CreatedBy: "root",
		Expires: now.Add(time.Hour),
	}
}

func eventOf(tenant, object string) store.Event {
	return store.Event{At: now, Actor: "root", Action: "createToken", Object: object, Tenant: tenant, Address: "192.0.2.1:5", RequestID: "r"}
}

func create(t *testing.T, s store.Store, tenant, id string) store.Token {
	t.Helper()
	token := tokenOf(tenant, id)
	if err := s.CreateToken(t.Context(), token, eventOf(tenant, id)); err != nil {
		t.Fatal(err)
	}
	return token
}

// objects returns the objects of all events, the newest first.
func objects(t *testing.T, s store.Store, of string) (all []string) {
	t.Helper()
	events, err := s.ListEvents(t.Context(), of, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		all = append(all, e.Action+" "+e.Object)
	}
	return all
}
