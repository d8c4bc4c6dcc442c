package main

import (
	"fmt"

	"github.com/kubeop/kubeop/e2e/measure"
)

// budgetsFrom is the minimum number of apps for the budgets. With fewer apps, the requests that do not depend on their number weigh too much.
const budgetsFrom = 50

// limit is the maximum cost per app.
type limit struct {
	phase, what string
	most        float64
	of          func(phase) int
}

// requests returns the number of requests that the operator sent.
func requests(p phase) int { return p.Reads + p.Writes }

// limitsOf returns kubeop's budgets for apps of a type: requests of the operator for an app of four objects, of which an upgrade changes one.
// They do not depend on the machine.
func limitsOf(kind string) []limit {
	if kind == "helm" {
		return append([]limit{{install, "requests", 11 + claiming, requests}, {upgrade, "requests", 9, requests}}, limits...)
	}
	return append([]limit{{install, "requests", 8 + claiming, requests}, {upgrade, "requests", 4, requests}}, limits...)
}

// claiming is how many requests the HostnameClaim of each app's Ingress costs: it is created. Names that overlap are compared in the cache.
const claiming = 1

// limits are the budgets for all types.
var limits = []limit{
	{idle, "writes", 0, func(p phase) int { return p.Writes }},
	{idle, "reads", 0.1, func(p phase) int { return p.Reads }},
	// The status update that answers the request.
	{requested, "writes", 1, func(p phase) int { return p.Writes }},
	{requested, "reads", 0.1, func(p phase) int { return p.Reads }},
	{restart, "writes", 0, func(p phase) int { return p.Writes }},
	{removal, "requests", 12, requests},
}

const (
	// peakLimit is the maximum memory of the operator, in bytes, with up to peakApps apps.
	peakLimit, peakApps = 150 << 20, 500
	// ownLimit is the maximum memory of the operator at the end of a phase, and allLimit that of the operator with its evaluation processes,
	// as PSS in bytes, with up to peakApps apps.
	ownLimit, allLimit = 130 << 20, 200 << 20
	// growthLimit is by how many bytes the memory may grow with each further app. It applies only if the largest run has at least
	// growthSpread apps more than the smallest, because otherwise the garbage collector has more effect than the apps.
	growthLimit, growthSpread = 60 << 10, 1000
)

// broken lists the budgets that a run exceeded, a sentence each. A phase that was left out exceeds none.
func (r *run) broken(kind string) []string {
	if r.Apps < budgetsFrom {
		return nil
	}
	var all []string
	for _, p := range r.Phases {
		for _, l := range limitsOf(kind) {
			if got := perApp(l.of(p), p.Apps); l.phase == p.Name && got > l.most {
				all = append(all, fmt.Sprintf("%d apps, %s: %.2f %s per app, at most %g are allowed", r.Apps, p.Name, got, l.what, l.most))
			}
		}
	}
	if most := peak(r.Phases); r.Apps <= peakApps && most > peakLimit {
		all = append(all, fmt.Sprintf("%d apps: %s of memory, at most %s are allowed", r.Apps, measure.MiB(most), measure.MiB(peakLimit)))
	}
	for _, p := range r.Phases {
		if r.Apps <= peakApps && (p.PSS > ownLimit || p.AllPSS > allLimit) {
			all = append(all, fmt.Sprintf("%d apps, after %s: %s of memory of the operator, %s with its processes (PSS), at most %s and %s are allowed",
				r.Apps, p.Name, measure.MiB(p.PSS), measure.MiB(p.AllPSS), measure.MiB(ownLimit), measure.MiB(allLimit)))
		}
	}
	return all
}

// peak returns the maximum memory of all phases, in bytes.
func peak(phases []phase) int64 {
	most := int64(0)
	for _, p := range phases {
		most = max(most, p.PeakRSS)
	}
	return most
}

// growth returns by how many bytes the memory peak grows with each app, from the smallest run to the largest.
func growth(runs []run) float64 {
	first, last := runs[0], runs[len(runs)-1]
	return float64(peak(last.Phases)-peak(first.Phases)) / float64(max(1, last.Apps-first.Apps))
}

// broken lists the exceeded budgets of all runs.
func (r *report) broken() []string {
	var all []string
	for i := range r.Runs {
		all = append(all, r.Runs[i].broken(r.Type)...)
	}
	if r.GrowthPerApp > growthLimit && r.Runs[len(r.Runs)-1].Apps-r.Runs[0].Apps >= growthSpread {
		all = append(all, fmt.Sprintf("memory grows by %.0f KiB per app, at most %d KiB are allowed", r.GrowthPerApp/(1<<10), growthLimit>>10))
	}
	return all
}
