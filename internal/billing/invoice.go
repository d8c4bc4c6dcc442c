// Package billing computes what a tenant pays for a month. An invoice is a pure function of usage, prices, month and tenant: the same input
// gives the same bytes, in whatever order the usage comes. docs/cost.md has the rules with an example.
package billing

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Input is all that an invoice follows from.
type Input struct {
	Tenant string
	Month  Month
	// Usage is that of the tenant. Usage of other months is ignored.
	Usage []Used
	// Gaps are those of the month.
	Gaps   []Gap
	Prices Prices
}

// Prices are a price list, with the commit that wrote it.
type Prices struct {
	// Name is that of the PriceList.
	Name string                  `json:"name" example:"standard"`
	Spec *v1alpha1.PriceListSpec `json:"spec" nullable:"false"`
	// Revision is the commit at which its file last changed, as "branch@sha1:<commit>", and Author who wrote that.
	Revision string `json:"revision,omitempty" doc:"The commit at which its file last changed." example:"main@sha1:0123456789012345678901234567890123456789"`
	Author   string `json:"author,omitempty" doc:"Who wrote that commit."`
}

// Invoice is what a tenant pays for a month. Amounts are texts with the digits of the currency, and prices are exact. Quantities are printed with at most 12
// digits after the point; what is computed from them is computed from the exact ones.
type Invoice struct {
	Tenant    string `json:"tenant"`
	Month     string `json:"month"`
	Currency  string `json:"currency"`
	PriceList string `json:"priceList"`
	Revision  string `json:"revision"`
	Author    string `json:"author"`

	// Seller is that of the price list; nil if it has none.
	Seller *v1alpha1.PriceSeller `json:"seller,omitempty" doc:"Who sends the invoice. It is not there if the price list has none."`

	Lines     []Line     `json:"lines" nullable:"false"`
	Discounts []Discount `json:"discounts" nullable:"false"`
	Net       string     `json:"net" doc:"The sum of lines and discounts."`
	Taxes     []Tax      `json:"taxes" nullable:"false"`
	Total     string     `json:"total" doc:"The net sum with the taxes."`
	Unpriced  []Unpriced `json:"unpriced" nullable:"false" doc:"Usage without a price: it is on no line, and it is not free."`
	Gaps      []Gap      `json:"gaps" nullable:"false"`
	// Apps is filled in by Share.
	Apps []AppShare `json:"apps" nullable:"false"`
}

// Line is what one tier of one price costs, with the hours of which it is made.
type Line struct {
	Meter    string      `json:"meter" example:"cpu.requested"`
	Unit     string      `json:"unit" example:"core-hour"`
	Period   int         `json:"period" doc:"The number of the price in the price list, from 0."`
	Tier     int         `json:"tier" doc:"The number of the tier of that price, from 1; 0 is the free quantity."`
	Price    string      `json:"price" doc:"Of one unit."`
	Quantity string      `json:"quantity"`
	Amount   string      `json:"amount"`
	Hours    []HourShare `json:"hours" nullable:"false"`

	price, quantity *big.Rat
}

// HourShare is how much of an hour's usage is in a line.
type HourShare struct {
	Hour     time.Time `json:"hour"`
	Quantity string    `json:"quantity"`

	quantity *big.Rat
}

// Unpriced is usage for which the list has no price. It is not on any line, and not free.
type Unpriced struct {
	Meter    string    `json:"meter"`
	Quantity string    `json:"quantity" doc:"In core-seconds, byte-seconds or seconds for meters that kubeop measures."`
	Hours    int       `json:"hours"`
	From     time.Time `json:"from"`
	Until    time.Time `json:"until"`
}

// Compute returns the invoice. It is an error if the price list has faults, or if usage is not of an hour, is negative, or is there twice.
func Compute(from Input) (*Invoice, error) {
	spec := from.Prices.Spec
	if faults := spec.Faults(); len(faults) > 0 {
		return nil, fmt.Errorf("price list %s: %s: %s", from.Prices.Name, faults[0].Field, faults[0].Why)
	}
	minor, _ := v1alpha1.MinorUnit(spec.Currency)
	hours, err := byMeter(from.Usage, from.Month)
	if err != nil {
		return nil, err
	}
	i := &Invoice{
		Tenant: from.Tenant, Month: from.Month.String(), Currency: spec.Currency, PriceList: from.Prices.Name, Revision: from.Prices.Revision, Author: from.Prices.Author, Seller: spec.Seller.DeepCopy(),
		Lines: []Line{}, Discounts: []Discount{}, Taxes: []Tax{}, Unpriced: []Unpriced{}, Gaps: append([]Gap{}, from.Gaps...), Apps: []AppShare{},
	}
	meters := map[string]*v1alpha1.PriceMeter{}
	for n := range spec.Meters {
		meters[spec.Meters[n].Name] = &spec.Meters[n]
	}
	for _, name := range slices.Sorted(maps.Keys(hours)) {
		if meter := meters[name]; meter != nil {
			i.price(meter, hours[name])
		} else {
			i.unpriced(name, hours[name])
		}
	}
	i.sum(spec, from.Month, minor)
	return i, nil
}

// price adds the lines of a meter. The quantity of the month goes on through a change of prices: the tiers of the new price begin where the
// old one's quantity ends.
func (i *Invoice) price(meter *v1alpha1.PriceMeter, hours []hour) {
	unit, periods, lines := max(v1alpha1.UnitsOfPrices(meter.Name)[meter.Unit], 1), periodsOf(meter), map[[2]int]*Line{}
	total, without := new(big.Rat), []hour(nil)
	for _, h := range hours {
		number := at(periods, h.at)
		if number < 0 {
			without = append(without, h)
			continue
		}
		after := new(big.Rat).Add(total, in(h.amount, unit))
		for _, b := range periods[number].bands {
			share := b.share(total, after)
			if share.Sign() == 0 {
				continue
			}
			key := [2]int{number, b.tier}
			if lines[key] == nil {
				lines[key] = &Line{Meter: meter.Name, Unit: meter.Unit, Period: number, Tier: b.tier, Price: text(b.price), price: b.price, quantity: new(big.Rat)}
			}
			lines[key].add(h.at, share)
		}
		total = after
	}
	i.unpriced(meter.Name, without)
	order := func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }
	for _, key := range slices.SortedFunc(maps.Keys(lines), order) {
		lines[key].Quantity = text(lines[key].quantity)
		i.Lines = append(i.Lines, *lines[key])
	}
}

func (l *Line) add(at time.Time, share *big.Rat) {
	l.Hours = append(l.Hours, HourShare{at, text(share), share})
	l.quantity.Add(l.quantity, share)
}

// unpriced adds what has no price.
func (i *Invoice) unpriced(meter string, hours []hour) {
	if len(hours) == 0 {
		return
	}
	sum := new(big.Rat)
	for _, h := range hours {
		sum.Add(sum, in(h.amount, 1))
	}
	i.Unpriced = append(i.Unpriced, Unpriced{Meter: meter, Quantity: text(sum), Hours: len(hours), From: hours[0].at, Until: hours[len(hours)-1].at.Add(time.Hour)})
}
