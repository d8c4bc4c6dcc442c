package v1alpha1

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/currency"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PriceListSpec says what usage costs, from when on. Days begin at 00:00 UTC, and months are calendar months in UTC.
type PriceListSpec struct {
	// Default has the list hold for each tenant that names no list in spec.priceList. At most one list has it. Default false.
	Default bool `json:"default,omitempty"`
	// Currency is a code of ISO 4217, such as EUR.
	// +kubebuilder:validation:Pattern=`^[A-Z]{3}$`
	Currency string `json:"currency"`
	// Seller is who sends the invoices, and stands on them. A closed invoice keeps what it was. Default: none.
	Seller *PriceSeller `json:"seller,omitempty"`
	// Meters are what is priced, each once. Usage of a meter that is not listed is reported as unpriced.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=name
	Meters []PriceMeter `json:"meters"`
	// Discounts are taken off in this order. Default: none.
	// +kubebuilder:validation:MaxItems=256
	Discounts []PriceDiscount `json:"discounts,omitempty"`
	// Taxes are each computed on the sum after discounts. Default: none.
	// +kubebuilder:validation:MaxItems=10
	// +listType=map
	// +listMapKey=name
	Taxes []PriceTax `json:"taxes,omitempty"`
}

// PriceSeller is who sends the invoices by a price list.
type PriceSeller struct {
	// Name of the company or person, on one line.
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:Pattern=`^\S(.*\S)?$`
	Name string `json:"name"`
	// Address may have several lines.
	// +kubebuilder:validation:MaxLength=1000
	Address string `json:"address,omitempty"`
	// TaxID is the number by which a tax office knows the seller, such as a VAT identification number.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^\S(.*\S)?$`
	TaxID string `json:"taxID,omitempty"`
}

// PriceMeter has the prices of one kind of usage.
type PriceMeter struct {
	// Name is the meter of the usage, such as cpu.requested, or storage/fast for the storage of a class.
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9./]*[a-z0-9])?$`
	Name string `json:"name"`
	// Unit is what one price is for: core-hour for CPU; GiB-hour or GB-hour for memory and storage; hour for pods, load balancers and objects. A meter
	// that others measure is priced in the unit in which they measure it, and this is its name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Unit string `json:"unit"`
	// Periods are the prices over time. They do not overlap. Usage of an hour that is in none of them is unpriced.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Periods []PricePeriod `json:"periods"`
}

// PricePeriod is a price from one day to another.
// +kubebuilder:validation:XValidation:rule="!has(self.until) || self.from < self.until",message="until must be after from: it is the day after the last one"
type PricePeriod struct {
	// From is the first day.
	From Date `json:"from"`
	// Until is the day after the last one. Default: without end.
	Until Date `json:"until,omitempty"`
	// Free is how much of each calendar month costs nothing. Default: 0.
	Free Decimal `json:"free,omitempty"`
	// Tiers are graduated: each prices only the part of the month's quantity that is in it.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	Tiers []PriceTier `json:"tiers"`
}

// PriceTier is the price of a part of a month's quantity.
type PriceTier struct {
	// UpTo is where the tier ends: the quantity of the month beyond the free one. The last tier, and only that one, has none.
	UpTo Decimal `json:"upTo,omitempty"`
	// Price of one unit, in the currency of the list.
	Price Decimal `json:"price"`
}

// PriceDiscount is taken off the invoices of one tenant.
// +kubebuilder:validation:XValidation:rule="has(self.percent) != has(self.amount)",message="either percent or amount is required: write two discounts to have both"
// +kubebuilder:validation:XValidation:rule="!has(self.from) || !has(self.until) || self.from < self.until",message="until must be after from: it is the day after the last one"
type PriceDiscount struct {
	// Tenant is its name.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Tenant string `json:"tenant"`
	// Percent of what the usage costs in the hours from From to Until, before any discount.
	Percent Percent `json:"percent,omitempty"`
	// Amount is taken off each month that has a day from From to Until.
	Amount Decimal `json:"amount,omitempty"`
	// From is the first day. Default: always.
	From Date `json:"from,omitempty"`
	// Until is the day after the last one. Default: without end.
	Until Date `json:"until,omitempty"`
}

// PriceTax is added to the sum after discounts.
type PriceTax struct {
	// Name is printed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Percent of the sum after discounts.
	Percent Percent `json:"percent"`
}

// Decimal is a decimal number in quotes, so that no digit is lost: 0 or more, with at most 12 digits before the point and 12 after it.
// +kubebuilder:validation:MaxLength=25
// +kubebuilder:validation:Pattern=`^[0-9]{1,12}(\.[0-9]{1,12})?$`
type Decimal string

// Percent is a decimal number in quotes, from 0 to 100.
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:Pattern=`^([0-9]{1,2}(\.[0-9]{1,12})?|100(\.0{1,12})?)$`
type Percent string

// Date is a day of the calendar as YYYY-MM-DD.
// +kubebuilder:validation:MaxLength=10
// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`
type Date string

// PriceList says what usage costs: prices/<pricelist>.yaml of the platform repository. Git has who wrote each price, and when. It holds for the
// tenants that name it in spec.priceList and, if it is the default, for those that name none.
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:scope=Cluster,shortName=prices,categories=kubeop
// +kubebuilder:printcolumn:name="Currency",type=string,JSONPath=`.spec.currency`
// +kubebuilder:printcolumn:name="Default",type=boolean,JSONPath=`.spec.default`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",message="name must be at most 63 lowercase letters, digits and dashes"
type PriceList struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PriceListSpec `json:"spec"`
}

// PriceListList is a list of PriceLists.
// +kubebuilder:object:root=true
type PriceListList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PriceList `json:"items"`
}

