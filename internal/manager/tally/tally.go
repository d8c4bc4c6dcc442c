// Package tally integrates over time what pods, claims and Services use, minute by minute. It reads no clock: each change has its time.
package tally

import (
	"math/big"
	"slices"
	"time"

	"github.com/kubeop/kubeop/internal/meter"
)

// resolution is the unit of time of the sums. Amounts have three digits more for it.
const (
	resolution = time.Millisecond
	digits     = 3
)

// Owner is the tenant, project and app to which amounts belong.
type Owner struct {
	Tenant, Project string
	// App is "" for what belongs to the project, and to none of its apps.
	App string
}

// Key identifies one thing that uses something, such as a pod, within its group.
type Key struct {
	Group meter.Group
	Name  string
}

// Rate is how much of a meter is used at a time. Its value is in billionths for the meters of CPU, and in units for all others.
type Rate struct {
	Meter string
	Value int64
}

// nanoDigits is how many digits of a Rate's value are behind the point, for the meters of CPU.
const nanoDigits = 9

func digitsOf(name string) int32 {
	if name == meter.CPURequested || name == meter.CPUUsed {
		return nanoDigits + digits
	}
	return digits
}

// Minute is what was used in a minute.
type Minute struct {
	Begin time.Time
	// Broken are the groups that were not followed for the whole minute, so their amounts are incomplete.
	Broken map[meter.Group]bool

	sums map[Owner]map[string]*big.Int
}

// Groups returns the groups that were followed from the beginning to the end, sorted.
func (m *Minute) Groups() (all []meter.Group) {
	for _, g := range meter.Groups {
		if !m.Broken[g] {
			all = append(all, g)
		}
	}
	return all
}

// Amounts returns what was used, of all groups.
func (m *Minute) Amounts() map[Owner]meter.Amounts {
	all := map[Owner]meter.Amounts{}
	for owner, sums := range m.sums {
		all[owner] = meter.Amounts{}
		for name, sum := range sums {
			all[owner][name] = meter.Of(sum, digitsOf(name))
		}
	}
	return all
}

type thing struct {
	owner Owner
	rates []Rate
	// since is the time up to which its use is in the sums.
	since time.Time
}

// Tally has the present rates of all things, and the minutes that were not taken yet. It is not safe for concurrent use.
type Tally struct {
	now    time.Time
	things map[Key]*thing
	// broken are the groups that are not followed.
	broken map[meter.Group]bool
	open   *Minute
	closed []*Minute
}

// New returns a tally that begins at a time, without any thing. All its groups are broken.
func New(at time.Time) *Tally {
	t := &Tally{things: map[Key]*thing{}, broken: map[meter.Group]bool{}}
	for _, g := range meter.Groups {
		t.broken[g] = true
	}
	t.begin(at)
	return t
}

// begin opens the minute of a time that is not its beginning: it is broken.
func (t *Tally) begin(at time.Time) {
	t.now = at.Truncate(resolution)
	t.openMinute(t.now.Truncate(time.Minute))
	for _, g := range meter.Groups {
		t.open.Broken[g] = true
	}
	for _, each := range t.things {
		each.since = t.now
	}
}

func (t *Tally) openMinute(begin time.Time) {
	t.open = &Minute{Begin: begin, Broken: map[meter.Group]bool{}, sums: map[Owner]map[string]*big.Int{}}
	for g, is := range t.broken {
		t.open.Broken[g] = is
	}
}

// Advance moves the time forward. It ignores an earlier time.
func (t *Tally) Advance(to time.Time) {
	to = to.Truncate(resolution)
	for end := t.open.Begin.Add(time.Minute); !to.Before(end); end = end.Add(time.Minute) {
		for _, each := range t.things {
			t.settle(each, end)
		}
		t.closed = append(t.closed, t.open)
		t.openMinute(end)
	}
	if to.After(t.now) {
		t.now = to
	}
}

// settle adds what a thing used until a time to the open minute.
func (t *Tally) settle(of *thing, until time.Time) {
	t.open.add(of, until.Sub(of.since))
	if until.After(of.since) {
		of.since = until
	}
}

// add adds what a thing uses in a span of time.
func (m *Minute) add(of *thing, passed time.Duration) {
	if passed <= 0 {
		return
	}
	sums := m.sums[of.owner]
	if sums == nil {
		sums = map[string]*big.Int{}
		m.sums[of.owner] = sums
	}
	for _, rate := range of.rates {
		sum := sums[rate.Meter]
		if sum == nil {
			sum = new(big.Int)
			sums[rate.Meter] = sum
		}
		sum.Add(sum, new(big.Int).Mul(big.NewInt(rate.Value), big.NewInt(int64(passed/resolution))))
	}
}

// Set records the rates of a thing from a time on. Without rates it uses nothing.
func (t *Tally) Set(at time.Time, key Key, owner Owner, rates ...Rate) {
	t.Advance(at)
	if before := t.things[key]; before != nil {
		t.settle(before, t.now)
		delete(t.things, key)
	}
	if len(rates) > 0 {
		t.things[key] = &thing{owner: owner, rates: rates, since: t.now}
	}
}

// SetSince is Set for a thing that already had these rates since an earlier time. It does not change minutes that were taken.
func (t *Tally) SetSince(at, since time.Time, key Key, owner Owner, rates ...Rate) {
	t.Set(at, key, owner, rates...)
	for _, m := range append(slices.Clone(t.closed), t.open) {
		from, until := m.Begin, m.Begin.Add(time.Minute)
		if since.After(from) {
			from = since.Truncate(resolution)
		}
		if t.now.Before(until) {
			until = t.now
		}
		m.add(&thing{owner: owner, rates: rates}, until.Sub(from))
	}
}

// Break marks a group as not followed from a time on, which may be in the past, until Mend.
func (t *Tally) Break(group meter.Group, since time.Time) {
	t.broken[group], t.open.Broken[group] = true, true
	for _, m := range t.closed {
		if m.Begin.Add(time.Minute).After(since) {
			m.Broken[group] = true
		}
	}
}

// Mend marks a group as followed from a time on. The first minute that is measured is the next one.
func (t *Tally) Mend(at time.Time, group meter.Group) {
	t.Advance(at)
	t.broken[group] = false
}

// Rebase continues at another time, because the clock was wrong. Minutes that were not taken before are lost.
func (t *Tally) Rebase(at time.Time) {
	t.closed = nil
	t.begin(at)
}

// Take returns the minutes that ended at a time or before, in their order. They are not returned again.
func (t *Tally) Take(until time.Time) (all []*Minute) {
	for len(t.closed) > 0 && !t.closed[0].Begin.Add(time.Minute).After(until) {
		all, t.closed = append(all, t.closed[0]), t.closed[1:]
	}
	return all
}
