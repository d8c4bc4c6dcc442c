package billing

import (
	"errors"
	"math/big"
	"strings"
	"testing"
)

// taxed returns an invoice with two taxes.
func taxed() *Invoice {
	return &Invoice{Tenant: "acme", Month: "2026-02", Currency: "EUR", Net: "10.01", Taxes: []Tax{{"VAT", "19", "1.90"}, {"levy", "0.5", "0.05"}}, Total: "11.96"}
}

// TestCreditNotesAddUpToTheInvoice, however it is taken back.
func TestCreditNotesAddUpToTheInvoice(t *testing.T) {
	for _, parts := range [][]string{{""}, {"10.01"}, {"0.01", ""}, {"5", "5.01"}, {"0.02", "0.02", "3.33", "3.33", "3.31"}} {
		i := taxed()
		credited, taxes, total := new(big.Rat), []*big.Rat{new(big.Rat), new(big.Rat)}, new(big.Rat)
		for _, part := range parts {
			note, err := i.Credit(part, credited)
			if err != nil {
				t.Fatalf("%q: %v", parts, err)
			}
			sum := number(note.Net)
			for n, tax := range note.Taxes {
				if tax.Amount == "-0.00" || tax.Name != i.Taxes[n].Name {
					t.Errorf("%q: %+v", parts, tax)
				}
				sum.Add(sum, number(tax.Amount))
				taxes[n].Add(taxes[n], number(tax.Amount))
			}
			if sum.Cmp(number(note.Total)) != 0 {
				t.Errorf("%q: the note does not add up: %+v", parts, note)
			}
			credited.Add(credited, number(note.Net))
			total.Add(total, number(note.Total))
		}
		if credited.FloatString(2) != "-10.01" || total.FloatString(2) != "-11.96" {
			t.Errorf("%q: taken back are %s and %s", parts, credited.FloatString(2), total.FloatString(2))
		}
		if _, err := i.Credit("", credited); !errors.Is(err, ErrNothingLeft) {
			t.Errorf("%q: one more: %v", parts, err)
		}
	}
}

func TestAnAmountThatCannotBeTakenBackIsRefused(t *testing.T) {
	for net, why := range map[string]string{"0": "more than 0", "-1": "more than 0", "1.001": "2 digits", "1e1": "more than 0", "x": "more than 0", "10.02": "at most 10.01", strings.Repeat("9", 30): "more than 0"} {
		if note, err := taxed().Credit(net, new(big.Rat)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, %+v", net, err, note)
		}
	}
}