// PriceFault is what is wrong with a field of a PriceList, though its schema allows it.
type PriceFault struct {
	// Field is its path, such as spec.meters[0].periods[1].
	Field string
	// Why says what is wrong and what to do.
	Why string
	// Several: the value contradicts another field.
	Several bool
}

type priceFaults []PriceFault

func (f *priceFaults) add(field, format string, args ...any) {
	*f = append(*f, PriceFault{Field: field, Why: fmt.Sprintf(format, args...)})
}

func (f *priceFaults) contradicts(field, format string, args ...any) {
	*f = append(*f, PriceFault{Field: field, Why: fmt.Sprintf(format, args...), Several: true})
}

// Faults returns what is wrong with a list that its schema allows, in the order of its fields; none if it can be used.
func (s *PriceListSpec) Faults() []PriceFault {
	var f priceFaults
	if _, known := MinorUnit(s.Currency); !known {
		f.add("spec.currency", "must be a currency of ISO 4217 in upper case, such as EUR")
	}
	for i := range s.Meters {
		f.meter(fmt.Sprintf("spec.meters[%d]", i), &s.Meters[i])
	}
	for i := range s.Discounts {
		f.days(fmt.Sprintf("spec.discounts[%d]", i), s.Discounts[i].From, s.Discounts[i].Until)
	}
	return f
}

func (f *priceFaults) meter(at string, m *PriceMeter) {
	if units := UnitsOfPrices(m.Name); units != nil && units[m.Unit] == 0 {
		f.contradicts(at+".unit", "prices of %s are for one %s", m.Name, strings.Join(slices.Sorted(maps.Keys(units)), " or "))
	}
	for i := range m.Periods {
		of, p := fmt.Sprintf("%s.periods[%d]", at, i), &m.Periods[i]
		f.days(of, p.From, p.Until)
		f.tiers(of, p.Tiers)
		for j := range i {
			if overlap(p, &m.Periods[j]) {
				f.contradicts(of, "overlaps with %s.periods[%d], from %s: until is the day after the last one, so end the earlier period on the day on which the later begins", at, j, m.Periods[j].From)
				break
			}
		}
	}
}

// overlap reports whether a day is in both periods. A period that is wrong by itself overlaps with none.
func overlap(a, b *PricePeriod) bool {
	fromA, untilA, okA := Days(a.From, a.Until)
	fromB, untilB, okB := Days(b.From, b.Until)
	return okA && okB && fromA.Before(untilB) && fromB.Before(untilA)
}

func (f *priceFaults) days(at string, from, until Date) {
	for _, field := range []struct {
		name string
		day  Date
	}{{".from", from}, {".until", until}} {
		if _, ok := field.day.Time(); field.day != "" && !ok {
			f.add(at+field.name, "must be a day that the calendar has, such as 2026-01-31")
		}
	}
}

func (f *priceFaults) tiers(at string, tiers []PriceTier) {
	last := new(big.Rat)
	for i, tier := range tiers {
		of, end := fmt.Sprintf("%s.tiers[%d]", at, i), tier.UpTo.Rat()
		switch final := i == len(tiers)-1; {
		case final && tier.UpTo != "":
			f.contradicts(of+".upTo", "the last tier has no end: remove upTo, or add a tier for what is beyond it")
		case !final && tier.UpTo == "":
			f.contradicts(of, "upTo is required: only the last tier has none")
		case !final && end.Cmp(last) <= 0:
			f.contradicts(of+".upTo", "must be more than that of the tier before it, and more than 0")
		default:
			last = end
		}
	}
}

// Rat returns the number, 0 for an empty text and for any that is no Decimal.
func (d Decimal) Rat() *big.Rat { return rat(string(d)) }

// Rat returns the number, 0 for an empty text and for any that is no Percent.
func (p Percent) Rat() *big.Rat { return rat(string(p)) }

func rat(text string) *big.Rat {
	if strings.Trim(text, "0123456789.") != "" { // An exponent could make the number huge.
		return new(big.Rat)
	}
	if value, ok := new(big.Rat).SetString(text); ok {
		return value
	}
	return new(big.Rat)
}

// Time returns 00:00 UTC of the day, and whether the calendar has it.
func (d Date) Time() (time.Time, bool) {
	day, err := time.Parse(time.DateOnly, string(d))
	return day, err == nil
}

// Days returns the first hour of a time, and the hour after its last one, and whether there is an hour between the two. Without from it begins before all
// usage, and without until it ends after all.
func Days(from, until Date) (begin, end time.Time, ok bool) {
	okFrom, okUntil := true, true
	end = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
	if from != "" {
		begin, okFrom = from.Time()
	}
	if until != "" {
		end, okUntil = until.Time()
	}
	return begin, end, okFrom && okUntil && begin.Before(end)
}

// MinorUnit returns how many digits after the point amounts of a currency have, as the Unicode CLDR says, and whether ISO 4217 has it.
func MinorUnit(code string) (digits int, known bool) {
	unit, err := currency.ParseISO(code)
	if err != nil || unit.String() != code || code == "XXX" || code == "XTS" {
		return 0, false
	}
	digits, _ = currency.Standard.Rounding(unit)
	return digits, true
}

// UnitsOfPrices returns the units in which a meter that kubeop measures may be priced, with how many core-seconds, byte-seconds or seconds each is; nil for
// a meter that others measure.
func UnitsOfPrices(meter string) map[string]int64 {
	kind, _, _ := strings.Cut(meter, "/")
	switch kind {
	case "cpu.requested", "cpu.used":
		return map[string]int64{"core-hour": 3600}
	case "memory.requested", "memory.used", "storage":
		return map[string]int64{"GiB-hour": 3600 << 30, "GB-hour": 3600e9}
	case "pods", "loadbalancers", "objects":
		return map[string]int64{"hour": 3600}
	}
	return nil
}
