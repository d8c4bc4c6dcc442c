// Package readiness knows what the manager needs, and names what of it is not ready.
package readiness

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// checkTimeout is how long one check may take. Kubelet's probes wait for one second by default.
const checkTimeout = 900 * time.Millisecond

// Check returns why something is not ready, nil if it is.
type Check func(context.Context) error

// Checks are what the manager needs, by name.
type Checks struct {
	// Log is told when a check begins to fail, with the reason, and when it passes again.
	Log    logr.Logger
	mu     sync.Mutex
	checks map[string]Check
	failed map[string]bool
}

// Add adds a check. Everyone may read its name at /readyz; what it returns is for the log.
func (c *Checks) Add(name string, check Check) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.checks == nil {
		c.checks = map[string]Check{}
	}
	c.checks[name] = check
}

// NotReady makes all checks at once and returns the names of those that fail, sorted.
func (c *Checks) NotReady(ctx context.Context) []string {
	c.mu.Lock()
	checks := maps.Clone(c.checks)
	c.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	type outcome struct {
		name string
		why  error
	}
	outcomes := make(chan outcome, len(checks))
	for name, check := range checks {
		go func() { outcomes <- outcome{name, check(limited)} }()
	}
	// A check that ignores its context is not ready either.
	waiting := maps.Clone(checks)
	var not []string
	for len(waiting) > 0 {
		select {
		case o := <-outcomes:
			delete(waiting, o.name)
			c.tell(o.name, o.why)
			if o.why != nil {
				not = append(not, o.name)
			}
		case <-limited.Done():
			for name := range waiting {
				c.tell(name, limited.Err())
				not = append(not, name)
			}
			waiting = nil
		}
	}
	slices.Sort(not)
	return not
}

// tell logs what a check says, unless it said the same before.
func (c *Checks) tell(name string, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed[name] == (why != nil) {
		return
	}
	if c.failed == nil {
		c.failed = map[string]bool{}
	}
	c.failed[name] = why != nil
	if why != nil {
		c.Log.Info("Not ready", "check", name, "why", why.Error())
		return
	}
	c.Log.Info("Ready again", "check", name)
}
