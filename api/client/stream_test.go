package client

import (
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/internal/manager/live"
)

// last ranges over a stream, and returns its error.
func last(stream iter.Seq2[StreamEvent, error]) error {
	for _, err := range stream {
		if err != nil {
			return err
		}
	}
	return nil
}

// read reads a stream until an event of a kind, and returns the events and the last id.
func readUntil(t *testing.T, stream iter.Seq2[StreamEvent, error], kind string, meanwhile func()) (kinds []string, id string) {
	t.Helper()
	for e, err := range stream {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, e.Kind)
		if e.ID != "" {
			id = e.ID
		}
		if e.Kind == "synced" {
			meanwhile()
		}
		if e.Kind == kind {
			return kinds, id
		}
	}
	t.Fatalf("the stream ended after %v", kinds)
	return nil, ""
}

// TestAListIsFollowedAndGoneOnWith: all items, a change, and in a new stream only what changed since.
func TestAListIsFollowedAndGoneOnWith(t *testing.T) {
	m := started(t)
	viewer, _ := m.Token("project:acme/shop:view")
	c := newClient(t, m.URL, viewer)
	events := func(after string) iter.Seq2[StreamEvent, error] {
		return c.ListAppsEvents(t.Context(), "acme", "shop", ListAppsParams{LastEventID: after})
	}
	kinds, id := readUntil(t, events(""), "delete", func() { live.Forget(m.Index, app("api")) })
	if diff := cmp.Diff([]string{"resync", "put", "put", "put", "synced", "delete"}, kinds); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	changed := app("web")
	changed.Status.URL = "other.example.com"
	m.Apply(changed)
	if kinds, _ = readUntil(t, events(id), "put", nil); len(kinds) != 1 {
		t.Errorf("after %s: %v", id, kinds)
	}
}

func TestAStreamEndsAsTheManagerSays(t *testing.T) {
	m := started(t)
	viewer, id := m.Token("project:acme/shop:view")
	stream := newClient(t, m.URL, viewer).ListAppsEvents(t.Context(), "acme", "shop", ListAppsParams{})
	var refused *Error
	for e, err := range stream {
		if e.Kind == "synced" {
			m.Revoke(id)
		}
		if err != nil && (!errors.As(err, &refused) || refused.Code != "unauthenticated") {
			t.Errorf("a revoked token ends it with %v", err)
		}
	}
	if refused == nil {
		t.Error("a stream with a revoked token ends as if nothing were wrong")
	}
	another, _ := m.Token("admin")
	for e, err := range newClient(t, m.URL, another).ListTenantsEvents(t.Context(), ListTenantsParams{}) {
		if err != nil {
			t.Errorf("a manager that stops ends it with %v", err)
		}
		if e.Kind == "synced" {
			m.Stop()
		}
	}
}

// TestAStreamThatIsCutSaysSo, and one that is silent, or that no manager writes. The caller gets what came before.
func TestAStreamThatIsCutSaysSo(t *testing.T) {
	const begin = "event: put\ndata: {\"name\":\ndata: \"web\"}\nid: a.1\n\n: \n\n"
	for name, tc := range map[string]struct {
		rest http.HandlerFunc
		cut  bool
	}{
		"cut": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true},
		"cut in an event": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprint(w, "event: put\nda")
			panic(http.ErrAbortHandler)
		}, true},
		"silent": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, true},
		"a line too long": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprint(w, "data: "+strings.Repeat("x", maxLine+1))
		}, true},
		"an end without":    {func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "event: end\ndata: x\n\n") }, true},
		"ended":             {func(http.ResponseWriter, *http.Request) {}, false},
		"comments only":     {func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, ": \n\n: \n\n") }, false},
		"ended in an event": {func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "event: put\ndata: {}\n") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = fmt.Fprint(w, begin)
				_ = http.NewResponseController(w).Flush()
				tc.rest(w, r)
			}))
			t.Cleanup(s.Close)
			c := newClient(t, s.URL, "secret")
			c.silence = time.Second
			var got []StreamEvent
			var ended error
			for e, err := range c.ListTenantsEvents(t.Context(), ListTenantsParams{}) {
				if ended = err; err == nil {
					got = append(got, e)
				}
			}
			if errors.Is(ended, ErrCut) != tc.cut || !tc.cut && ended != nil {
				t.Errorf("it ends with %v", ended)
			}
			if diff := cmp.Diff([]StreamEvent{{Kind: "put", ID: "a.1", Data: []byte("{\"name\":\n\"web\"}")}}, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}
