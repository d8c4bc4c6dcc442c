package auth

import (
	"sync"
	"time"

	"github.com/kubeop/kubeop/internal/store"
)

const (
	// confirmedWithin limits which tokens stay valid while the store fails: the store has to have confirmed them at most this long before it failed.
	confirmedWithin = time.Minute
	// maxOutage is how long tokens are accepted while the store fails: another manager may have revoked a token since.
	maxOutage = time.Hour
	// lookupTimeout is how long to wait for the store if the token is in memory.
	lookupTimeout = time.Second
	maxRemembered = 10_000
)

// memory keeps the last answers of the store about tokens, by the hashes of the tokens. It is used only while the store fails, so a revocation counts
// at once.
type memory struct {
	mu     sync.Mutex
	tokens map[string]confirmed
	// failing is when the store began to fail, zero while it answers.
	failing time.Time
	swept   time.Time
}

type confirmed struct {
	store.Token
	at time.Time
}

// keep records an answer of the store.
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

// has reports whether the memory can answer about a token while the store fails.
func (m *memory) has(hash []byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, has := m.tokens[string(hash)]
	return has
}

// recall records that the store fails, and returns its last answer about a token. first is true if the store did not fail before.
func (m *memory) recall(hash []byte, now time.Time) (t store.Token, first, has bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if first = m.failing.IsZero(); first {
		m.failing = now
	}
	c, has := m.tokens[string(hash)]
	return c.Token, first, has && m.failing.Sub(c.at) <= confirmedWithin && now.Sub(m.failing) <= maxOutage
}
