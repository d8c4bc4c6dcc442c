package billing

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"gopkg.in/inf.v0"
)

// Used is what a project or app of the tenant used within an hour, in core-seconds, byte-seconds and seconds for meters that kubeop measures.
type Used struct {
	Cluster, Project, App string
	// Hour is its beginning.
	Hour time.Time
	// Amounts are by the names of meters.
	Amounts map[string]*inf.Dec
}

// Gap is a time in which something was not measured all the time. Nothing is charged for what was not measured.
type Gap struct {
	Cluster string    `json:"cluster"`
	Meters  []string  `json:"meters" nullable:"false" doc:"The meters that were not measured. storage stands for that of all classes."`
	From    time.Time `json:"from"`
	Until   time.Time `json:"until"`
	Minutes int       `json:"minutes" doc:"The number of minutes between from and until that were not measured."`
}

// hour is what a tenant used of a meter within an hour, all apps together.
type hour struct {
	at     time.Time
	amount *inf.Dec
}

// byMeter sums up the usage of each hour of a month, in the order of time. Hours in which nothing was used are left out. Usage that is not of an hour, is
// negative, or is there twice is an error: an invoice that leaves it out or repeats it would be wrong without a word.
func byMeter(all []Used, month Month) (map[string][]hour, error) {
	type key struct {
		cluster, project, app string
		hour                  time.Time
	}
	seen, sums := map[key]bool{}, map[string]map[time.Time]*inf.Dec{}
	for i := range all {
		u := &all[i]
		at := u.Hour.UTC()
		of := key{u.Cluster, u.Project, u.App, at}
		switch {
		case !month.Has(at):
			continue
		case !at.Equal(at.Truncate(time.Hour)):
			return nil, fmt.Errorf("usage of %s/%s at %s is not of an hour", u.Project, u.App, at.Format(time.RFC3339Nano))
		case seen[of]:
			return nil, fmt.Errorf("usage of %s/%s in cluster %s at %s is there twice", u.Project, u.App, u.Cluster, at.Format(time.RFC3339))
		}
		seen[of] = true
		for meter, amount := range u.Amounts {
			if amount.Sign() < 0 {
				return nil, fmt.Errorf("usage of %s by %s/%s at %s is negative", meter, u.Project, u.App, at.Format(time.RFC3339))
			}
			add(sums, meter, at, amount)
		}
	}
	hours := map[string][]hour{}
	for meter, sum := range sums {
		for _, at := range slices.SortedFunc(maps.Keys(sum), time.Time.Compare) {
			hours[meter] = append(hours[meter], hour{at, sum[at]})
		}
	}
	return hours, nil
}

func add(sums map[string]map[time.Time]*inf.Dec, meter string, at time.Time, amount *inf.Dec) {
	if amount.Sign() == 0 {
		return
	}
	if sums[meter] == nil {
		sums[meter] = map[time.Time]*inf.Dec{}
	}
	if sums[meter][at] == nil {
		sums[meter][at] = new(inf.Dec)
	}
	sums[meter][at].Add(sums[meter][at], amount)
}

// in returns an amount in a unit that is as much as is said.
func in(amount *inf.Dec, unit int64) *big.Rat {
	of := new(big.Rat).SetInt(amount.UnscaledBig())
	ten := new(big.Int).Exp(big.NewInt(10), big.NewInt(max(int64(amount.Scale()), -int64(amount.Scale()))), nil)
	if amount.Scale() >= 0 {
		of.Quo(of, new(big.Rat).SetInt(ten))
	} else {
		of.Mul(of, new(big.Rat).SetInt(ten))
	}
	return of.Quo(of, new(big.Rat).SetInt64(unit))
}
