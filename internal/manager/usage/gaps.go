package usage

import (
	"maps"
	"math/bits"
	"slices"
	"time"

	"github.com/kubeop/kubeop/internal/meter"
	"github.com/kubeop/kubeop/internal/store"
)

// settled is how long after the end of a minute its measurement is stored at the latest. Until then, the minute is not missing.
const settled = 4 * time.Minute

// coverage has the minutes that were measured, by cluster, group of meters and hour: a bit for each minute.
type coverage struct {
	minutes map[string]map[meter.Group]map[time.Time]uint64
	// until is the end of the last minute that has to be stored by now.
	until time.Time
}

// coverageOf returns the coverage of the clusters that kubeop measured. cluster is the one that it measures now, "" for none.
func coverageOf(all []store.Covered, cluster string, now time.Time) coverage {
	c := coverage{map[string]map[meter.Group]map[time.Time]uint64{}, now.Add(-settled).Truncate(time.Minute)}
	if cluster != "" {
		c.minutes[cluster] = map[meter.Group]map[time.Time]uint64{}
	}
	for _, each := range all {
		if c.minutes[each.Cluster] == nil {
			c.minutes[each.Cluster] = map[meter.Group]map[time.Time]uint64{}
		}
		if c.minutes[each.Cluster][each.Group] == nil {
			c.minutes[each.Cluster][each.Group] = map[time.Time]uint64{}
		}
		c.minutes[each.Cluster][each.Group][each.Hour] = each.Minutes
	}
	return c
}

// missing returns the number of minutes of a span in which a group was not measured. Minutes that may still be stored do not count.
func (c coverage) missing(cluster string, group meter.Group, of span) (minutes int) {
	measured := c.minutes[cluster][group]
	for at := of.from; at.Before(of.until) && at.Before(c.until); at = at.Add(time.Hour) {
		expected := min(60, int(c.until.Sub(at)/time.Minute))
		minutes += expected - bits.OnesCount64(measured[at]&(1<<expected-1))
	}
	return minutes
}

// of returns the number of missing minutes of a span by group. It is empty for a cluster that kubeop does not measure.
func (c coverage) of(cluster string, s span) map[meter.Group]int {
	all := map[meter.Group]int{}
	if _, is := c.minutes[cluster]; !is {
		return all
	}
	for _, group := range meter.Groups {
		all[group] = c.missing(cluster, group, s)
	}
	return all
}

// gaps returns the gaps in a span. Steps with missing minutes that follow each other are one gap.
func (c coverage) gaps(s span) (all []Gap) {
	steps := s.steps()
	for _, cluster := range slices.Sorted(maps.Keys(c.minutes)) {
		for _, group := range meter.Groups {
			all = append(all, c.gapsOf(cluster, group, steps)...)
		}
	}
	return all
}

func (c coverage) gapsOf(cluster string, group meter.Group, steps []span) (all []Gap) {
	for _, step := range steps {
		minutes := c.missing(cluster, group, step)
		if minutes == 0 {
			continue
		}
		if last := len(all) - 1; last >= 0 && all[last].Until.Equal(step.from) {
			all[last].Until = step.until
			all[last].Minutes += minutes
			continue
		}
		all = append(all, Gap{Cluster: cluster, Meters: meter.NamesOf(group), From: step.from, Until: step.until, Minutes: minutes})
	}
	return all
}
