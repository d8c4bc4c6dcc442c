package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/kubeop/kubeop/e2e/measure"
)

// observation is everything that is counted, at one moment.
type observation struct {
	audit  measure.Counts
	client measure.ClientCounts
	// peak is in bytes, and so are the memory of the process and that of it and its children together, as PSS.
	peak, own, all int64
}

// meter reads what a subject has used.
type meter struct {
	subject
	log *measure.AuditLog
}

func newMeter(s subject) (*meter, error) {
	m := &meter{subject: s}
	if s.AuditLog == "" {
		return m, nil
	}
	var err error
	m.log, err = measure.FollowAudit(s.AuditLog, s.Users)
	return m, err
}

func (m *meter) close() {
	if m.log != nil {
		m.log.Close()
	}
}

// requests returns what the audit log has counted.
func (m *meter) requests() (measure.Counts, error) {
	if m.log == nil {
		return measure.NewCounts(), nil
	}
	return m.log.Read()
}

// observe reads everything. A new peak of memory begins where fresh is set.
func (m *meter) observe(ctx context.Context, fresh bool) (observation, error) {
	o := observation{}
	var err error
	if o.client, err = m.client(ctx); err != nil {
		return o, err
	}
	if o.audit, err = m.requests(); err != nil {
		return o, err
	}
	if m.log == nil {
		// The client tells no resources, and watches and leases are in.
		for method, n := range o.client.Methods {
			o.audit.Requests[measure.Request{Verb: method, Resource: "(any)"}] = n
		}
	}
	o.peak = o.client.RSS
	pid := m.PID()
	if pid == 0 {
		return o, nil
	}
	used, err := measure.UsageOf(pid)
	if err != nil {
		return o, err
	}
	o.client.CPU, o.client.RSS, o.peak = used.CPU, used.RSS, used.PeakRSS
	if o.own, o.all, err = proportional(pid); err != nil {
		return o, err
	}
	if fresh {
		measure.ResetPeak(pid)
	}
	return o, nil
}

// proportional is the PSS of a process, and of it and its children together.
func proportional(pid int) (own, all int64, err error) {
	if own, err = measure.PSS(pid); err != nil {
		return 0, 0, err
	}
	children, err := measure.Children(pid)
	all = own
	for _, child := range children {
		memory, _ := measure.PSS(child) // Not there: it has ended.
		all += memory
	}
	return own, all, err
}

// client adds up what the controllers say about themselves.
func (m *meter) client(ctx context.Context) (measure.ClientCounts, error) {
	all := measure.ClientCounts{Methods: map[string]int{}}
	for _, url := range m.Metrics {
		one, err := measure.Scrape(ctx, url, m.Controller)
		if err != nil {
			return all, err
		}
		all.Requests += one.Requests
		for method, n := range one.Methods {
			all.Methods[method] += n
		}
		all.Reconciles += one.Reconciles
		all.Pending += one.Pending
		all.CPU += one.CPU
		all.RSS += one.RSS
	}
	return all, nil
}

// phase is what one act has cost.
type phase struct {
	Name string `json:"name"`
	// Apps is how many apps the act was about: what costs are divided by.
	Apps int `json:"apps"`
	// Seconds is how long it took until all were as asked; P50 and P99 how long until half and nearly all were applied.
	Seconds float64 `json:"seconds"`
	P50     float64 `json:"appliedP50,omitempty"`
	P99     float64 `json:"appliedP99,omitempty"`
	// Requests are by kind, the most frequent first. What follows is their sum, by what they are.
	Requests []line `json:"requests"`
	Reads    int    `json:"reads"`
	Writes   int    `json:"writes"`
	// Watches and Leases are in no other number but Audit.
	Watches []line `json:"watches,omitempty"`
	Leases  int    `json:"leases"`
	// Audit and Client are all requests as the API server and as the client counted them; Audit is 0 without an audit log.
	Audit  int `json:"audit"`
	Client int `json:"client"`
	// Reconciles is how often the controller looked at an app.
	Reconciles int     `json:"reconciles"`
	CPUSeconds float64 `json:"cpuSeconds"`
	// RSS is at the end, PeakRSS the highest of the phase, in bytes.
	RSS     int64 `json:"rss"`
	PeakRSS int64 `json:"peakRSS"`
	// PSS is of the operator at the end, AllPSS with the processes in which it evaluates, in bytes; 0 where the processes are elsewhere.
	PSS    int64 `json:"pss,omitempty"`
	AllPSS int64 `json:"allPSS,omitempty"`
}

// line is one kind of request.
type line struct {
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	Count    int    `json:"count"`
	// Refused is how many of them were answered with an error.
	Refused int `json:"refused,omitempty"`
	// PerApp is Count divided by the apps of the phase.
	PerApp float64 `json:"perApp"`
}

// newPhase compares two moments.
func newPhase(name string, apps int, before, after observation) phase {
	spent := after.audit.Since(before.audit)
	p := phase{
		Name: name, Apps: apps,
		Requests: lines(spent.Requests, spent.Refused, apps), Watches: lines(spent.Watches, nil, apps), Leases: spent.Leases,
		Audit: spent.All(), Client: after.client.Requests - before.client.Requests,
		Reconciles: after.client.Reconciles - before.client.Reconciles,
		CPUSeconds: after.client.CPU - before.client.CPU, RSS: after.client.RSS, PeakRSS: after.peak, PSS: after.own, AllPSS: after.all,
	}
	for kind, n := range spent.Requests {
		if kind.Writes() {
			p.Writes += n
		} else {
			p.Reads += n
		}
	}
	return p
}

func lines(byKind, refused map[measure.Request]int, apps int) []line {
	var all []line
	for _, r := range slices.SortedFunc(maps.Keys(byKind), func(a, b measure.Request) int {
		return cmp.Or(cmp.Compare(byKind[b], byKind[a]), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Resource, b.Resource))
	}) {
		all = append(all, line{Verb: r.Verb, Resource: r.Resource, Count: byKind[r], Refused: refused[r], PerApp: perApp(byKind[r], apps)})
	}
	return all
}

func perApp(count, apps int) float64 { return float64(count) / float64(max(1, apps)) }

// disagreement is what the API server and the client count differently, "" when it is at most one in a hundred. A
// renewal of the lease may be on its way at either end of a phase, so three requests are let pass.
func (p *phase) disagreement() string {
	apart := math.Abs(float64(p.Audit - p.Client))
	if p.Audit == 0 || apart <= max(3, 0.01*float64(p.Audit)) {
		return ""
	}
	return fmt.Sprintf("%s: the audit log counts %d requests, the client %d", p.Name, p.Audit, p.Client)
}
