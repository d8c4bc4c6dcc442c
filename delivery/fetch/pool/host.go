package pool

import (
	"fmt"
	"time"

	"github.com/kubeop/kubeop/delivery/backoff"
)

const (
	// tries are the connections in a row that have to fail, or the sources in a row that have to get no answer, before a host is
	// not asked any more. One source that gets none says nothing of the host's others.
	tries = 3
	// firstRest follows, and doubles each time up to lastRest.
	firstRest = 5 * time.Second
	lastRest  = 5 * time.Minute
	// probePause is the least between two probes that a person or a push requests.
	probePause = time.Second
	// maxHosts bounds the hosts remembered for one tenant, maxShared those of all Repositories, and maxGroups the tenants.
	maxHosts  = 256
	maxShared = 10_000
	maxGroups = 10_000
)

// OpenError means that a host gave no answer several times in a row, and is asked seldom until it does.
type OpenError struct {
	Host string
	// Until is when it is asked again. It is not in the message, which would else be another each time.
	Until time.Time
}

// Error implements error.
func (e *OpenError) Error() string {
	return fmt.Sprintf("%s gave no answer several times in a row, so it is asked seldom until it does", e.Host)
}

// State is that of the circuit breaker of a host.
type State string

// Closed lets tasks through, Open none but, now and then, one that was requested; Probing has one of them under way.
const (
	Closed  State = "closed"
	Open    State = "open"
	Probing State = "probing"
)

// hosts are the circuit breakers of hosts, by group and host. Failures of one tenant's apps do not count for another tenant, which may have a
// better name for the host, or better sources there. Repositories, which administrators bind, share it.
type hosts map[string]map[string]*host

// group is what tasks have in common that share circuit breakers.
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

// dropGroup forgets the tenant that asked any host the longest time ago.
func (all hosts) dropGroup() {
	var name string
	var oldest time.Time
	for g, known := range all {
		var last time.Time
		busy := false
		for _, h := range known {
			busy = busy || h.running > 0
			if h.asked.After(last) {
				last = h.asked
			}
		}
		if !busy && g != ofRepositories && (name == "" || last.Before(oldest)) {
			name, oldest = g, last
		}
	}
	delete(all, name)
}

// drop forgets the host that was not asked for the longest time.
func drop(known map[string]*host) {
	var name string
	var oldest *host
	for at, h := range known {
		if h.running == 0 && (oldest == nil || h.asked.Before(oldest.asked)) {
			name, oldest = at, h
		}
	}
	if oldest != nil {
		delete(known, name)
	}
}

// host is a circuit breaker, and how much is under way at the host.
type host struct {
	running int
	// proven: it answered last time.
	proven   bool
	answered time.Time
	// refused counts connections that failed in a row; silent are the sources that got no answer since the last.
	refused int
	silent  map[string]bool
	// until is when it may be asked again, zero while the breaker is closed; rests counts how often it opened in a row.
	until time.Time
	rests int
	// asked is when it was last asked; probing: it is being asked for a try.
	asked   time.Time
	probing bool
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

// ask says whether the breaker lets a task through.
func (h *host) ask(now time.Time, asked bool) admission {
	switch {
	case h.until.IsZero():
		return start
	case h.probing:
		return hold
	case !now.Before(h.until), asked && now.Sub(h.asked) >= probePause:
		return start
	}
	return refuse
}

// begin counts a task, and says whether it is a probe.
func (h *host) begin(now time.Time) (probe bool) {
	h.running++
	h.asked = now
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

// learn takes in how a task ended. A failure says nothing where the host answered another meanwhile.
func (h *host) learn(r *running, reach Reach, now time.Time) {
	if reach == Answered {
		*h = host{running: h.running, probing: h.probing, asked: h.asked, proven: true, answered: now}
		return
	}
	if h.answered.After(r.began) {
		return
	}
	h.proven = false
	if r.Host == "" {
		return // Several were asked, and it is unknown which of them gave no answer.
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
	if r.probe || h.until.IsZero() { // Else others that were under way have opened it already.
		h.until = now.Add(rest)
		h.rests++
	}
	h.silent = nil
}

func (h *host) refusal(name string) error { return &OpenError{Host: name, Until: h.until} }
