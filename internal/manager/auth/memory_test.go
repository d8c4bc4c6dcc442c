package auth

import (
	"fmt"
	"testing"
	"time"

	"github.com/kubeop/kubeop/internal/store"
)

// TestATokenIsRememberedOnlyWhileTheStoreFails: it counts if the store confirmed it in the minute before, and for an hour.
func TestATokenIsRememberedOnlyWhileTheStoreFails(t *testing.T) {
	start := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	at := func(after time.Duration) time.Time { return start.Add(after) }
	known := store.Token{ID: "known", Hash: []byte("known")}
	for name, c := range map[string]struct {
		// before is what the store answered; fails is when it failed first, and asked when it still does.
		before       func(*memory)
		fails, asked time.Duration
		want         bool
	}{
		"at once":                                 {nil, 0, 0, true},
		"a minute after":                          {nil, time.Minute, time.Minute, true},
		"more than a minute after":                {nil, time.Minute + 1, time.Minute + 1, false},
		"an hour into the failure":                {nil, 0, time.Hour, true},
		"more than an hour into it":               {nil, 0, time.Hour + 1, false},
		"of which the store said that it is none": {func(m *memory) { m.forget(known.Hash) }, 0, 0, false},
		"confirmed again":                         {func(m *memory) { m.keep(known, at(time.Minute)) }, 2 * time.Minute, 2 * time.Minute, true},
		"after the store answered for another": {func(m *memory) { // The failure before does not count.
			m.recall(known.Hash, at(0))
			m.keep(store.Token{Hash: []byte("other")}, at(30*time.Second))
		}, time.Minute, time.Minute + time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			var m memory
			m.keep(known, at(0))
			if c.before != nil {
				c.before(&m)
			}
			_, first, _ := m.recall(known.Hash, at(c.fails))
			got, again, has := m.recall(known.Hash, at(c.asked))
			if has != c.want || has && got.ID != known.ID || !first || again {
				t.Errorf("it is remembered: %t as %q; the first failure: %t, then %t", has, got.ID, first, again)
			}
		})
	}
	var m memory
	if _, _, has := m.recall(known.Hash, start); has || m.has(known.Hash) {
		t.Error("a token is remembered of which nothing was answered")
	}
}

func TestOnlySoManyTokensAreRememberedAndOldOnesMakeRoom(t *testing.T) {
	start := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	tokenOf := func(i int) store.Token { return store.Token{Hash: []byte(fmt.Sprint(i))} }
	var m memory
	for i := range maxRemembered + 1 {
		m.keep(tokenOf(i), start)
	}
	if len(m.tokens) != maxRemembered || m.has(tokenOf(maxRemembered).Hash) {
		t.Errorf("%d tokens are remembered", len(m.tokens))
	}
	m.keep(tokenOf(3), start.Add(30*time.Second)) // It is there already.
	m.keep(tokenOf(maxRemembered), start.Add(confirmedWithin+time.Second))
	if len(m.tokens) != 2 || !m.has(tokenOf(3).Hash) || !m.has(tokenOf(maxRemembered).Hash) {
		t.Errorf("a minute later %d tokens are remembered", len(m.tokens))
	}
}
