package billing

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"gopkg.in/inf.v0"
)

// app is an app of the tenant; with the name "" it is what belongs to a project, and to none of its apps.
type app struct{ project, name string }

// Sums are what a tenant used in a month, by hour and by app. They are as small for many apps as for few: an invoice needs no more.
type Sums struct {
	month Month
	hours map[time.Time]map[string]*inf.Dec
	apps  map[app]map[string]*inf.Dec
}

// NewSums returns sums without usage.
func NewSums(month Month) *Sums {
	return &Sums{month, map[time.Time]map[string]*inf.Dec{}, map[app]map[string]*inf.Dec{}}
}

// Add adds what was used. It leaves out other months, and refuses negative usage, which would take off what others used.
func (s *Sums) Add(u Used) error {
	if !s.month.Has(u.Hour) {
		return nil
	}
	at, by := u.Hour.UTC(), app{u.Project, u.App}
	for meter, amount := range u.Amounts {
		if amount.Sign() < 0 {
			return fmt.Errorf("usage of %s by %s/%s at %s is negative", meter, u.Project, u.App, at.Format(time.RFC3339))
		}
		sum(s.hours, at, meter, amount)
		sum(s.apps, by, meter, amount)
	}
	return nil
}

func sum[K comparable](all map[K]map[string]*inf.Dec, of K, meter string, amount *inf.Dec) {
	if all[of] == nil {
		all[of] = map[string]*inf.Dec{}
	}
	if all[of][meter] == nil {
		all[of][meter] = new(inf.Dec)
	}
	all[of][meter].Add(all[of][meter], amount)
}

// Used returns what was used in each hour, all apps together, in the order of time.
func (s *Sums) Used() (all []Used) {
	for _, at := range slices.SortedFunc(maps.Keys(s.hours), time.Time.Compare) {
		all = append(all, Used{Hour: at, Amounts: s.hours[at]})
	}
	return all
}

// recent is how many hours a forecast goes on from, and meanScale how many digits after the point their mean has.
const (
	recent    = 24
	meanScale = 20
)

// Forecast returns what is used in the month if each hour that has not ended at now is as the mean of the last 24 hours before. Hours before the month do not count,
// and neither do those before the tenant was created and the one in which it was. It is nil before the end of the first hour that counts, and after the month.
func (s *Sums) Forecast(created, now time.Time) (all []Used) {
	end := now.UTC().Truncate(time.Hour)
	from := end.Add(-recent * time.Hour)
	for _, first := range []time.Time{s.month.Start(), created.UTC().Add(time.Hour - 1).Truncate(time.Hour)} {
		if from.Before(first) {
			from = first
		}
	}
	if !from.Before(end) || !end.Before(s.month.End()) {
		return nil
	}
	mean := map[string]*inf.Dec{}
	for _, u := range s.Used() {
		if !u.Hour.Before(end) {
			break
		}
		all = append(all, u)
		if u.Hour.Before(from) {
			continue
		}
		for meter, amount := range u.Amounts {
			if mean[meter] == nil {
				mean[meter] = new(inf.Dec)
			}
			mean[meter].Add(mean[meter], amount)
		}
	}
	hours := inf.NewDec(int64(end.Sub(from)/time.Hour), 0)
	for _, sum := range mean {
		sum.QuoRound(sum, hours, meanScale, inf.RoundHalfUp)
	}
	for at := end; at.Before(s.month.End()); at = at.Add(time.Hour) {
		all = append(all, Used{Hour: at, Amounts: mean})
	}
	return all
}
