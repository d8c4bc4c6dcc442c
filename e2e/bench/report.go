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

	"github.com/kubeop/kubeop/e2e/measure"
)

// report is the whole measurement, in the format of -json.
type report struct {
	Driver string `json:"driver"`
	// Type of the apps.
	Type string `json:"type"`
	// Chart is the source of the chart. Values is the size of each app's values in bytes.
	Chart  string `json:"chart"`
	Values int    `json:"valuesBytes"`
	// Kubernetes is the API server's version. CPUs is the number of processors that it and the controllers share.
	Kubernetes string `json:"kubernetes,omitempty"`
	CPUs       int    `json:"cpus"`
	Runs       []run  `json:"runs"`
	// GrowthPerApp is how many bytes the memory peak grows with each app. It needs more than one run.
	GrowthPerApp float64 `json:"growthPerApp,omitempty"`
	// Broken are the exceeded budgets. Doubts are differences between the two request counts.
	Broken []string `json:"broken"`
	Doubts []string `json:"doubts"`
}

// run is the result of all phases for one number of apps.
type run struct {
	Apps   int     `json:"apps"`
	Phases []phase `json:"phases"`
}

// conclude computes the results that need all runs.
func (r *report) conclude() {
	if len(r.Runs) > 1 {
		r.GrowthPerApp = growth(r.Runs)
	}
	r.Broken, r.Doubts = r.broken(), []string{}
	for _, one := range r.Runs {
		for _, p := range one.Phases {
			if doubt := p.disagreement(); doubt != "" {
				r.Doubts = append(r.Doubts, doubt)
			}
		}
	}
}

// writeJSON writes the report into a file.
func (r *report) writeJSON(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// print writes the tables for readers.
func (r *report) print(out io.Writer) {
	for _, one := range r.Runs {
		_, _ = fmt.Fprintf(out, "\n%d apps of type %s, driver %s, chart from %s, %d bytes of values\n\n", one.Apps, r.Type, r.Driver, r.Chart, r.Values)
		one.printTotals(out)
		_, _ = fmt.Fprintf(out, "\nRequests per app, watches and leases left out\n\n")
		one.printKinds(out, func(p phase) []line { return p.Requests }, func(l line) string { return measure.Fixed(l.PerApp) })
		_, _ = fmt.Fprintf(out, "\nWatches opened, in all\n\n")
		one.printKinds(out, func(p phase) []line { return p.Watches }, func(l line) string { return strconv.Itoa(l.Count) })
	}
	if r.GrowthPerApp != 0 {
		_, _ = fmt.Fprintf(out, "\nThe peak of memory grows by %.1f KiB per app.\n", r.GrowthPerApp/(1<<10))
	}
	for _, doubt := range r.Doubts {
		_, _ = fmt.Fprintf(out, "\nThe counts do not agree: %s\n", doubt)
	}
}

// printTotals writes a line for each phase.
func (r *run) printTotals(out io.Writer) {
	t := measure.NewTable(out)
	t.Row("phase", "apps", "seconds", "p50", "p99", "reads", "writes", "requests", "looks", "watches", "leases", "audit", "client", "CPU s", "RSS", "peak", "PSS", "all PSS")
	for _, p := range r.Phases {
		watches := 0
		for _, l := range p.Watches {
			watches += l.Count
		}
		t.Row(p.Name, strconv.Itoa(p.Apps), measure.Fixed(p.Seconds), measure.Fixed(p.P50), measure.Fixed(p.P99),
			measure.Fixed(perApp(p.Reads, p.Apps)), measure.Fixed(perApp(p.Writes, p.Apps)), measure.Fixed(perApp(p.Reads+p.Writes, p.Apps)),
			strconv.Itoa(p.Reconciles), strconv.Itoa(watches), strconv.Itoa(p.Leases), strconv.Itoa(p.Audit), strconv.Itoa(p.Client),
			measure.Fixed(p.CPUSeconds), measure.MiB(p.RSS), measure.MiB(p.PeakRSS), measure.MiB(p.PSS), measure.MiB(p.AllPSS))
	}
	t.End()
	_, _ = fmt.Fprintln(out, "\nSeconds from the push: until all apps are ready, and until half (p50) and nearly all (p99) are applied. Reads, writes\n"+
		"and requests per app; the rest in all. Audit and client are all requests as the API server and the client count them.\n"+
		"All PSS is the memory of the operator and the processes in which it evaluates, at the end of the phase.")
}

// printKinds writes a line for each kind of request and a column for each phase. Reads come first, then the most frequent.
func (r *run) printKinds(out io.Writer, of func(phase) []line, show func(line) string) {
	cells, total := map[measure.Request]map[string]string{}, map[measure.Request]int{}
	header := []string{"verb and resource"}
	for _, p := range r.Phases {
		header = append(header, p.Name)
		for _, l := range of(p) {
			kind := measure.Request{Verb: l.Verb, Resource: l.Resource}
			if cells[kind] == nil {
				cells[kind] = map[string]string{}
			}
			cells[kind][p.Name] = show(l)
			total[kind] += l.Count
		}
	}
	t := measure.NewTable(out)
	t.Row(header...)
	for _, kind := range slices.SortedFunc(maps.Keys(cells), func(a, b measure.Request) int {
		switch {
		case a.Writes() == b.Writes():
			return cmp.Or(total[b]-total[a], cmp.Compare(a.String(), b.String()))
		case b.Writes():
			return -1
		}
		return 1
	}) {
		row := []string{kind.String()}
		for _, p := range r.Phases {
			row = append(row, cells[kind][p.Name])
		}
		t.Row(row...)
	}
	t.End()
}
