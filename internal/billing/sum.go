package billing

import (
	"math/big"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Discount is what was taken off.
type Discount struct {
	Percent string `json:"percent,omitempty" doc:"Of base. It is not there if a fixed amount was taken off."`
	Base    string `json:"base,omitempty"`
	Amount  string `json:"amount" doc:"It is negative."`
}

// Tax is what was added.
type Tax struct {
	Name    string `json:"name"`
	Percent string `json:"percent"`
	Amount  string `json:"amount"`
}

// sum fills in the amounts. Each line is rounded to the minor unit of the currency, halves away from zero, and each tax once, on the sum of the rounded
// lines and discounts: so what is printed adds up.
func (i *Invoice) sum(spec *v1alpha1.PriceListSpec, month Month, minor int) {
	net := new(big.Rat)
	for n := range i.Lines {
		l := &i.Lines[n]
		rounded, printed := money(new(big.Rat).Mul(l.quantity, l.price), minor)
		l.Amount = printed
		net.Add(net, rounded)
	}
	for n := range spec.Discounts {
		if d := &spec.Discounts[n]; d.Tenant == i.Tenant {
			i.discount(d, month, minor, net)
		}
	}
	total := new(big.Rat).Set(net)
	for _, tax := range spec.Taxes {
		rounded, printed := money(percent(net, tax.Percent), minor)
		total.Add(total, rounded)
		i.Taxes = append(i.Taxes, Tax{Name: tax.Name, Percent: text(tax.Percent.Rat()), Amount: printed})
	}
	i.Net, i.Total = net.FloatString(minor), total.FloatString(minor)
}

func percent(of *big.Rat, p v1alpha1.Percent) *big.Rat {
	return new(big.Rat).Mul(of, new(big.Rat).Quo(p.Rat(), big.NewRat(100, 1)))
}

// discount takes one discount off net, which never gets below zero by it.
func (i *Invoice) discount(d *v1alpha1.PriceDiscount, month Month, minor int, net *big.Rat) {
	from, until, _ := v1alpha1.Days(d.From, d.Until)
	if !from.Before(month.End()) || !month.Start().Before(until) {
		return
	}
	line, amount := Discount{}, d.Amount.Rat()
	if d.Percent != "" {
		base := i.base(d)
		line.Percent, line.Base = text(d.Percent.Rat()), text(base)
		amount = percent(base, d.Percent)
	}
	if amount, _ = money(amount, minor); amount.Cmp(net) > 0 {
		amount = net
	}
	if amount.Sign() == 0 {
		return
	}
	off := new(big.Rat).Neg(amount)
	line.Amount = off.FloatString(minor)
	i.Discounts = append(i.Discounts, line)
	net.Add(net, off)
}

// base is what the hours of a discount cost before any discount, not rounded.
func (i *Invoice) base(d *v1alpha1.PriceDiscount) *big.Rat {
	from, until, _ := v1alpha1.Days(d.From, d.Until)
	base := new(big.Rat)
	for n := range i.Lines {
		for _, h := range i.Lines[n].Hours {
			if !h.Hour.Before(from) && h.Hour.Before(until) {
				base.Add(base, new(big.Rat).Mul(h.quantity, i.Lines[n].price))
			}
		}
	}
	return base
}
