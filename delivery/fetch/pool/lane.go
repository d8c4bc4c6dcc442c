package pool

// The lanes: the platform's own slot, tasks at hosts that answered last time, and tasks at hosts that are unknown or did not answer.
const (
	reserved = iota
	proven
	trial
	lanes
)

// lane is a number of slots, of which apps may use a part.
type lane struct {
	slots, apps int
	taken       int
	byApps      int
}

func (l *lane) free(t *Task) bool {
	return l.taken < l.slots && (t.Priority != App || l.byApps < l.apps)
}

func (l *lane) take(t *Task) {
	l.taken++
	if t.Priority == App {
		l.byApps++
	}
}

func (l *lane) leave(t *Task) {
	l.taken--
	if t.Priority == App {
		l.byApps--
	}
}

// admission says what to do with a task now.
type admission int

const (
	start admission = iota
	hold
	refuse
)

// admit reports whether a task may start, as far as its host and the lanes are concerned.
func (p *Pool) admit(t *Task) admission {
	h := p.hosts.of(t)
	switch h.admits(p.clock.Now(), t.Requested) {
	case refuse:
		return refuse
	case hold:
		return hold
	}
	if t.Host != "" && h.running >= p.PerHost && t.Priority != Platform {
		return hold
	}
	if !p.lanes[p.laneOf(t, h)].free(t) {
		return hold
	}
	return start
}

func (p *Pool) laneOf(t *Task, h *host) int {
	switch {
	case t.Priority == Platform && p.lanes[reserved].free(t):
		return reserved
	case h.proven:
		return proven
	}
	return trial
}
