package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestAPhaseOverItsBudgetIsBroken(t *testing.T) {
	within := []phase{
		{Name: install, Apps: 100, Reads: 200, Writes: 1000, PeakRSS: peakLimit},
		{Name: upgrade, Apps: 100, Reads: 300, Writes: 600},
		{Name: idle, Apps: 100, Reads: 10},
		{Name: requested, Apps: 100, Reads: 10, Writes: 100},
		{Name: oneOf, Apps: 1, Reads: 1000, Writes: 1000}, // has no budget
		{Name: restart, Apps: 100, Reads: 5000},
		{Name: removal, Apps: 100, Reads: 200, Writes: 1000},
	}
	tests := map[string]struct {
		apps   int
		change func([]phase)
		want   string
	}{
		"within all":           {apps: 100},
		"install":              {apps: 100, change: func(p []phase) { p[0].Reads++ }, want: "install: 12.01 requests"},
		"upgrade":              {apps: 100, change: func(p []phase) { p[1].Writes++ }, want: "upgrade: 9.01 requests"},
		"a write when idle":    {apps: 100, change: func(p []phase) { p[2].Writes++ }, want: "idle: 0.01 writes"},
		"reads when idle":      {apps: 100, change: func(p []phase) { p[2].Reads++ }, want: "idle: 0.11 reads"},
		"more than the answer": {apps: 100, change: func(p []phase) { p[3].Writes++ }, want: "requested: 1.01 writes"},
		"a write by a restart": {apps: 100, change: func(p []phase) { p[5].Writes++ }, want: "restart: 0.01 writes"},
		"removal":              {apps: 100, change: func(p []phase) { p[6].Reads++ }, want: "removal: 12.01 requests"},
		"memory":               {apps: 500, change: func(p []phase) { p[0].PeakRSS += 1 << 20 }, want: "151 MiB of memory"},
		"memory of operator":   {apps: 500, change: func(p []phase) { p[0].PSS = 131 << 20 }, want: "131 MiB of memory of the operator"},
		"with its processes":   {apps: 500, change: func(p []phase) { p[1].AllPSS = 201 << 20 }, want: "201 MiB with its processes"},
		"memory of many apps":  {apps: 501, change: func(p []phase) { p[0].PeakRSS += 1 << 20 }},
		"too few apps":         {apps: budgetsFrom - 1, change: func(p []phase) { p[0].Reads += 1000 }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := run{Apps: test.apps, Phases: append([]phase{}, within...)}
			if test.change != nil {
				test.change(r.Phases)
			}
			got := r.broken("helm")
			if test.want == "" && len(got) > 0 || test.want != "" && (len(got) != 1 || !strings.Contains(got[0], test.want)) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestAppsWithoutAChartHaveBudgetsOfTheirOwn: 8 requests, and that of the claim of a host name.
func TestAppsWithoutAChartHaveBudgetsOfTheirOwn(t *testing.T) {
	for reads, want := range map[int]string{100: "", 101: "install: 9.01 requests per app, at most 9 are allowed"} {
		r := run{Apps: 100, Phases: []phase{{Name: install, Apps: 100, Reads: reads, Writes: 800}}}
		if got := strings.Join(r.broken("git"), "; "); (got != "") != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%d reads: got %q, want %q", reads, got, want)
		}
	}
}

func TestGrowthIsABudget(t *testing.T) {
	of := func(most int64) *report {
		r := &report{Runs: []run{{Apps: 500, Phases: []phase{{PeakRSS: 100 << 20}}}, {Apps: 2000, Phases: []phase{{PeakRSS: most}}}}}
		r.conclude()
		return r
	}
	if r := of(100<<20 + 1500*growthLimit); len(r.Broken) != 0 || r.GrowthPerApp != growthLimit {
		t.Errorf("%g bytes: %q", r.GrowthPerApp, r.Broken)
	}
	r := &report{Runs: []run{{Apps: 10}, {Apps: 20, Phases: []phase{{PeakRSS: 10 << 20}}}}}
	if r.conclude(); len(r.Broken) != 0 || r.GrowthPerApp != 1<<20 {
		t.Errorf("sizes too close: %g bytes: %q", r.GrowthPerApp, r.Broken)
	}
	if r := of(100<<20 + 1500*(growthLimit+1024)); len(r.Broken) != 1 || !strings.Contains(r.Broken[0], "61 KiB per app") {
		t.Errorf("%g bytes: %q", r.GrowthPerApp, r.Broken)
	}
}

func TestARunFailsIfItBreaksABudgetOrItsCountsAreDoubtful(t *testing.T) {
	over := &report{Broken: []string{"install: too many"}, Doubts: []string{"counts differ"}}
	tests := map[string]struct {
		settings settings
		report   *report
		fails    bool
	}{
		"over budget":     {settings{driver: "kubeop", budget: true}, over, true},
		"doubtful counts": {settings{driver: "kubeop", budget: true}, &report{Doubts: over.Doubts}, true},
		"within":          {settings{driver: "kubeop", budget: true}, &report{}, false},
		"only printed":    {settings{driver: "kubeop"}, over, false},
		"another driver":  {settings{driver: "flux", budget: true}, over, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := verdict(test.settings, test.report); (err != nil) != test.fails {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAReportIsPrintedAsTables(t *testing.T) {
	r := &report{Type: "helm", Driver: "kubeop", Chart: "oci", Runs: []run{{Apps: 2, Phases: []phase{
		{Name: install, Apps: 2, Reads: 1, Writes: 4, Requests: []line{{"patch", "apps", 4, 0, 2}, {"get", "secrets", 1, 0, 0.5}}},
		{Name: upgrade, Apps: 2, Requests: []line{{"get", "secrets", 2, 0, 1}}, Watches: []line{{"watch", "pods", 1, 0, 0.5}}},
	}}}}
	var out bytes.Buffer
	r.print(&out)
	var rows []string
	for line := range strings.Lines(out.String()) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	got := strings.Join(rows, "\n")
	for _, want := range []string{
		"2 apps of type helm, driver kubeop, chart from oci",
		"get secrets 0.50 1.00\npatch apps 2.00\n",
		"watch pods 1",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, out.String())
		}
	}
}
