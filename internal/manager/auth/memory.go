package auth

import (
	"sync"
	"time"

	"github.com/kubeop/kubeop/internal/store"
)

const (
	// confirmedWithin is how long before the store failed it has to have answered that a token is valid, for the token to stay so meanwhile.
	confirmedWithin = time.Minute
	// maxOutage is how long a failing store is done without: another manager may have revoked a token since.
	maxOutage = time.Hour
	// lookupTimeout is how long the store is waited for if the token is remembered.
	lookupTimeout = time.Second
	maxRemembered = 10_000
)

// memory has the tokens that the store answered last, by their hashes. It is used only while the store fails, so a revocation counts at once.
type memory struct {
	mu     sync.Mutex
	tokens map[string]confirmed
	// failing is since when the store fails, zero while it answers.
	failing time.Time
	swept   time.Time
}

type confirmed struct {
	store.Token
	at time.Time
}

// keep records what the store answered.
func (m *memory) keep(t store.Token, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failing = time.Time{}
	if now.Sub(m.swept) >= confirmedWithin {
		m.swept = now
		for hash, c := range m.tokens {
			if now.Sub(c.at) > confirmedWithin {
				delete(m.tokens, hash)
			}
		}
	}
	if m.tokens == nil {
		m.tokens = map[string]confirmed{}
	}
	if _, has := m.tokens[string(t.Hash)]; has || len(m.tokens) < maxRemembered {
		m.tokens[string(t.Hash)] = confirmed{t, now}
	}
}

// forget records that the store does not have a token.
func (m *memory) forget(hash []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failing = time.Time{}
	delete(m.tokens, string(hash))
}

// has reports whether the store may be done without, for a token.
func (m *memory) has(hash []byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, has := m.tokens[string(hash)]
	return has
}

// recall records that the store fails, and returns what it answered about a token before. first reports whether it did not fail before.
func (m *memory) recall(hash []byte, now time.Time) (t store.Token, first, has bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if first = m.failing.IsZero(); first {
		m.failing = now
	}
	c, has := m.tokens[string(hash)]
	return c.Token, first, has && m.failing.Sub(c.at) <= confirmedWithin && now.Sub(m.failing) <= maxOutage
}
