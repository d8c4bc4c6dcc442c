package pool

import (
	"fmt"
	"time"

	"github.com/kubeop/kubeop/delivery/backoff"
)

const (
	// tries is how many connections in a row have to fail, or how many sources in a row have to get no answer, before a host is no longer
	// contacted. One source without an answer proves nothing about the host's others.
	tries = 3
	// firstRest is the first pause; it doubles each time up to lastRest.
	firstRest = 5 * time.Second
	lastRest  = 5 * time.Minute
	// probePause is the least pause between two probes that a person or a push requests.
	probePause = time.Second
	// maxHosts bounds the hosts remembered for one tenant, maxShared those of all Repositories, and maxGroups the tenants.
	maxHosts  = 256
	maxShared = 10_000
	maxGroups = 10_000
)

// OpenError means that a host gave no answer several times in a row, and is contacted rarely until it does.
type OpenError struct {
	Host string
	// Rest is the time until the next try; 0 or less while one is under way. It is not in the message, because the message would differ each time.
	Rest time.Duration
}

// Error implements error.
func (e *OpenError) Error() string {
	return fmt.Sprintf("%s gave no answer several times in a row, so it is contacted rarely until it does", e.Host)
}

// State is the state of the circuit breaker of a host.
type State string

// Closed admits tasks. Open admits none except, now and then, a requested one. Probing has one of them running.
const (
	Closed  State = "closed"
	Open    State = "open"
	Probing State = "probing"
)

// hosts are the circuit breakers of hosts, by group and host. Failures of one tenant's apps do not count for another tenant, which may
// reach the host by another name or have other sources there. Repositories, which administrators bind, share their breakers.
type hosts map[string]map[string]*host

// group identifies the tasks that share circuit breakers.
func group(t *Task) string {
	if t.Priority == App {
		return "tenant " + t.Tenant
	}
	return ofRepositories
}

func (all hosts) of(t *Task) *host {
	g := group(t)
	if all[g] == nil {
		if len(all) >= maxGroups {
			all.dropGroup()
		}
		all[g] = map[string]*host{}
	}
	known := all[g]
	if known[t.Host] == nil {
		limit := maxHosts
		if t.Priority != App {
			limit = maxShared
		}
		if len(known) >= limit {
			drop(known)
		}
		known[t.Host] = &host{}
	}
	return known[t.Host]
}

// dropGroup drops the tenant that has contacted no host for the longest time.
func (all hosts) dropGroup() {
	var name string
	var oldest time.Time
	for g, known := range all {
		var last time.Time
		busy := false
		for _, h := range known {
			busy = busy || h.running > 0
			if h.contacted.After(last) {
				last = h.contacted
			}
		}
		if !busy && g != ofRepositories && (name == "" || last.Before(oldest)) {
			name, oldest = g, last
		}
	}
	delete(all, name)
}

// drop drops the host that was not contacted for the longest time.
func drop(known map[string]*host) {
	var name string
	var oldest *host
	for at, h := range known {
		if h.running == 0 && (oldest == nil || h.contacted.Before(oldest.contacted)) {
			name, oldest = at, h
		}
	}
	if oldest != nil {
		delete(known, name)
	}
}

// host is a circuit breaker, and how much is running at the host.
type host struct {
	running int
	// proven: it answered last time.
	proven   bool
	answered time.Time
	// refused counts connections that failed in a row; silent are the sources that got no answer since the last.
	refused int
	silent  map[string]bool
	// until is when it may be contacted again, zero while the breaker is closed; rests counts how often it opened in a row.
	until time.Time
	rests int
	// contacted is when it was last contacted; probing: a probe is running.
	contacted time.Time
	probing   bool
}

func (h *host) state() State {
	switch {
	case h.until.IsZero():
		return Closed
	case h.probing:
		return Probing
	}
	return Open
}

// admits reports whether the breaker admits a task.
func (h *host) admits(now time.Time, requested bool) admission {
	switch {
	case h.until.IsZero():
		return start
	case h.probing:
		return hold
	case !now.Before(h.until), requested && now.Sub(h.contacted) >= probePause:
		return start
	}
	return refuse
}

// begin counts a task, and reports whether it is a probe.
func (h *host) begin(now time.Time) (probe bool) {
	h.running++
	h.contacted = now
	probe = !h.until.IsZero()
	h.probing = h.probing || probe
	return probe
}

func (h *host) leave(probe bool) {
	h.running--
	if probe {
		h.probing = false
	}
}

// learn records how a task ended. A failure proves nothing if the host answered another task meanwhile.
func (h *host) learn(r *running, reach Reach, now time.Time) {
	if reach == Answered {
		*h = host{running: h.running, probing: h.probing, contacted: h.contacted, proven: true, answered: now}
		return
	}
	if h.answered.After(r.began) {
		return
	}
	h.proven = false
	if r.Host == "" {
		return // Several hosts were contacted, and it is unknown which of them gave no answer.
	}
	if reach == Unconnected {
		h.refused++
	} else {
		if h.silent == nil {
			h.silent = map[string]bool{}
		}
		h.silent[r.Source] = true
	}
	if !r.probe && h.refused < tries && len(h.silent) < tries {
		return
	}
	rest := backoff.Between(firstRest, lastRest, h.rests+1)
	if r.probe || h.until.IsZero() { // Otherwise other running tasks have already opened it.
		h.until = now.Add(rest)
		h.rests++
	}
	h.silent = nil
}

func (h *host) refusal(name string, now time.Time) error {
	return &OpenError{Host: name, Rest: h.until.Sub(now)}
}
