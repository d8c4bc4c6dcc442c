package notice

import (
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/kubeop/kubeop/delivery/backoff"
)

// State is how an app is, or the repository of a tenant.
type State struct {
	// Unsettled: it is in progress, or became not ready only just now, so nothing is said of it yet.
	Unsettled bool
	// Failed: it is not ready since, with the reason and message of the condition.
	Failed          bool
	Reason, Message string
	Since           time.Time
	// Revision that it delivers.
	Revision string
	// Delivery identifies the last delivery that succeeded, and Delivered describes it; "" if there is none.
	Delivery, Delivered string
}

// States are those of a tenant's apps, by "<project>/<app>", and of its repository, by "".
type States map[string]State

// Filter selects what is sent to a receiver.
type Filter struct {
	// Severity is the lowest: with Error, deliveries are left out. A recovery is sent if the failure was.
	Severity Severity
	// Apps are patterns as of path.Match; without one all apps and the repository are meant.
	Apps []string
	// Alerts: the receiver keeps alerts, and wants to know which go on.
	Alerts bool
}

func (f Filter) has(app string) bool {
	if len(f.Apps) == 0 {
		return true
	}
	return app != "" && slices.ContainsFunc(f.Apps, func(pattern string) bool {
		is, err := path.Match(pattern, app)
		return err == nil && is
	})
}

const (
	// window and changes bound how many notices a receiver gets about an app that changes again and again.
	window  = 5 * time.Minute
	changes = 3
	// maxBatch bounds the notices of one request.
	maxBatch = 100
	// Repeat is how often alerts that go on are sent again.
	Repeat = 5 * time.Minute
)

// Sent is what a receiver was sent. Nothing was sent to the zero value.
type Sent struct {
	states  map[string]sentState
	alerted time.Time
}

// sentState is the state of an app that a receiver knows, and how many notices it got in the window that began then.
type sentState struct {
	State
	began   time.Time
	changes int
}

// Begin records states about which nothing is sent: the deliveries so far and, with failures, the failures too.
func (t *Sent) Begin(now States, failures bool) {
	t.states = map[string]sentState{}
	for app, s := range now {
		if !failures {
			s.Failed, s.Reason = false, ""
		}
		t.states[app] = sentState{State: s}
	}
}

// News are notices to send, and what the receiver knows when it has them. Again is when to look again although nothing changes; 0 is never.
type News struct {
	Notices []Notice
	Again   time.Duration

	known States
	gone  []string
}

// News returns what was not sent to a receiver yet.
func (t *Sent) News(states States, f Filter, now time.Time) News {
	news := News{known: States{}}
	for _, app := range slices.Sorted(maps.Keys(states)) {
		if s := states[app]; f.has(app) && !s.Unsettled {
			t.look(&news, app, s, f, now)
		}
	}
	for _, app := range slices.Sorted(maps.Keys(t.states)) {
		if _, there := states[app]; there {
			continue
		}
		news.gone = append(news.gone, app)
		if was := t.states[app]; f.Alerts && was.Failed {
			news.Notices = append(news.Notices, resolved(app, was.State))
		}
	}
	if f.Alerts {
		t.repeat(&news, states, f, now)
	}
	return news
}

// look adds what is new of an app.
func (t *Sent) look(news *News, app string, s State, f Filter, now time.Time) {
	was := t.states[app]
	turned := s.Failed != was.Failed || s.Failed && s.Reason != was.Reason
	delivered := f.Severity == Info && !f.Alerts && !s.Failed && s.Delivery != "" && s.Delivery != was.Delivery
	if !turned && !delivered {
		return
	}
	if left := was.began.Add(window).Sub(now); left > 0 && was.changes >= changes {
		news.Again = backoff.Sooner(news.Again, left)
		return
	}
	if len(news.Notices) >= maxBatch {
		news.Again = backoff.Sooner(news.Again, time.Second)
		return
	}
	news.known[app] = s
	switch {
	case s.Failed:
		news.Notices = append(news.Notices, failed(app, s))
	case turned && f.Alerts:
		news.Notices = append(news.Notices, resolved(app, was.State))
	case turned:
		news.Notices = append(news.Notices, Notice{App: app, Severity: Info, Reason: Recovered, Message: "ready again, after " + was.Reason, Revision: s.Revision, Since: now})
	default:
		news.Notices = append(news.Notices, Notice{App: app, Severity: Info, Reason: Delivered, Message: s.Delivered, Revision: s.Revision, Since: s.Since})
	}
}

// repeat adds the alerts that go on, whenever something is sent or they would soon end by themselves.
func (t *Sent) repeat(news *News, states States, f Filter, now time.Time) {
	left := t.alerted.Add(Repeat).Sub(now)
	var on []Notice
	for app, was := range t.states {
		s, there := states[app]
		if _, new := news.known[app]; new || !there || !was.Failed || !f.has(app) {
			continue
		}
		if s.Unsettled {
			s = was.State
		}
		on = append(on, failed(app, s))
	}
	if len(on) == 0 {
		return
	}
	if left > 0 && len(news.Notices) == 0 {
		news.Again = backoff.Sooner(news.Again, left)
		return
	}
	slices.SortFunc(on, func(a, b Notice) int { return strings.Compare(a.App, b.App) })
	news.Notices = append(news.Notices, on...)
}

// Record notes that the receiver has the news.
func (t *Sent) Record(n News, now time.Time) {
	if t.states == nil {
		t.states = map[string]sentState{}
	}
	for app, s := range n.known {
		was := t.states[app]
		if now.Sub(was.began) >= window {
			was.began, was.changes = now, 0
		}
		t.states[app] = sentState{s, was.began, was.changes + 1}
	}
	for _, app := range n.gone {
		delete(t.states, app)
	}
	t.alerted = now
}

func failed(app string, s State) Notice {
	return Notice{App: app, Severity: Error, Reason: s.Reason, Message: s.Message, Revision: s.Revision, Since: s.Since}
}

func resolved(app string, s State) Notice {
	n := failed(app, s)
	n.Resolved = true
	return n
}
