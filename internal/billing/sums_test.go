package billing

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/inf.v0"
)

// sumsOf sums up lines of an hour of February, an app and an amount of pods.
func sumsOf(t *testing.T, lines ...string) *Sums {
	t.Helper()
	s := NewSums(february)
	for _, line := range lines {
		fields := strings.Fields(line)
		at, err := time.Parse("02T15", fields[0])
		if err != nil {
			t.Fatal(err)
		}
		project, name, _ := strings.Cut(fields[1], "/")
		at = february.Start().AddDate(0, 0, at.Day()-1).Add(time.Duration(at.Hour()) * time.Hour)
		if err := s.Add(Used{Project: project, App: name, Hour: at, Amounts: map[string]*inf.Dec{"pods": amount(t, fields[2])}}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func usedOf(all []Used) (texts []string) {
	for _, u := range all {
		texts = append(texts, fmt.Sprintf("%s %s", u.Hour.Format("02T15"), u.Amounts["pods"]))
	}
	return texts
}

func TestSumsAreOfAllAppsByHour(t *testing.T) {
	s := sumsOf(t, "02T10 shop/web 1", "01T10 shop/web 2", "01T10 shop/db 3.5", "01T10 blog/web 4")
	if diff := cmp.Diff([]string{"01T10 9.5", "02T10 1"}, usedOf(s.Used())); diff != "" {
		t.Errorf("-want +used:\n%s", diff)
	}
	if err := s.Add(Used{Project: "shop", Hour: february.Start(), Amounts: map[string]*inf.Dec{"pods": amount(t, "-1")}}); err == nil {
		t.Error("negative usage is added")
	}
	if err := s.Add(Used{Project: "shop", Hour: february.End(), Amounts: map[string]*inf.Dec{"pods": amount(t, "1")}}); err != nil || len(s.Used()) != 2 {
		t.Errorf("%v: usage of another month is added: %q", err, usedOf(s.Used()))
	}
}

// TestAForecastGoesOnAsTheLastDay: it takes the hours that ended, and the mean of the last 24 of them for each of the others.
func TestAForecastGoesOnAsTheLastDay(t *testing.T) {
	s := sumsOf(t, "01T00 shop/web 1000", "26T23 shop/web 12", "27T22 shop/web 36", "27T23 shop/web 5")
	at := func(text string) time.Time {
		is, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	all := s.Forecast(time.Time{}, at("2026-02-27T23:30:00Z"))
	if len(all) != 3+25 {
		t.Fatalf("there are %q", usedOf(all))
	}
	sum := new(inf.Dec)
	for _, u := range all[3:] {
		sum.Add(sum, u.Amounts["pods"])
	}
	// 12 and 36 in 24 hours are 2 in each of 25 hours.
	if diff := cmp.Diff([]string{"01T00 1000", "26T23 12", "27T22 36"}, usedOf(all[:3])); diff != "" || sum.Cmp(inf.NewDec(50, 0)) != 0 {
		t.Errorf("the hours to come have %s; -want +before:\n%s", sum, diff)
	}
	if all := s.Forecast(time.Time{}, at("2026-02-01T02:00:00Z")); len(all) != 1+28*24-2 || all[1].Amounts["pods"].Cmp(inf.NewDec(500, 0)) != 0 {
		t.Errorf("in the first hours there are %d, %s", len(all), all[1].Amounts["pods"])
	}
	for _, now := range []string{"2026-02-01T00:59:59Z", "2026-03-01T00:00:00Z", "2026-01-31T23:00:00Z"} {
		if all := s.Forecast(time.Time{}, at(now)); all != nil {
			t.Errorf("at %s there are %q", now, usedOf(all))
		}
	}
}

// TestAForecastOfANewTenantGoesOnAsSinceItsFirstWholeHour: the hours before it are not hours without usage, and of the first one it had only a part.
func TestAForecastOfANewTenantGoesOnAsSinceItsFirstWholeHour(t *testing.T) {
	s := sumsOf(t, "10T10 shop/web 1", "10T11 shop/web 4", "10T12 shop/web 8", "10T13 shop/web 3")
	day := february.Start().AddDate(0, 0, 9)
	at := func(hour, minute int) time.Time {
		return day.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute)
	}
	for name, c := range map[string]struct {
		created, now time.Time
		hours        int
		want         string
	}{
		"within an hour":            {at(10, 45), at(13, 30), 3, "6"},
		"at the beginning of one":   {at(11, 0), at(13, 30), 3, "6"},
		"in the first whole hour":   {at(10, 45), at(11, 59), 0, ""},
		"after the first whole one": {at(10, 45), at(12, 0), 2, "4"},
		"in another time zone":      {at(10, 45).In(time.FixedZone("", 1800)), at(13, 30), 3, "6"},
		"more than a day ago":       {at(-48, 0), at(13, 30), 3, "0.54166666666666666667"},
	} {
		all := s.Forecast(c.created, c.now)
		if c.hours == 0 {
			if all != nil {
				t.Errorf("%s: there is a forecast: %q", name, usedOf(all))
			}
			continue
		}
		if len(all) <= c.hours || all[c.hours].Amounts["pods"].Cmp(amount(t, c.want)) != 0 {
			t.Errorf("%s: %q, want %s in the hours to come", name, usedOf(all[:c.hours+1]), c.want)
		}
	}
}

// TestSharesAddUpToTheLines, though each is rounded.
func TestSharesAddUpToTheLines(t *testing.T) {
	s := sumsOf(t, "01T00 shop/web 1", "01T00 shop/db 1", "01T00 blog/ 1", "02T00 a/idle 0")
	i := &Invoice{Currency: "EUR", Lines: []Line{{Meter: "pods", Amount: "1.00"}, {Meter: "pods", Amount: "0.01"}}}
	i.Share(s)
	// A third is 0.3366…, of which 0.33 are left when it is rounded down: two cents are missing.
	if diff := cmp.Diff([]AppShare{{"a", "idle", "0.00"}, {"blog", "", "0.34"}, {"shop", "db", "0.34"}, {"shop", "web", "0.33"}}, i.Apps); diff != "" {
		t.Errorf("-want +apps:\n%s", diff)
	}
	i = &Invoice{Currency: "JPY", Lines: []Line{{Meter: "pods", Amount: "8"}}}
	i.Share(sumsOf(t, "01T00 shop/web 5", "01T00 shop/db 3"))
	if diff := cmp.Diff([]AppShare{{"shop", "db", "3"}, {"shop", "web", "5"}}, i.Apps); diff != "" {
		t.Errorf("-want +apps:\n%s", diff)
	}
	if i.Share(NewSums(february)); len(i.Apps) != 0 {
		t.Errorf("without usage there are %v", i.Apps)
	}
	sum := new(big.Rat)
	i = &Invoice{Currency: "EUR", Lines: []Line{{Meter: "pods", Amount: "99.97"}}}
	var lines []string
	for n := range 37 {
		lines = append(lines, fmt.Sprintf("01T00 shop/app%d %d", n, n*n+1))
	}
	i.Share(sumsOf(t, lines...))
	for _, a := range i.Apps {
		sum.Add(sum, number(a.Amount))
	}
	if sum.FloatString(2) != "99.97" {
		t.Errorf("the shares are %s together", sum.FloatString(2))
	}
}
