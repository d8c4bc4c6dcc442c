// Package report reports the state of commits to Git hosts, as commit statuses. A queue sends the messages, so that no worker waits for a server. Of the
// messages with one key only the newest is sent. A server that is slow or down delays only the messages to itself.
package report

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/delivery/backoff"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
)

const (
	// maxMessages and maxOfTenant bound the messages that wait, in all and for one tenant.
	maxMessages = 10_000
	maxOfTenant = 200
	// gap is the pause between two messages of one tenant to one server. At GitHub the limit is 80 in a minute.
	gap = time.Second
	// firstRetry and lastRetry are the first and the longest pause after failures.
	firstRetry = 5 * time.Second
	lastRetry  = 10 * time.Minute
	// attempt bounds one attempt.
	attempt = 30 * time.Second
)

// Queue sends messages. Safe for concurrent use. What waits is lost at the end of the process.
type Queue struct {
	pool    *pool.Pool
	clock   clock.WithDelayedExecution
	metrics *metrics

	mu       sync.Mutex
	entries  map[string]*entry
	ofTenant map[string]int
	// next is when the next message of a tenant to a server may be sent.
	next map[[2]string]time.Time
}

// entry is the newest message of a key.
type entry struct {
	message Message
	// newer: the message was replaced while an attempt for the one before it is running.
	running, newer bool
	failures       int
	timer          clock.Timer
}

// NewQueue returns a queue. Few connections suffice: a message is one small request.
func NewQueue(c clock.WithDelayedExecution, weight func(tenant string) int) *Queue {
	return &Queue{
		pool: pool.New(pool.Options{
			Name: "reports", Slots: 8, Trials: 64, PerHost: 4, PerTenant: 2, Waiting: maxOfTenant, Reach: pool.ReachOf, Weight: weight,
		}, c),
		clock: c, metrics: newMetrics(), entries: map[string]*entry{}, ofTenant: map[string]int{}, next: map[[2]string]time.Time{},
	}
}

// Start implements manager.Runnable: when the context ends, nothing more is sent.
func (q *Queue) Start(ctx context.Context) error { return q.pool.Start(ctx) }

// Put adds a message, and reports whether there was room for it. It never waits.
func (q *Queue) Put(m Message) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.entries[m.Key]
	if e != nil {
		e.message, e.newer = m, e.running
		return true
	}
	if len(q.entries) >= maxMessages || q.ofTenant[m.Tenant] >= maxOfTenant {
		q.metrics.ended.WithLabelValues(string(m.Kind), outcomeDropped).Inc()
		return false
	}
	e = &entry{message: m}
	q.entries[m.Key] = e
	q.ofTenant[m.Tenant]++
	q.schedule(e, 0)
	return true
}

// Drop removes the message of a key. If it is being sent, it is not tried again.
func (q *Queue) Drop(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.entries[key]; e != nil {
		q.remove(e)
	}
}

// DropAll is Drop for all messages whose keys have the beginning.
func (q *Queue) DropAll(beginning string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for key, e := range q.entries {
		if strings.HasPrefix(key, beginning) {
			q.remove(e)
		}
	}
}

// Hurry tries again at once what failed, of the messages whose keys have the beginning: what made it fail was changed.
func (q *Queue) Hurry(beginning string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for key, e := range q.entries {
		if strings.HasPrefix(key, beginning) && e.failures > 0 && !e.running {
			e.failures = 0
			q.schedule(e, 0)
		}
	}
}

func (q *Queue) remove(e *entry) {
	if e.timer != nil {
		e.timer.Stop()
	}
	delete(q.entries, e.message.Key)
	if q.ofTenant[e.message.Tenant]--; q.ofTenant[e.message.Tenant] == 0 {
		delete(q.ofTenant, e.message.Tenant)
	}
}

func (q *Queue) schedule(e *entry, after time.Duration) {
	if e.timer != nil {
		e.timer.Stop()
	}
	e.timer = q.clock.AfterFunc(after, func() { go q.try(e) })
}

// try submits a message to the pool when it is the turn of its tenant at the server.
func (q *Queue) try(e *entry) {
	q.mu.Lock()
	m := e.message
	if q.entries[m.Key] != e || e.running {
		q.mu.Unlock()
		return
	}
	if wait := q.turn(m); wait > 0 {
		q.schedule(e, wait)
		q.mu.Unlock()
		return
	}
	e.running, e.newer = true, false
	q.mu.Unlock()
	began := q.clock.Now()
	done := func(err error) { q.ended(e, m, err, began) }
	_, err := q.pool.Submit(pool.Task{
		Source: m.Key, Host: m.Host, Tenant: m.Tenant, Priority: m.Kind.priority(), Timeout: attempt, Run: m.Send, Done: done,
	})
	if err != nil {
		done(err)
	}
}

// turn returns how long a message has to wait for those of the same tenant to the same server, and takes the turn if it need not.
func (q *Queue) turn(m Message) time.Duration {
	now, at := q.clock.Now(), [2]string{m.Tenant, m.Host}
	if wait := q.next[at].Sub(now); wait > 0 {
		return wait
	}
	if len(q.next) >= maxMessages {
		for known, next := range q.next {
			if !next.After(now) {
				delete(q.next, known)
			}
		}
	}
	q.next[at] = now.Add(gap)
	return 0
}

// ended records the end of an attempt.
func (q *Queue) ended(e *entry, m Message, err error, began time.Time) {
	if errors.Is(err, pool.ErrCanceled) {
		return // The process ends.
	}
	q.metrics.record(m.Kind, err, q.clock.Now().Sub(began))
	q.mu.Lock()
	e.running = false
	if q.entries[m.Key] != e { // It was dropped.
		q.mu.Unlock()
		return
	}
	switch {
	case err != nil:
		e.failures++
		pause := q.pause(err, e.failures)
		if _, limited := isLimited(err); limited { // The server limits all messages of the tenant.
			q.next[[2]string{m.Tenant, m.Host}] = q.clock.Now().Add(pause)
		}
		q.schedule(e, pause)
	case e.newer:
		e.failures = 0
		q.schedule(e, 0)
	default:
		q.remove(e)
	}
	q.mu.Unlock()
	m.Done(err)
}

// pause is how long the next attempt waits: as long as the server says, but at least the usual pause.
func (q *Queue) pause(err error, failures int) time.Duration {
	pause := backoff.Between(firstRetry, lastRetry, failures)
	var open *pool.OpenError
	if errors.As(err, &open) {
		pause = max(pause, open.Rest)
	}
	if limit, limited := isLimited(err); limited {
		pause = max(pause, limit.RetryAfter())
	}
	return pause
}
