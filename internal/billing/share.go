package billing

import (
	"cmp"
	"math/big"
	"slices"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// AppShare is how much of the lines of an invoice an app pays for, before discounts and taxes.
type AppShare struct {
	Project string `json:"project"`
	App     string `json:"app" doc:"Empty for what belongs to the project, and to none of its apps."`
	Amount  string `json:"amount"`
}

// Share fills in Apps. Of each meter, an app pays the part of the lines that it has of the quantity of the month. Amounts are rounded down,
// and what is missing then to the sum of the lines is added by minor units of the currency, to those first that lost most.
func (i *Invoice) Share(used *Sums) {
	minor, _ := v1alpha1.MinorUnit(i.Currency)
	costs, totals, sum := map[string]*big.Rat{}, map[string]*big.Rat{}, new(big.Rat)
	for n := range i.Lines {
		amount := number(i.Lines[n].Amount)
		sum.Add(sum, amount)
		plus(costs, i.Lines[n].Meter, amount)
	}
	for _, amounts := range used.apps {
		for meter, amount := range amounts {
			plus(totals, meter, in(amount, 1))
		}
	}
	type share struct {
		app
		floor *big.Int
		lost  *big.Rat
	}
	var all []share
	units := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(minor)), nil))
	left := new(big.Int).Set(new(big.Rat).Mul(sum, units).Num()) // The sum is one of minor units.
	for by, amounts := range used.apps {
		exact := new(big.Rat)
		for meter, amount := range amounts {
			if costs[meter] != nil && amount.Sign() > 0 {
				part := new(big.Rat).Quo(in(amount, 1), totals[meter])
				exact.Add(exact, part.Mul(part, costs[meter]))
			}
		}
		exact.Mul(exact, units)
		floor := new(big.Int).Quo(exact.Num(), exact.Denom())
		left.Sub(left, floor)
		all = append(all, share{by, floor, exact.Sub(exact, new(big.Rat).SetInt(floor))})
	}
	byName := func(a, b share) int { return cmp.Or(cmp.Compare(a.project, b.project), cmp.Compare(a.name, b.name)) }
	slices.SortFunc(all, func(a, b share) int { return cmp.Or(b.lost.Cmp(a.lost), byName(a, b)) })
	for n := range all[:min(len(all), int(left.Int64()))] {
		all[n].floor.Add(all[n].floor, big.NewInt(1))
	}
	slices.SortFunc(all, byName)
	i.Apps = []AppShare{}
	for _, s := range all {
		i.Apps = append(i.Apps, AppShare{s.project, s.name, new(big.Rat).Quo(new(big.Rat).SetInt(s.floor), units).FloatString(minor)})
	}
}

func plus(all map[string]*big.Rat, name string, amount *big.Rat) {
	if all[name] == nil {
		all[name] = new(big.Rat)
	}
	all[name].Add(all[name], amount)
}

// number reads an amount of an invoice.
func number(text string) *big.Rat {
	of, ok := new(big.Rat).SetString(text)
	if !ok {
		return new(big.Rat)
	}
	return of
}
