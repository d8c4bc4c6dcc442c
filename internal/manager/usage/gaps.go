package usage

import (
	"math/bits"
	"slices"
	"time"

	"github.com/kubeop/kubeop/internal/meter"
	"github.com/kubeop/kubeop/internal/store"
)

// settled is how long after its end a minute is expected to be stored.
const settled = 4 * time.Minute

// coverage says in which minutes something was measured, by cluster, group and hour.
type coverage struct {
	minutes map[string]map[meter.Group]map[time.Time]uint64
	// until is until when minutes are expected.
	until time.Time
}

// coverageOf returns the coverage of clusters that kubeop measured, and of one that it measures now, "" for none.
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

// missing returns in how many minutes of a span a group was not measured. Those that are still to be stored are not missing.
func (c coverage) missing(cluster string, group meter.Group, of span) (minutes int) {
	measured := c.minutes[cluster][group]
	for at := of.from; at.Before(of.until) && at.Before(c.until); at = at.Add(time.Hour) {
		expected := min(60, int(c.until.Sub(at)/time.Minute))
		minutes += expected - bits.OnesCount64(measured[at]&(1<<expected-1))
	}
	return minutes
}

// of returns what is missing of each group in a span. Nothing is missing of a cluster that others measure.
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

// gaps returns the steps in which something is missing, those that follow each other as one.
func (c coverage) gaps(s span) (all []Gap) {
	steps := s.steps()
	for _, cluster := range sorted(c.minutes) {
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

func sorted[T any](all map[string]T) (keys []string) {
	for key := range all {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
