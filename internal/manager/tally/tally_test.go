package tally

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/internal/meter"
)

var (
	noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	web  = Owner{"acme", "shop", "web"}
)

func pod(name string) Key { return Key{meter.OfPods, name} }

// written returns minutes as texts: when, what was followed, and what was used.
func written(all []*Minute) (texts []string) {
	for _, m := range all {
		text := fmt.Sprint(m.Begin.Format("15:04"), " ", m.Groups())
		for _, owner := range []Owner{web, {"acme", "shop", ""}} {
			if amounts, has := m.Amounts()[owner]; has {
				text += " " + owner.App + ":" + amounts.String()
			}
		}
		texts = append(texts, text)
	}
	return texts
}

// following follows pods from noon on.
func following() *Tally {
	t := New(noon.Add(-time.Second))
	t.Mend(noon.Add(-time.Second), meter.OfPods)
	return t
}

func TestRequestsCountFromTheMomentTheyAreThere(t *testing.T) {
	tally := following()
	tally.Set(noon.Add(15*time.Second), pod("a"), web, Rate{meter.CPURequested, 500_000_000}, Rate{meter.Pods, 1})
	tally.Set(noon.Add(45*time.Second), pod("b"), web, Rate{meter.CPURequested, 1}, Rate{meter.Pods, 1})
	tally.Set(noon.Add(45*time.Second), pod("c"), Owner{"acme", "shop", ""}, Rate{meter.MemoryRequested, math.MaxInt64})
	tally.Set(noon.Add(75*time.Second), pod("a"), web, Rate{meter.CPURequested, 1_000_000_000}, Rate{meter.Pods, 1}) // Resized in place.
	tally.Set(noon.Add(90*time.Second+500*time.Microsecond), pod("a"), web)
	tally.Set(noon.Add(90*time.Second), pod("a"), web) // Late, and gone before.
	tally.Advance(noon.Add(3 * time.Minute))
	if diff := cmp.Diff([]string{
		"11:59 []",
		"12:00 [pods] web:cpu.requested=22.500000015 pods=60 :memory.requested=138350580552821637105",
		"12:01 [pods] web:cpu.requested=22.50000006 pods=90 :memory.requested=553402322211286548420",
		"12:02 [pods] web:cpu.requested=0.00000006 pods=60 :memory.requested=553402322211286548420",
	}, written(tally.Take(noon.Add(3*time.Minute)))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if again := tally.Take(noon.Add(time.Hour)); len(again) > 0 {
		t.Errorf("taken again are %q", written(again))
	}
}

// TestARateThatArrivesLateCountsFromItsBeginning in minutes that nobody took.
func TestARateThatArrivesLateCountsFromItsBeginning(t *testing.T) {
	for since, want := range map[time.Duration][]string{
		150 * time.Second:           {"12:01 [pods]", "12:02 [pods] web:pods=30", "12:03 [pods] web:pods=60"},
		190 * time.Second:           {"12:01 [pods]", "12:02 [pods]", "12:03 [pods] web:pods=50"},
		210*time.Second + time.Hour: {"12:01 [pods]", "12:02 [pods]", "12:03 [pods] web:pods=30"},
		0:                           {"12:01 [pods] web:pods=60", "12:02 [pods] web:pods=60", "12:03 [pods] web:pods=60"},
	} {
		tally := following()
		tally.Advance(noon.Add(200 * time.Second))
		tally.Take(noon.Add(time.Minute))
		tally.SetSince(noon.Add(210*time.Second), noon.Add(since), pod("a"), web, Rate{meter.Pods, 1})
		tally.Advance(noon.Add(4 * time.Minute))
		if diff := cmp.Diff(want, written(tally.Take(noon.Add(time.Hour)))); diff != "" {
			t.Errorf("since %s (-want +got):\n%s", since, diff)
		}
	}
}

// TestMinutesThatWereNotFollowedAreBroken: from the last time that was followed until a whole minute was followed again.
func TestMinutesThatWereNotFollowedAreBroken(t *testing.T) {
	tally := following()
	tally.Mend(noon.Add(-time.Second), meter.OfServices)
	tally.Advance(noon.Add(2*time.Minute + 10*time.Second))
	tally.Break(meter.OfPods, noon.Add(time.Minute)) // Exactly at the end of the first one, which stays.
	tally.Advance(noon.Add(4 * time.Minute))
	tally.Mend(noon.Add(4*time.Minute+30*time.Second), meter.OfPods)
	tally.Advance(noon.Add(6 * time.Minute))
	if diff := cmp.Diff([]string{
		"11:59 []", "12:00 [pods services]", "12:01 [services]", "12:02 [services]", "12:03 [services]", "12:04 [services]", "12:05 [pods services]",
	}, written(tally.Take(noon.Add(time.Hour)))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAMinuteIsTakenOnceItIsOver(t *testing.T) {
	tally := following()
	tally.Advance(noon.Add(5 * time.Minute))
	for until, want := range map[time.Duration]int{-time.Second: 0, 0: 1, 59 * time.Second: 1} {
		tally := following()
		tally.Advance(noon.Add(5 * time.Minute))
		if got := tally.Take(noon.Add(until)); len(got) != want {
			t.Errorf("until %s it is %q", until, written(got))
		}
	}
	if got := tally.Take(noon.Add(2 * time.Minute)); len(got) != 3 || len(tally.Take(noon.Add(5*time.Minute))) != 3 {
		t.Errorf("taken are %q", written(got))
	}
}

// TestAnotherClockCountsNothingTwice: what is used goes on from the new time, and what was not taken before is lost.
func TestAnotherClockCountsNothingTwice(t *testing.T) {
	for name, by := range map[string]time.Duration{"an hour ahead": time.Hour, "an hour back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			tally := following()
			tally.Set(noon, pod("a"), web, Rate{meter.Pods, 1})
			tally.Advance(noon.Add(2*time.Minute + 30*time.Second))
			taken := tally.Take(noon.Add(time.Minute))
			at := noon.Add(by + 150*time.Second)
			tally.Rebase(at)
			tally.Advance(at.Add(90 * time.Second))
			if diff := cmp.Diff([]string{
				"11:59 []", "12:00 [pods] web:pods=60", at.Format("15:04") + " [] web:pods=30", at.Add(time.Minute).Format("15:04") + " [pods] web:pods=60",
			}, written(append(taken, tally.closed...))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
