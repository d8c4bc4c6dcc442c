package pool

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// try has a task run at a host from a time on, and end at once.
func try(h *host, source string, reach Reach, at time.Time) {
	t := &Task{Source: source, Host: "h:443"}
	r := &running{Task: t, host: h, began: at, probe: h.begin(at)}
	h.leave(r.probe)
	h.learn(r, reach, at)
}

func TestOnlyUnansweredAttemptsOpenTheCircuitBreaker(t *testing.T) {
	type attempt struct {
		source string
		reach  Reach
	}
	for name, tc := range map[string]struct {
		attempts []attempt
		want     State
	}{
		"three connections that fail":       {[]attempt{{"a", Unconnected}, {"a", Unconnected}, {"a", Unconnected}}, Open},
		"two":                               {[]attempt{{"a", Unconnected}, {"b", Unconnected}}, Closed},
		"three sources without answer":      {[]attempt{{"a", Silent}, {"b", Silent}, {"c", Silent}}, Open},
		"one source, three times":           {[]attempt{{"a", Silent}, {"a", Silent}, {"a", Silent}, {"b", Silent}}, Closed},
		"failures of both kinds":            {[]attempt{{"a", Silent}, {"b", Silent}, {"a", Unconnected}, {"a", Unconnected}}, Closed},
		"an answer between":                 {[]attempt{{"a", Unconnected}, {"a", Unconnected}, {"a", Answered}, {"a", Unconnected}, {"a", Unconnected}}, Closed},
		"an answer between silent sources":  {[]attempt{{"a", Silent}, {"b", Silent}, {"c", Answered}, {"c", Silent}}, Closed},
		"an answer with an error is answer": {[]attempt{{"a", Answered}, {"b", Answered}, {"c", Answered}}, Closed},
	} {
		t.Run(name, func(t *testing.T) {
			h := &host{}
			for i, a := range tc.attempts {
				try(h, a.source, a.reach, noon.Add(time.Duration(i)*time.Second))
			}
			if got := h.state(); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if last := tc.attempts[len(tc.attempts)-1].reach; h.proven != (last == Answered) || h.running != 0 {
				t.Errorf("proven is %v, %d run", h.proven, h.running)
			}
		})
	}
}

// TestEachProbeThatFailsDoublesTheRest up to five minutes, and an answer closes the breaker and begins anew.
func TestEachProbeThatFailsDoublesTheRest(t *testing.T) {
	h, now := &host{}, noon
	open := func() {
		for range tries {
			try(h, "a", Unconnected, now)
		}
	}
	open()
	for _, want := range []time.Duration{5, 10, 20, 40, 80, 160, 300, 300} {
		if rest := h.until.Sub(now); rest != want*time.Second {
			t.Fatalf("it rests for %s, want %ds", rest, want)
		}
		if h.admits(h.until.Add(-1), false) != refuse || h.admits(h.until, false) != start {
			t.Fatalf("it is not asked again after exactly %ds", want)
		}
		now = h.until
		try(h, "a", Unconnected, now)
	}
	try(h, "a", Answered, h.until)
	if h.state() != Closed || !h.proven {
		t.Fatalf("after an answer it is %s", h.state())
	}
	now = now.Add(time.Hour)
	open()
	if rest := h.until.Sub(now); rest != 5*time.Second {
		t.Errorf("after an answer it rests for %s at first, want %s", rest, 5*time.Second)
	}
}

// TestAProbeWithoutAnswerProlongsTheRest: one is enough, from any source.
func TestAProbeWithoutAnswerProlongsTheRest(t *testing.T) {
	h := &host{}
	for _, source := range []string{"a", "b", "c"} {
		try(h, source, Silent, noon)
	}
	at := h.until
	try(h, "a", Silent, at)
	if rest := h.until.Sub(at); rest != 2*firstRest {
		t.Errorf("after the probe it rests for %s, want %s", rest, 2*firstRest)
	}
}

