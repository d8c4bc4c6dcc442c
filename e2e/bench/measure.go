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

// observation is all counters at one time.
type observation struct {
	audit  measure.Counts
	client measure.ClientCounts
	// peak and the PSS values are in bytes: of the process, and of it and its children together.
	peak, own, all int64
}

// meter reads the resource usage of a process.
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

// observe reads all counters. With fresh it resets the memory peak.
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
		// The client's metrics have no resources, and include watches and leases.
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

// proportional returns the PSS of a process, and of it and its children together.
func proportional(pid int) (own, all int64, err error) {
	if own, err = measure.PSS(pid); err != nil {
		return 0, 0, err
	}
	children, err := measure.Children(pid)
	all = own
	for _, child := range children {
		memory, _ := measure.PSS(child) // It fails if the process has ended.
		all += memory
	}
	return own, all, err
}

// client adds up the controllers' own metrics.
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

// phase is the cost of one action.
type phase struct {
	Name string `json:"name"`
	// Apps is the number of apps of the action. Costs are divided by it.
	Apps int `json:"apps"`
	// Seconds is how long it took until all apps had their expected state. P50 and P99 are the times until apps were applied.
	Seconds float64 `json:"seconds"`
	P50     float64 `json:"appliedP50,omitempty"`
	P99     float64 `json:"appliedP99,omitempty"`
	// Requests are by kind, the most frequent first. The next fields are their sums by verb.
	Requests []line `json:"requests"`
	Reads    int    `json:"reads"`
	Writes   int    `json:"writes"`
	// Watches and Leases are otherwise counted in Audit only.
	Watches []line `json:"watches,omitempty"`
	Leases  int    `json:"leases"`
	// Audit and Client are all requests as counted by the API server and by the client. Audit is 0 without an audit log.
	Audit  int `json:"audit"`
	Client int `json:"client"`
	// Reconciles is the number of reconciliations of apps.
	Reconciles int     `json:"reconciles"`
	CPUSeconds float64 `json:"cpuSeconds"`
	// RSS is the value at the end and PeakRSS the maximum of the phase, in bytes.
	RSS     int64 `json:"rss"`
	PeakRSS int64 `json:"peakRSS"`
	// PSS is the operator's value at the end, in bytes. AllPSS includes its evaluation processes. Both are 0 if the processes run
	// elsewhere.
	PSS    int64 `json:"pss,omitempty"`
	AllPSS int64 `json:"allPSS,omitempty"`
}

// line is one kind of request.
type line struct {
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	Count    int    `json:"count"`
	// Refused is how many of them got an error.
	Refused int `json:"refused,omitempty"`
	// PerApp is Count divided by the apps of the phase.
	PerApp float64 `json:"perApp"`
}

// newPhase returns the difference of two observations.
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

// disagreement describes the difference between the counts of the API server and the client, or "" if it is at most 1%. It ignores
// three requests, because the lease may be renewed at either end of a phase.
func (p *phase) disagreement() string {
	apart := math.Abs(float64(p.Audit - p.Client))
	if p.Audit == 0 || apart <= max(3, 0.01*float64(p.Audit)) {
		return ""
	}
	return fmt.Sprintf("%s: the audit log counts %d requests, the client %d", p.Name, p.Audit, p.Client)
}
