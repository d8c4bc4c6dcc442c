package main

import (
	"fmt"

	"github.com/kubeop/kubeop/e2e/measure"
)

// budgetsFrom is how many apps there must be for the budgets to hold: with fewer, what is done once for all weighs too much.
const budgetsFrom = 50

// limit is the most that something may cost per app.
type limit struct {
	phase, what string
	most        float64
	of          func(phase) int
}

// requests are all that the operator sent.
func requests(p phase) int { return p.Reads + p.Writes }

// limitsOf are kubeop's promises for apps of a type, in requests of the operator for an app of four objects of which an upgrade
// changes one. They do not depend on the machine.
func limitsOf(kind string) []limit {
	if kind == "helm" {
		return append([]limit{{install, "requests", 14, requests}, {upgrade, "requests", 14, requests}}, limits...)
	}
	return append([]limit{{install, "requests", 8, requests}, {upgrade, "requests", 4, requests}}, limits...)
}

// limits are those of all types.
var limits = []limit{
	{idle, "writes", 0, func(p phase) int { return p.Writes }},
	{idle, "reads", 0.1, func(p phase) int { return p.Reads }},
	// The answer to who asked.
	{asked, "writes", 1, func(p phase) int { return p.Writes }},
	{asked, "reads", 0.1, func(p phase) int { return p.Reads }},
	{restart, "writes", 0, func(p phase) int { return p.Writes }},
	{removal, "requests", 12, requests},
}

const (
	// peakLimit is the most memory the operator may use, in bytes, with up to peakApps apps.
	peakLimit, peakApps = 150 << 20, 500
	// ownLimit and allLimit are the most that the operator, and it with the processes in which it evaluates, may have at the end of a
	// phase, as PSS in bytes, with up to peakApps apps.
	ownLimit, allLimit = 130 << 20, 200 << 20
	// growthLimit is by how much it may grow with each app beyond, in bytes. With a smaller spread of sizes than
	// growthSpread it is not held: the garbage collector weighs more than the apps.
	growthLimit, growthSpread = 60 << 10, 1000
)

// broken lists the budgets that a run did not keep, a sentence each. A phase that was left out breaks none.
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

// peak is the most memory of any phase, in bytes.
func peak(phases []phase) int64 {
	most := int64(0)
	for _, p := range phases {
		most = max(most, p.PeakRSS)
	}
	return most
}

// growth is by how many bytes the peak of memory grows with each app from the smallest run to the largest.
func growth(runs []run) float64 {
	first, last := runs[0], runs[len(runs)-1]
	return float64(peak(last.Phases)-peak(first.Phases)) / float64(max(1, last.Apps-first.Apps))
}

// broken lists the budgets that were not kept.
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
