package billing

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// ErrNothingLeft is returned if all of an invoice was credited before.
var ErrNothingLeft = errors.New("nothing of the invoice is left to be credited")

// amounts are what a caller may write as an amount: without an exponent, which could make it huge.
var amounts = regexp.MustCompile(`^[0-9]{1,24}(\.[0-9]{1,12})?$`)

// Credit returns the credit note that takes back net of an invoice of which credit notes before took back credited, which is negative or 0.
// Without net it is all that is left. Of the taxes it takes back so much that all credit notes together have the taxes of the sum that they
// take back, rounded as on the invoice: those that take back all add up to the invoice. It is an error if net is no amount of the currency,
// is not more than 0, or is more than what is left, and ErrNothingLeft if nothing is.
func (i *Invoice) Credit(net string, credited *big.Rat) (*Invoice, error) {
	minor, _ := v1alpha1.MinorUnit(i.Currency)
	before := new(big.Rat).Neg(credited)
	left := new(big.Rat).Sub(number(i.Net), before)
	if left.Sign() <= 0 {
		return nil, ErrNothingLeft
	}
	off := left
	if net != "" {
		if !amounts.MatchString(net) {
			net = ""
		}
		off = number(net)
		rounded, _ := money(off, minor)
		switch {
		case off.Sign() <= 0 || rounded.Cmp(off) != 0:
			return nil, fmt.Errorf("has to be an amount of %s that is more than 0, with at most %d digits after the point", i.Currency, minor)
		case off.Cmp(left) > 0:
			return nil, fmt.Errorf("has to be at most %s, which is left of the invoice", left.FloatString(minor))
		}
	}
	after, total := new(big.Rat).Add(before, off), new(big.Rat).Set(off)
	note := &Invoice{
		Tenant: i.Tenant, Month: i.Month, Currency: i.Currency, PriceList: i.PriceList, Revision: i.Revision, Author: i.Author, Seller: i.Seller.DeepCopy(),
		Lines: []Line{}, Discounts: []Discount{}, Taxes: []Tax{}, Unpriced: []Unpriced{}, Gaps: []Gap{}, Apps: []AppShare{},
	}
	for _, tax := range i.Taxes {
		rate := v1alpha1.Percent(tax.Percent)
		ofBefore, _ := money(percent(before, rate), minor)
		ofAfter, _ := money(percent(after, rate), minor)
		back := new(big.Rat).Sub(ofAfter, ofBefore)
		total.Add(total, back)
		note.Taxes = append(note.Taxes, Tax{tax.Name, tax.Percent, negative(back, minor)})
	}
	note.Net, note.Total = negative(off, minor), negative(total, minor)
	return note, nil
}

func negative(amount *big.Rat, minor int) string {
	_, text := money(new(big.Rat).Neg(amount), minor)
	return text
}