func TestOnlyRequestedTasksProbeAHostWithAnOpenBreaker(t *testing.T) {
	h := &host{until: noon.Add(time.Minute), contacted: noon}
	for name, tc := range map[string]struct {
		after time.Duration
		asked bool
		want  admission
	}{
		"by itself, at once":      {0, false, refuse},
		"requested, at once":      {0, true, refuse},
		"requested, almost 1 s":   {time.Second - 1, true, refuse},
		"requested, after 1 s":    {time.Second, true, start},
		"by itself, after 1 s":    {time.Second, false, refuse},
		"by itself, almost a min": {time.Minute - 1, false, refuse},
		"by itself, after a min":  {time.Minute, false, start},
	} {
		t.Run(name, func(t *testing.T) {
			if got := h.admits(noon.Add(tc.after), tc.asked); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestOneProbeAtATime(t *testing.T) {
	h := &host{until: noon, contacted: noon.Add(-time.Hour)}
	if !h.begin(noon) || h.state() != Probing {
		t.Fatalf("what begins at a host that rested is no probe: %s", h.state())
	}
	if got := h.admits(noon.Add(time.Hour), true); got != hold {
		t.Errorf("beside a probe: %v, want %v", got, hold)
	}
	h.leave(true)
	if h.state() != Open || h.running != 0 {
		t.Errorf("after a probe that was canceled it is %s, %d run", h.state(), h.running)
	}
}

// TestFailuresOfRunningTasksDoNotProlongAPause: many tasks at one host end about the same time.
func TestFailuresOfRunningTasksDoNotProlongAPause(t *testing.T) {
	h := &host{}
	var under []*running
	for range 5 {
		under = append(under, &running{Task: &Task{Source: "a", Host: "h"}, host: h, began: noon, probe: h.begin(noon)})
	}
	for i, r := range under {
		h.leave(r.probe)
		h.learn(r, Unconnected, noon.Add(time.Duration(i)*time.Second))
	}
	if want := noon.Add(2*time.Second + firstRest); !h.until.Equal(want) || h.rests != 1 {
		t.Errorf("it rests until %s for the %d. time, want until %s", h.until, h.rests, want)
	}
}

func TestTasksOfSeveralHostsOpenNoBreaker(t *testing.T) {
	h := &host{}
	for range 2 * tries {
		h.learn(&running{Task: &Task{Source: "a"}, host: h, began: noon}, Unconnected, noon)
	}
	if h.state() != Closed {
		t.Errorf("it is %s, want %s", h.state(), Closed)
	}
}

func TestTheBreakerOfATenantsAppsIsItsOwn(t *testing.T) {
	all := hosts{}
	mine := all.of(&Task{Host: "h:443", Tenant: "acme", Priority: App})
	for name, tc := range map[string]struct {
		task Task
		same bool
	}{
		"the same":                         {Task{Host: "h:443", Tenant: "acme", Priority: App, Source: "x"}, true},
		"another tenant's":                 {Task{Host: "h:443", Tenant: "other", Priority: App}, false},
		"another host's":                   {Task{Host: "h:80", Tenant: "acme", Priority: App}, false},
		"a Repository's of the same owner": {Task{Host: "h:443", Tenant: "acme", Priority: Repository}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if same := all.of(&tc.task) == mine; same != tc.same {
				t.Errorf("the same is %v, want %v", same, tc.same)
			}
		})
	}
	one, two := all.of(&Task{Host: "h:443", Tenant: "acme", Priority: Repository}), all.of(&Task{Host: "h:443", Tenant: "other", Priority: Platform})
	if one != two {
		t.Error("Repositories do not share a breaker")
	}
}

func TestTheLeastRecentlyContactedHostIsForgotten(t *testing.T) {
	all := hosts{}
	for n := range maxHosts {
		all.of(&Task{Host: fmt.Sprint(n), Tenant: "acme", Priority: App}).contacted = noon.Add(time.Duration(n) * time.Second)
	}
	known := all["tenant acme"]
	known["0"].running = 1
	all.of(&Task{Host: "new", Tenant: "acme", Priority: App})
	if known["0"] == nil || known["1"] != nil || known["2"] == nil || len(known) != maxHosts {
		t.Errorf("of %d hosts: busy %v, oldest %v, next %v", len(known), known["0"] != nil, known["1"] != nil, known["2"] != nil)
	}
}

// TestRepositoriesRememberMoreHosts than one tenant does, because they are those of all tenants.
func TestRepositoriesRememberMoreHosts(t *testing.T) {
	for name, tc := range map[string]struct {
		priority Priority
		want     int
	}{
		"apps": {App, maxHosts}, "Repositories": {Repository, maxShared}, "the platform": {Platform, maxShared},
	} {
		t.Run(name, func(t *testing.T) {
			all := hosts{}
			for n := range tc.want + 1 {
				all.of(&Task{Host: fmt.Sprint(n), Tenant: "acme", Priority: tc.priority}).contacted = noon.Add(time.Duration(n) * time.Second)
			}
			known := all[group(&Task{Tenant: "acme", Priority: tc.priority})]
			if len(known) != tc.want || known["0"] != nil || known["1"] == nil {
				t.Errorf("%d hosts are remembered, want %d; the first: %v, the second: %v", len(known), tc.want, known["0"] != nil, known["1"] != nil)
			}
		})
	}
}

func TestTheErrorSaysWhetherTheHostAnswered(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	read := &net.OpError{Op: "read", Err: errors.New("connection reset")}
	for name, tc := range map[string]struct {
		err  error
		want Reach
	}{
		"no error":                    {nil, Answered},
		"no connection":               {fmt.Errorf("%w: %w", failure.ErrUnavailable, dial), Unconnected},
		"a connection that broke":     {fmt.Errorf("%w: %w", failure.ErrUnavailable, read), Silent},
		"no answer in time":           {failure.TooSlow("x", time.Second), Silent},
		"an error of the server":      {failure.New(failure.ErrServer, "x"), Answered},
		"no such thing":               {failure.New(failure.ErrNotFound, "x"), Answered},
		"the timeout of a task alone": {context.DeadlineExceeded, Answered},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ReachOf(tc.err); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestALaneKeepsSlotsFromApps(t *testing.T) {
	app, repository := &Task{Priority: App}, &Task{Priority: Repository}
	l := lane{slots: 3, apps: 2}
	l.take(app)
	if !l.free(app) || !l.free(repository) {
		t.Fatal("one of three slots is taken, and none is free")
	}
	l.take(app)
	if l.free(app) || !l.free(repository) {
		t.Fatal("apps take more than their slots, or Repositories may not take the rest")
	}
	l.take(repository)
	if l.free(repository) {
		t.Fatal("there are more slots than slots")
	}
	l.leave(app)
	if !l.free(app) || !l.free(repository) {
		t.Fatal("the slot is not given back")
	}
	l.leave(app)
	l.leave(repository)
	if diff := cmp.Diff(lane{slots: 3, apps: 2}, l, cmp.AllowUnexported(lane{})); diff != "" {
		t.Error(diff)
	}
}

func TestRefusedTasksRetryInOrderAndOncePerSource(t *testing.T) {
	var tried []string
	retry := func(what string) func() { return func() { tried = append(tried, what) } }
	o := overflow{}
	o.add(&Task{Tenant: "acme", Source: "a", Retry: retry("a, first")})
	o.add(&Task{Tenant: "acme", Source: "b", Retry: retry("b")})
	o.add(&Task{Tenant: "acme", Source: "a", Retry: retry("a, again")})
	o.add(&Task{Tenant: "other", Source: "a", Retry: retry("a of other")})
	o.add(&Task{Tenant: "none", Source: "a"})
	for _, tenant := range []string{"acme", "none", "acme", "acme", "other"} {
		o.next(tenant)()
	}
	if diff := cmp.Diff([]string{"a, again", "b", "a of other"}, tried); diff != "" || len(o) != 0 {
		t.Errorf("%d tenants are left\n%s", len(o), diff)
	}
	overflow(nil).add(&Task{Tenant: "acme", Source: "a", Retry: retry("x")})
	overflow(nil).next("acme")()
}

func TestTasksAreOrderedByPriorityAndRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after Task
	}{
		"the platform before what is requested":  {Task{Priority: Platform}, Task{Priority: Repository, Requested: true}},
		"what is requested before another look":  {Task{Priority: App, Requested: true}, Task{Priority: Repository}},
		"a Repository before an app":             {Task{Priority: Repository}, Task{Priority: App}},
		"a requested Repository before an app's": {Task{Priority: Repository, Requested: true}, Task{Priority: App, Requested: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if before, after := levelOf(&tc.before), levelOf(&tc.after); before >= after || after >= levels {
				t.Errorf("levels %d and %d of %d", before, after, levels)
			}
		})
	}
	if a, b := levelOf(&Task{Priority: Platform, Requested: true}), levelOf(&Task{Priority: Platform}); a != b {
		t.Errorf("levels of the platform: %d and %d", a, b)
	}
}
