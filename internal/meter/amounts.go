package meter

import (
	"errors"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/inf.v0"
)

// Amounts are exact amounts by the names of their meters. A meter that is not there has the amount 0.
type Amounts map[string]*inf.Dec

// Of returns a decimal, with its value times ten to the power of minus the scale.
func Of(value *big.Int, scale int32) *inf.Dec {
	return inf.NewDecBig(new(big.Int).Set(value), inf.Scale(scale))
}

// Add adds other amounts.
func (a Amounts) Add(others Amounts) {
	for name, amount := range others {
		a.AddTo(name, amount)
	}
}

// AddTo adds an amount of one meter.
func (a Amounts) AddTo(name string, amount *inf.Dec) {
	sum := new(inf.Dec).Set(amount)
	if before := a[name]; before != nil {
		sum.Add(before, amount)
	}
	a[name] = sum
}

// String returns the amounts that are not 0 as Read reads them, in the order of names: so the same amounts are the same text.
func (a Amounts) String() string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if a[name].Sign() == 0 {
			continue
		}
		if out.Len() > 0 {
			out.WriteByte(' ')
		}
		out.WriteString(name + "=" + Text(a[name]))
	}
	return out.String()
}

// Text returns a decimal without zeros at the end of its fraction.
func Text(amount *inf.Dec) string {
	text := amount.String()
	if !strings.Contains(text, ".") {
		return text
	}
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// number has up to 40 digits before the point, and 20 behind it.
var number = regexp.MustCompile(Number)

// Number is what ParseAmount takes.
const Number = `^(0|[1-9][0-9]{0,39})(\.[0-9]{1,20})?$`

var errNoAmount = errors.New("is no amount: it is a decimal of 0 or more, such as 12.5")

// ParseAmount reads an amount that is 0 or more.
func ParseAmount(text string) (*inf.Dec, error) {
	if !number.MatchString(text) {
		return nil, errNoAmount
	}
	amount, ok := new(inf.Dec).SetString(text)
	if !ok {
		return nil, errNoAmount
	}
	return amount, nil
}

// Read reads what String returned.
func Read(text string) (Amounts, error) {
	all := Amounts{}
	for _, each := range strings.Fields(text) {
		name, number, _ := strings.Cut(each, "=")
		amount, ok := new(inf.Dec).SetString(number)
		if !ok {
			return nil, fmt.Errorf("reading the amount of %s: it is no decimal", name)
		}
		all[name] = amount
	}
	return all, nil
}
