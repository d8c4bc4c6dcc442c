// Package readiness checks what requests depend on, and names what is missing.
package readiness

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
)

const (
	// checkTimeout is how long one check may take. Probes of the kubelet wait for one second by default.
	checkTimeout = 900 * time.Millisecond
	// memory is how long a result is reused, because anyone may ask for it.
	memory = time.Second
)

// Check returns an error if something is missing.
type Check func(context.Context) error

// Checks are the dependencies of requests, by name. A missing one does not make the manager unready: requests that need it get 503 or an older answer,
// and all others work as usual.
type Checks struct {
	log      logr.Logger
	now      func() time.Time
	checks   map[string]Check
	stopping atomic.Bool

	// mu is held while the checks run, so that concurrent callers get the same result.
	mu      sync.Mutex
	at      time.Time
	missing []string
	failed  map[string]bool
}

// New returns Checks. The log gets a line when a check begins to fail, with the reason, and when it passes again.
func New(log logr.Logger, now func() time.Time) *Checks {
	return &Checks{log: log, now: now, checks: map[string]Check{}, failed: map[string]bool{}}
}

// Add adds a check. Call it before the first Missing. Everyone may read the name at /readyz; the error goes to the log.
func (c *Checks) Add(name string, check Check) { c.checks[name] = check }

// Stop makes the manager unready for good.
func (c *Checks) Stop() { c.stopping.Store(true) }

// Stopping reports whether the manager stops, so that no request should be sent to it any more.
func (c *Checks) Stopping() bool { return c.stopping.Load() }

// Missing returns the names of the failing checks, sorted. It runs all checks concurrently, at most once a second.
func (c *Checks) Missing(ctx context.Context) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() || c.now().Sub(c.at) >= memory {
		// The result is for others too, so it does not end with the first request.
		c.missing = c.make(context.WithoutCancel(ctx))
		c.at = c.now()
	}
	return c.missing
}

func (c *Checks) make(ctx context.Context) []string {
	limited, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	type outcome struct {
		name string
		why  error
	}
	outcomes := make(chan outcome, len(c.checks))
	for name, check := range c.checks {
		go func() { outcomes <- outcome{name, check(limited)} }()
	}
	// A check that ignores its context fails too.
	waiting := maps.Clone(c.checks)
	var missing []string
	for len(waiting) > 0 {
		select {
		case o := <-outcomes:
			delete(waiting, o.name)
			c.logChange(o.name, o.why)
			if o.why != nil {
				missing = append(missing, o.name)
			}
		case <-limited.Done():
			for name := range waiting {
				c.logChange(name, limited.Err())
				missing = append(missing, name)
			}
			waiting = nil
		}
	}
	slices.Sort(missing)
	return missing
}

// logChange logs the result of a check if it changed.
func (c *Checks) logChange(name string, why error) {
	if c.failed[name] == (why != nil) {
		return
	}
	c.failed[name] = why != nil
	if why != nil {
		c.log.Info("Missing", "check", name, "why", why.Error())
		return
	}
	c.log.Info("There again", "check", name)
}

var missingMetric = prometheus.NewDesc("kubeop_manager_missing", "1 if this is missing, so that requests that need it are answered by 503, or from what was there before; 0 if it is there.", []string{"name"}, nil)

// Describe implements prometheus.Collector.
func (c *Checks) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- missingMetric }

// Collect implements prometheus.Collector.
func (c *Checks) Collect(metrics chan<- prometheus.Metric) {
	missing := c.Missing(context.Background())
	for name := range c.checks {
		value := 0.0
		if slices.Contains(missing, name) {
			value = 1
		}
		metrics <- prometheus.MustNewConstMetric(missingMetric, prometheus.GaugeValue, value, name)
	}
}
