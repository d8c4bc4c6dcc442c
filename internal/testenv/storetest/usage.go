package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/internal/meter"
	"github.com/kubeop/kubeop/internal/store"
)

// hour is the hour that the tests measure.
var hour = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func amounts(t *testing.T, text string) meter.Amounts {
	t.Helper()
	read, err := meter.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// at returns a place from its parts, of which later ones may be left out.
func at(text string) store.Place {
	parts := append(strings.Split(text, "/"), "", "", "", "")
	return store.Place{Tenant: parts[0], Project: parts[1], App: parts[2], Cluster: parts[3]}
}

func addMinute(t *testing.T, s store.Store, begin time.Time, used map[string]string, groups ...meter.Group) {
	t.Helper()
	m := store.Minute{Cluster: "local", Begin: begin, Groups: groups, Used: map[store.Place]store.Amounts{}}
	for place, text := range used {
		m.Used[at(place+"/local")] = amounts(t, text)
	}
	if err := s.AddMinute(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

// usageOf lists what is used, in pages of two.
func usageOf(t *testing.T, s store.Store, q store.UsageQuery) (all []string) {
	t.Helper()
	if q.Until.IsZero() {
		q.From, q.Until = hour.Add(-24*time.Hour), hour.Add(24*time.Hour)
	}
	for q.Limit = 2; ; {
		some, err := s.ListUsage(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range some {
			all = append(all, fmt.Sprintf("%s/%s/%s/%s %s %s", u.Tenant, u.Project, u.App, u.Cluster, u.Hour.Format("15:04"), meter.Amounts(u.Amounts)))
			q.After, q.AfterHour = u.Place, u.Hour.Add(time.Hour)
		}
		if len(some) < q.Limit {
			return all
		}
	}
}

func coveredOf(t *testing.T, s store.Store) (all []string) {
	t.Helper()
	found, err := s.ListCovered(t.Context(), hour.Add(-time.Hour), hour.Add(2*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range found {
		all = append(all, fmt.Sprintf("%s %s %s %x", c.Cluster, c.Group, c.Hour.Format("15:04"), c.Minutes))
	}
	return all
}

// minutes: of a minute each group counts once, whoever adds it, and however often.
func minutes(t *testing.T, s store.Store) {
	for range 2 {
		addMinute(t, s, hour, map[string]string{"acme/shop/web": "cpu.requested=30 pods=60", "acme/shop/": "pods=12.5"}, meter.OfPods)
	}
	// Another one measured the metrics too, and has other pods.
	addMinute(t, s, hour, map[string]string{"acme/shop/web": "cpu.requested=7 cpu.used=3 pods=7", "acme/shop/other": "pods=7"}, meter.OfPods, meter.OfMetrics)
	// What is not in a group that was measured does not count.
	addMinute(t, s, hour.Add(59*time.Minute), map[string]string{"acme/shop/web": "cpu.requested=0.25 cpu.used=9 storage/fast=5 gpu=1 pods=0"}, meter.OfPods)
	addMinute(t, s, hour.Add(60*time.Minute), map[string]string{"beta/shop/web": "pods=1"}, meter.OfPods)
	if diff := cmp.Diff([]string{
		"acme/shop//local 12:00 pods=12.5", "acme/shop/web/local 12:00 cpu.requested=30.25 cpu.used=3 pods=60", "beta/shop/web/local 13:00 pods=1",
	}, usageOf(t, s, store.UsageQuery{})); diff != "" {
		t.Errorf("-want +used:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"local metrics 12:00 1", "local pods 12:00 800000000000001", "local pods 13:00 1"}, coveredOf(t, s)); diff != "" {
		t.Errorf("-want +covered:\n%s", diff)
	}
}

func usageIsListed(t *testing.T, s store.Store) {
	for i := range 3 {
		addMinute(t, s, hour.Add(time.Duration(i)*time.Hour), map[string]string{"acme/a/web": "pods=1", "acme/a-b/web": "pods=1", "acme/a/": "pods=1", "acme2/a/web": "pods=1"}, meter.OfPods)
	}
	web, none, a := "web", "", "a"
	for name, c := range map[string]struct {
		query store.UsageQuery
		want  int
		first string
	}{
		"all":               {store.UsageQuery{}, 12, "acme/a//local 12:00 pods=1"},
		"a tenant":          {store.UsageQuery{Tenant: "acme"}, 9, "acme/a//local 12:00 pods=1"},
		"a project":         {store.UsageQuery{Tenant: "acme", Project: &a}, 6, "acme/a//local 12:00 pods=1"},
		"an app":            {store.UsageQuery{Tenant: "acme", Project: &a, App: &web}, 3, "acme/a/web/local 12:00 pods=1"},
		"no app":            {store.UsageQuery{Tenant: "acme", Project: &a, App: &none}, 3, "acme/a//local 12:00 pods=1"},
		"an hour":           {store.UsageQuery{Tenant: "acme", From: hour.Add(time.Hour), Until: hour.Add(2 * time.Hour)}, 3, "acme/a//local 13:00 pods=1"},
		"an hour before":    {store.UsageQuery{From: hour.Add(-time.Hour), Until: hour}, 0, ""},
		"another tenant":    {store.UsageQuery{Tenant: "acm"}, 0, ""},
		"after an hour":     {store.UsageQuery{After: at("acme/a/web/local"), AfterHour: hour.Add(2 * time.Hour)}, 7, "acme/a/web/local 14:00 pods=1"},
		"after all of them": {store.UsageQuery{After: at("acme2/a/web/local"), AfterHour: hour.Add(3 * time.Hour)}, 0, ""},
	} {
		got := usageOf(t, s, c.query)
		if len(got) != c.want || c.want > 0 && got[0] != c.first {
			t.Errorf("%s: %q, want %d from %s", name, got, c.want, c.first)
		}
	}
	if diff := cmp.Diff([]string{"acme/a//local 13:00 pods=1", "acme/a/web/local 13:00 pods=1", "acme/a-b/web/local 13:00 pods=1"},
		usageOf(t, s, store.UsageQuery{Tenant: "acme", From: hour.Add(time.Hour), Until: hour.Add(2 * time.Hour)})); diff != "" {
		t.Errorf("-want +listed:\n%s", diff)
	}
}

// foreignUsage: what others measure is set, and not added, so it may be sent again and corrected.
func foreignUsage(t *testing.T, s store.Store) {
	set := func(want int, used ...store.Used) {
		t.Helper()
		if changed, err := s.SetUsage(t.Context(), used, []store.Event{eventOf("acme", "usage/farm")}); err != nil || changed != want {
			t.Errorf("%v: %d changed, want %d", err, changed, want)
		}
	}
	first := store.Used{Place: at("acme/shop/web/farm"), Hour: hour, Amounts: amounts(t, "gpu=1.5 disk=7")}
	set(2, first)
	set(0, first)
	set(2, store.Used{Place: first.Place, Hour: hour, Amounts: amounts(t, "gpu=2")}, store.Used{Place: first.Place, Hour: hour.Add(time.Hour), Amounts: amounts(t, "gpu=3 disk=0")})
	set(1, store.Used{Place: first.Place, Hour: hour, Amounts: amounts(t, "disk=0")})
	set(0)
	// A meter of others stays beside those that are measured.
	set(1, store.Used{Place: at("acme/shop/web/local"), Hour: hour, Amounts: amounts(t, "gpu=1")})
	addMinute(t, s, hour, map[string]string{"acme/shop/web": "pods=60"}, meter.OfPods)
	if diff := cmp.Diff([]string{"acme/shop/web/farm 12:00 gpu=2", "acme/shop/web/farm 13:00 gpu=3", "acme/shop/web/local 12:00 gpu=1 pods=60"}, usageOf(t, s, store.UsageQuery{})); diff != "" {
		t.Errorf("-want +used:\n%s", diff)
	}
	if got := objects(t, s, "acme"); len(got) != 4 {
		t.Errorf("recorded are %q", got)
	}
}

// onlyWhatChanged: of several tenants those get an event of which something changed.
func onlyWhatChanged(t *testing.T, s store.Store) {
	all := []store.Used{{Place: at("acme/shop/web/farm"), Hour: hour, Amounts: amounts(t, "gpu=1")}, {Place: at("beta/shop/web/farm"), Hour: hour, Amounts: amounts(t, "gpu=1")}}
	for i, want := range []int{2, 1, 0} {
		if i == 1 {
			all[1].Amounts = amounts(t, "gpu=2")
		}
		if changed, err := s.SetUsage(t.Context(), all, []store.Event{eventOf("acme", "usage/farm"), eventOf("beta", "usage/farm")}); err != nil || changed != want {
			t.Errorf("%v: %d changed, want %d", err, changed, want)
		}
	}
	if acme, beta := objects(t, s, "acme"), objects(t, s, "beta"); len(acme) != 1 || len(beta) != 2 {
		t.Errorf("recorded are %q and %q", acme, beta)
	}
}

// measuredStays: what was measured is not set by others, whatever the settings of the manager say now; what was not measured is.
func measuredStays(t *testing.T, s store.Store) {
	addMinute(t, s, hour, map[string]string{"acme/shop/web": "pods=60"}, meter.OfPods)
	for _, c := range []struct {
		place, amounts string
		hours          int
		want           error
	}{
		{"acme/shop/web/local", "cpu.requested=1", 0, store.ErrMeasured}, {"acme/shop/other/local", "gpu=1 pods=1", 0, store.ErrMeasured},
		{"acme/shop/web/local", "gpu=1 storage/fast=1", 0, nil}, {"acme/shop/web/local", "pods=1", 1, nil}, {"acme/shop/web/farm", "pods=1", 0, nil},
	} {
		used := []store.Used{
			{Place: at(c.place), Hour: hour.Add(-time.Hour), Amounts: amounts(t, "gpu=1")}, {Place: at(c.place), Hour: hour.Add(time.Duration(c.hours) * time.Hour), Amounts: amounts(t, c.amounts)},
		}
		if _, err := s.SetUsage(t.Context(), used, nil); !errors.Is(err, c.want) {
			t.Errorf("%s in %s: %v, want %v", c.amounts, c.place, err, c.want)
		}
	}
	if diff := cmp.Diff([]string{
		"acme/shop/web/farm 11:00 gpu=1", "acme/shop/web/farm 12:00 pods=1", "acme/shop/web/local 11:00 gpu=1", "acme/shop/web/local 12:00 gpu=1 pods=60 storage/fast=1", "acme/shop/web/local 13:00 pods=1",
	}, usageOf(t, s, store.UsageQuery{})); diff != "" {
		t.Errorf("-want +used:\n%s", diff)
	}
}

// manyPlaces: more than one statement inserts, some of which are there.
func manyPlaces(t *testing.T, s store.Store) {
	used := map[string]string{}
	for n := range 700 {
		if n == 300 {
			addMinute(t, s, hour, used, meter.OfPods)
		}
		used[fmt.Sprintf("acme/shop/app%d", n)] = fmt.Sprintf("pods=%d", n+1)
	}
	addMinute(t, s, hour.Add(time.Minute), used, meter.OfPods)
	addMinute(t, s, hour.Add(61*time.Minute), used, meter.OfPods)
	got, err := s.ListUsage(t.Context(), store.UsageQuery{From: hour, Until: hour.Add(2 * time.Hour), Limit: 2000})
	if err != nil || len(got) != 1400 {
		t.Fatalf("%v: %d hours", err, len(got))
	}
	for _, u := range got {
		var n int64
		if _, err := fmt.Sscanf(u.App, "app%d", &n); err != nil {
			t.Fatal(err)
		}
		want := n + 1
		if n < 300 && u.Hour.Equal(hour) {
			want *= 2
		}
		if is := meter.Amounts(u.Amounts).String(); is != fmt.Sprintf("pods=%d", want) {
			t.Errorf("%s used %s in %s", u.App, is, u.Hour)
		}
	}
}

func oldUsage(t *testing.T, s store.Store) {
	addMinute(t, s, hour, map[string]string{"acme/shop/old": "pods=60", "acme/shop/web": "pods=60"}, meter.OfPods)
	addMinute(t, s, hour.Add(time.Hour), map[string]string{"acme/shop/web": "pods=60"}, meter.OfPods)
	for _, c := range []struct {
		at   time.Duration
		want int
	}{{-time.Hour, 3}, {0, 1}, {time.Hour, 0}} {
		if err := s.Sweep(t.Context(), hour.Add(store.KeepUsage+c.at)); err != nil {
			t.Fatal(err)
		}
		if got := usageOf(t, s, store.UsageQuery{}); len(got) != c.want {
			t.Errorf("%s later there are %q", c.at, got)
		}
	}
	if got := coveredOf(t, s); len(got) > 0 {
		t.Errorf("covered are %q", got)
	}
	addMinute(t, s, hour, map[string]string{"acme/shop/old": "pods=60"}, meter.OfPods)
	if got := usageOf(t, s, store.UsageQuery{}); len(got) != 1 {
		t.Errorf("again there are %q", got)
	}
}
