package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/kubeop/kubeop/e2e/measure"
)

// The phases, in this order.
const (
	firstSync = "first sync"
	pushes    = "pushes"
	idle      = "idle"
	restart   = "restart"
)

// report is the whole measurement, in the format of -json.
type report struct {
	Layout string `json:"repositories"`
	// CPUs is the number of processors that the operator, the control plane and the Git server share.
	CPUs   int      `json:"cpus"`
	Runs   []*run   `json:"runs"`
	Broken []string `json:"broken"`
}

// run is the result for one size.
type run struct {
	Tenants int `json:"tenants"`
	Apps    int `json:"apps"`
	// Unreachable is the number of tenants on Git hosts that hang or refuse connections.
	Unreachable int `json:"unreachable,omitempty"`
	// Suspended is the number of additional, suspended apps.
	Suspended int `json:"suspended,omitempty"`
	// First, Tenth, Half and All are the times until the first app, a tenth, half and all were Ready, in seconds after the push.
	First float64 `json:"firstReady"`
	Tenth float64 `json:"tenthReady"`
	Half  float64 `json:"halfReady"`
	All   float64 `json:"allReady"`
	// Ready is the number of ready apps.
	Ready   int     `json:"ready"`
	Pushes  []push  `json:"pushes"`
	Phases  []phase `json:"phases"`
	Largest object  `json:"largestObject"`
	// ReadBefore and ReadAfter are the results of machineRead before the first phase and after the last.
	ReadBefore float64 `json:"readBefore"`
	ReadAfter  float64 `json:"readAfter"`

	layout            string
	pushCount         int
	idleFor           time.Duration
	hanging, refusing int
	unreachable       []string
}

// push is one commit that changed one app: the time from the push until it was applied, and the operator's CPU time for it.
type push struct {
	App        string  `json:"app"`
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpuSeconds"`
}

// phase is the cost of one action. Requests are divided by Units: apps or pushes.
type phase struct {
	Name       string  `json:"name"`
	Units      int     `json:"units"`
	Seconds    float64 `json:"seconds"`
	Reads      int     `json:"reads"`
	Writes     int     `json:"writes"`
	Watches    int     `json:"watches"`
	Leases     int     `json:"leases"`
	CPUSeconds float64 `json:"cpuSeconds"`
	PeakRSS    int64   `json:"peakRSS"`
	// Requests are counts by verb and resource, without watches and leases.
	Requests map[string]int `json:"requests"`
}

func newRun(tenants int, s settings) *run {
	return &run{
		Tenants: tenants, Apps: tenants * appsOfTenant, Unreachable: s.hanging + s.refusing, Suspended: s.suspended, layout: s.layout, pushCount: s.pushes,
		idleFor: s.idle, hanging: s.hanging, refusing: s.refusing,
	}
}

func (p *phase) count(spent measure.Counts) {
	p.Requests, p.Leases = map[string]int{}, spent.Leases
	for kind, n := range spent.Requests {
		p.Requests[kind.String()] = n
		if kind.Writes() {
			p.Writes += n
		} else {
			p.Reads += n
		}
	}
	for _, n := range spent.Watches {
		p.Watches += n
	}
}

func (r *run) setFirstSync(seconds []float64) {
	r.Ready = len(seconds)
	r.First, r.Tenth = measure.Percentile(seconds, 0), measure.Percentile(seconds, 0.1)
	r.Half, r.All = measure.Percentile(seconds, 0.5), measure.Percentile(seconds, 1)
}

func (r *run) pushSeconds() []float64 {
	var all []float64
	for _, p := range r.Pushes {
		all = append(all, p.Seconds)
	}
	return all
}

func (r *run) pushCPU() []float64 {
	var all []float64
	for _, p := range r.Pushes {
		all = append(all, p.CPUSeconds)
	}
	return all
}

// phase returns a phase, and false if it did not run.
func (r *run) phase(name string) (phase, bool) {
	i := slices.IndexFunc(r.Phases, func(p phase) bool { return p.Name == name })
	if i < 0 {
		return phase{}, false
	}
	return r.Phases[i], true
}

func (r *report) conclude() {
	r.Broken = []string{}
	for _, one := range r.Runs {
		r.Broken = append(r.Broken, one.broken()...)
	}
}

func (r *report) writeJSON(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.WriteFile(path, append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// print writes a column for each size.
func (r *report) print(out io.Writer) {
	_, _ = fmt.Fprintf(out, "\nRaw apps of one ConfigMap, projects in the %s repositories, %d CPUs for operator, control plane and Git\n\n", r.Layout, r.CPUs)
	t := measure.NewTable(out)
	header := []string{"figure"}
	for _, one := range r.Runs {
		header = append(header, fmt.Sprintf("%d apps", one.Apps))
	}
	t.Row(append(header, "budget")...)
	for _, f := range figures {
		row := []string{f.name}
		for _, one := range r.Runs {
			row = append(row, f.show(one))
		}
		t.Row(append(row, f.budget())...)
	}
	t.End()
	for _, one := range r.Runs {
		one.printRequests(out)
	}
	for _, line := range r.Broken {
		_, _ = fmt.Fprintln(out, "Over budget:", line)
	}
}

// printRequests writes a line for each kind of request and a column for each phase.
func (r *run) printRequests(out io.Writer) {
	_, _ = fmt.Fprintf(out, "\nRequests of %d apps: per app, per push, and in all\n\n", r.Apps)
	total := map[string]int{}
	header := []string{"verb and resource"}
	for _, p := range r.Phases {
		header = append(header, p.Name)
		for kind, n := range p.Requests {
			total[kind] += n
		}
	}
	t := measure.NewTable(out)
	t.Row(header...)
	for _, kind := range slices.SortedFunc(maps.Keys(total), func(a, b string) int { return cmp.Or(total[b]-total[a], cmp.Compare(a, b)) }) {
		row := []string{kind}
		for _, p := range r.Phases {
			if p.Units > 1 {
				row = append(row, measure.Fixed(float64(p.Requests[kind])/float64(p.Units)))
			} else {
				row = append(row, strconv.Itoa(p.Requests[kind]))
			}
		}
		t.Row(row...)
	}
	t.End()
}
