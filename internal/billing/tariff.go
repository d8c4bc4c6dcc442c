package billing

import (
	"math/big"
	"strings"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// band is the part of a month's quantity that has one price, from start to end; end is nil without one. Tier 0 is the free quantity.
type band struct {
	tier              int
	start, end, price *big.Rat
}

// period is the prices of a meter from one time to another.
type period struct {
	from, until time.Time
	bands       []band
}

func periodsOf(m *v1alpha1.PriceMeter) (all []period) {
	for i := range m.Periods {
		p := &m.Periods[i]
		from, until, _ := v1alpha1.Days(p.From, p.Until)
		all = append(all, period{from, until, bandsOf(p)})
	}
	return all
}

func bandsOf(p *v1alpha1.PricePeriod) (bands []band) {
	start, free := new(big.Rat), p.Free.Rat()
	if free.Sign() > 0 {
		bands, start = append(bands, band{tier: 0, start: start, end: free, price: new(big.Rat)}), free
	}
	for i, tier := range p.Tiers {
		b := band{tier: i + 1, start: start, price: tier.Price.Rat()}
		if tier.UpTo != "" {
			b.end = new(big.Rat).Add(free, tier.UpTo.Rat())
			start = b.end
		}
		bands = append(bands, b)
	}
	return bands
}

// share returns how much of the quantity between two totals of the month is in the band.
func (b *band) share(before, after *big.Rat) *big.Rat {
	low, high := before, after
	if b.start.Cmp(low) > 0 {
		low = b.start
	}
	if b.end != nil && b.end.Cmp(high) < 0 {
		high = b.end
	}
	if low.Cmp(high) >= 0 {
		return new(big.Rat)
	}
	return new(big.Rat).Sub(high, low)
}

// at returns the number of the period that an hour is in; -1 for none.
func at(periods []period, t time.Time) int {
	for i := range periods {
		if !t.Before(periods[i].from) && t.Before(periods[i].until) {
			return i
		}
	}
	return -1
}

// digits is how many digits after the point a quantity is printed with at most.
const digits = 12

// text writes a number without zeros at its end.
func text(r *big.Rat) string {
	all := r.FloatString(digits)
	return strings.TrimSuffix(strings.TrimRight(all, "0"), ".")
}

// money rounds an amount to the minor unit of a currency, halves away from zero.
func money(amount *big.Rat, minor int) (*big.Rat, string) {
	all := amount.FloatString(minor)
	rounded, _ := new(big.Rat).SetString(all)
	if rounded.Sign() == 0 {
		all = strings.TrimPrefix(all, "-")
	}
	return rounded, all
}
