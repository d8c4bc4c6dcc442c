package main

import (
	"fmt"
	"strconv"

	"github.com/kubeop/kubeop/e2e/measure"
)

// figure is a measured value and its budget.
type figure struct {
	name string
	// of returns the value, and false if it was not measured.
	of func(*run) (float64, bool)
	// most is the budget, or -1 if there is none.
	most float64
	unit string
}

const noBudget = -1

// figures are the rows of the table, with kubeop's budgets.
var figures = []figure{
	{"first app ready", ready(func(r *run) float64 { return r.First }), noBudget, "s"},
	{"a tenth ready", ready(func(r *run) float64 { return r.Tenth }), noBudget, "s"},
	{"half ready", ready(func(r *run) float64 { return r.Half }), noBudget, "s"},
	{"first sync: all ready", ready(func(r *run) float64 { return r.All }), 360, "s"},
	{"first sync: CPU", ofPhase(firstSync, func(p phase) float64 { return p.CPUSeconds }), noBudget, "s"},
	{"first sync: requests per app", ofPhase(firstSync, func(p phase) float64 { return float64(p.Reads+p.Writes) / float64(p.Units) }), noBudget, ""},
	{"peak memory, first sync", ofPhase(firstSync, memory), 400, "MiB"},
	{"peak memory, pushes", ofPhase(pushes, memory), 400, "MiB"},
	{"peak memory, idle", ofPhase(idle, memory), 400, "MiB"},
	{"peak memory, restart", ofPhase(restart, memory), 400, "MiB"},
	{"largest object", func(r *run) (float64, bool) { return float64(r.Largest.Bytes) / 1000, r.Largest.Bytes > 0 }, noBudget, "kB"},
	{"push → applied, p50", ofPushes((*run).pushSeconds, 0.5), 0.5, "s"},
	{"push → applied, p99", ofPushes((*run).pushSeconds, 0.99), 1.5, "s"},
	{"push: CPU, p50", ofPushes((*run).pushCPU, 0.5), 0.3, "s"},
	{"push: CPU, most", ofPushes((*run).pushCPU, 1), noBudget, "s"},
	{"push: reads", ofPhase(pushes, func(p phase) float64 { return float64(p.Reads) / float64(p.Units) }), noBudget, ""},
	{"push: writes", ofPhase(pushes, func(p phase) float64 { return float64(p.Writes) / float64(p.Units) }), noBudget, ""},
	{"idle: requests per second", ofPhase(idle, perSecond), 1, ""},
	{"idle: CPU per minute", ofPhase(idle, func(p phase) float64 { return 60 * p.CPUSeconds / p.Seconds }), noBudget, "s"},
	{"restart until at rest", ofPhase(restart, func(p phase) float64 { return p.Seconds }), 20, "s"},
	{"restart: reads", ofPhase(restart, func(p phase) float64 { return float64(p.Reads) }), 100, ""},
	{"restart: writes", ofPhase(restart, func(p phase) float64 { return float64(p.Writes) }), 0, ""},
	{"machine: a read of memory, before", func(r *run) (float64, bool) { return r.ReadBefore, r.ReadBefore > 0 }, noBudget, "ns"},
	{"machine: a read of memory, after", func(r *run) (float64, bool) { return r.ReadAfter, r.ReadAfter > 0 }, noBudget, "ns"},
}

// unreachablePush is the maximum time of a push while other Git hosts do not answer, at p99, in seconds.
const unreachablePush = 1.0

func memory(p phase) float64 { return float64(p.PeakRSS) / (1 << 20) }

// perSecond also counts watches and leases, because an idle operator sends them too.
func perSecond(p phase) float64 { return float64(p.Reads+p.Writes+p.Watches+p.Leases) / p.Seconds }

func ready(of func(*run) float64) func(*run) (float64, bool) {
	return func(r *run) (float64, bool) { return of(r), r.Ready == r.Apps }
}

func ofPhase(name string, of func(phase) float64) func(*run) (float64, bool) {
	return func(r *run) (float64, bool) {
		p, there := r.phase(name)
		if !there {
			return 0, false
		}
		return of(p), true
	}
}

func ofPushes(of func(*run) []float64, share float64) func(*run) (float64, bool) {
	return func(r *run) (float64, bool) { return measure.Percentile(of(r), share), len(r.Pushes) > 0 }
}

func (f figure) show(r *run) string {
	value, measured := f.of(r)
	if !measured {
		return "-"
	}
	return measure.Fixed(value) + f.suffix()
}

func (f figure) budget() string {
	if f.most == noBudget {
		return ""
	}
	return "≤ " + strconv.FormatFloat(f.most, 'g', -1, 64) + f.suffix()
}

func (f figure) suffix() string {
	if f.unit == "" {
		return ""
	}
	return " " + f.unit
}

// broken lists the budgets that a run exceeded. Values that were not measured do not count, because a run that ended early fails anyway.
func (r *run) broken() []string {
	if r.Suspended > 0 {
		return nil // There is no budget for so many apps.
	}
	var all []string
	for _, f := range figures {
		value, measured := f.of(r)
		if measured && f.most != noBudget && value > f.most {
			all = append(all, fmt.Sprintf("%d apps: %s: %s, the budget is %s", r.Apps, f.name, f.show(r), f.budget()))
		}
	}
	if p99 := measure.Percentile(r.pushSeconds(), 0.99); r.Unreachable > 0 && p99 > unreachablePush {
		all = append(all, fmt.Sprintf("%d apps: push → applied with %d unreachable hosts, p99: %.2f s, the budget is ≤ %g s", r.Apps, r.Unreachable, p99, unreachablePush))
	}
	return all
}
