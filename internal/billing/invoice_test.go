package billing

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/inf.v0"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/meter"
)

func tiers(pairs ...v1alpha1.Decimal) (all []v1alpha1.PriceTier) {
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, v1alpha1.PriceTier{UpTo: pairs[i], Price: pairs[i+1]})
	}
	return all
}

// listOf prices the meter gpu, which others measure.
func listOf(periods ...v1alpha1.PricePeriod) *v1alpha1.PriceListSpec {
	return &v1alpha1.PriceListSpec{Currency: "EUR", Meters: []v1alpha1.PriceMeter{{Name: "gpu", Unit: "gpu-hour", Periods: periods}}}
}

func used(t *testing.T, app, hour, quantity string) Used {
	t.Helper()
	at, err := time.Parse("2006-01-02T15", hour)
	if err != nil {
		t.Fatal(err)
	}
	return Used{"main", "shop", app, at, map[string]*inf.Dec{"gpu": amount(t, quantity)}}
}

func amount(t *testing.T, text string) *inf.Dec {
	t.Helper()
	d, ok := new(inf.Dec).SetString(text)
	if !ok {
		t.Fatalf("%s is no number", text)
	}
	return d
}

func compute(t *testing.T, usage []Used, list *v1alpha1.PriceListSpec, month string) *Invoice {
	t.Helper()
	m, err := ParseMonth(month)
	if err != nil {
		t.Fatal(err)
	}
	i, err := Compute(Input{Tenant: "acme", Month: m, Usage: usage, Prices: Prices{Name: "standard", Spec: list}})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// lines writes what an invoice says in one line.
func lines(i *Invoice) string {
	var all []string
	for _, l := range i.Lines {
		all = append(all, fmt.Sprintf("%d.%d: %s × %s = %s", l.Period, l.Tier, l.Quantity, l.Price, l.Amount))
	}
	for _, u := range i.Unpriced {
		all = append(all, fmt.Sprintf("unpriced %s %s in %d h", u.Meter, u.Quantity, u.Hours))
	}
	return strings.Join(append(all, "total "+i.Total), "; ")
}

func TestALineHasThePriceOfItsPeriodAndTier(t *testing.T) {
	year := v1alpha1.PricePeriod{From: "2024-01-01", Tiers: tiers("", "1")}
	for name, c := range map[string]struct {
		month   string
		usage   []Used
		periods []v1alpha1.PricePeriod
		want    string
	}{
		"no usage":                           {"2026-02", nil, []v1alpha1.PricePeriod{year}, "total 0.00"},
		"usage of zero":                      {"2026-02", []Used{used(t, "web", "2026-02-01T00", "0")}, []v1alpha1.PricePeriod{year}, "total 0.00"},
		"the first and the last hour":        {"2026-02", []Used{used(t, "web", "2026-02-01T00", "1"), used(t, "web", "2026-02-28T23", "2")}, []v1alpha1.PricePeriod{year}, "0.1: 3 × 1 = 3.00; total 3.00"},
		"hours of other months":              {"2026-02", []Used{used(t, "web", "2026-01-31T23", "1"), used(t, "web", "2026-03-01T00", "2")}, []v1alpha1.PricePeriod{year}, "total 0.00"},
		"29 February of a leap year":         {"2024-02", []Used{used(t, "web", "2024-02-29T23", "1")}, []v1alpha1.PricePeriod{year}, "0.1: 1 × 1 = 1.00; total 1.00"},
		"a half is rounded up":               {"2026-02", []Used{used(t, "web", "2026-02-01T00", "0.125")}, []v1alpha1.PricePeriod{year}, "0.1: 0.125 × 1 = 0.13; total 0.13"},
		"a little less than a half is not":   {"2026-02", []Used{used(t, "web", "2026-02-01T00", "0.12499999999999999999")}, []v1alpha1.PricePeriod{year}, "0.1: 0.125 × 1 = 0.12; total 0.12"},
		"the apps of an hour together":       {"2026-02", []Used{used(t, "web", "2026-02-01T00", "5"), used(t, "api", "2026-02-01T00", "2")}, []v1alpha1.PricePeriod{year}, "0.1: 7 × 1 = 7.00; total 7.00"},
		"tiers price what is in them":        {"2026-02", []Used{used(t, "web", "2026-02-01T00", "15"), used(t, "web", "2026-02-01T01", "10")}, []v1alpha1.PricePeriod{{From: "2026-01-01", Tiers: tiers("10", "3", "20", "2", "", "1")}}, "0.1: 10 × 3 = 30.00; 0.2: 10 × 2 = 20.00; 0.3: 5 × 1 = 5.00; total 55.00"},
		"no price before the first period":   {"2026-02", []Used{used(t, "web", "2026-02-09T23", "1"), used(t, "web", "2026-02-10T00", "2")}, []v1alpha1.PricePeriod{{From: "2026-02-10", Tiers: tiers("", "1")}}, "0.1: 2 × 1 = 2.00; unpriced gpu 1 in 1 h; total 2.00"},
		"no price for the meter":             {"2026-02", []Used{about(used(t, "web", "2026-02-09T23", "1.5"), "pods")}, []v1alpha1.PricePeriod{year}, "unpriced pods 1.5 in 1 h; total 0.00"},
		"an hour in another time zone":       {"2026-02", []Used{zoned(used(t, "web", "2026-01-31T23", "1")), zoned(used(t, "web", "2026-02-28T23", "2"))}, []v1alpha1.PricePeriod{year}, "0.1: 2 × 1 = 2.00; total 2.00"},
		"the free amount is once in a month": {"2026-02", []Used{used(t, "web", "2026-02-01T00", "2"), used(t, "web", "2026-02-15T00", "2")}, []v1alpha1.PricePeriod{{From: "2026-01-01", Free: "3", Tiers: tiers("", "1")}}, "0.0: 3 × 0 = 0.00; 0.1: 1 × 1 = 1.00; total 1.00"},
		"tiers go on through a new price": {"2026-02", []Used{used(t, "web", "2026-02-01T00", "8"), used(t, "web", "2026-02-10T00", "8")}, []v1alpha1.PricePeriod{
			{From: "2026-02-10", Tiers: tiers("10", "4", "", "3")}, {From: "2026-01-01", Until: "2026-02-10", Tiers: tiers("10", "2", "", "1")},
		}, "0.1: 2 × 4 = 8.00; 0.2: 6 × 3 = 18.00; 1.1: 8 × 2 = 16.00; total 42.00"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lines(compute(t, c.usage, listOf(c.periods...), c.month)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func about(u Used, meter string) Used {
	u.Amounts = map[string]*inf.Dec{meter: u.Amounts["gpu"]}
	return u
}

func zoned(u Used) Used { u.Hour = u.Hour.In(time.FixedZone("east", 5*3600)); return u }

// TestQuantitiesAreInUnitsOfPrices: a third of a core-hour is no decimal, and three of them are one all the same.
func TestQuantitiesAreInUnitsOfPrices(t *testing.T) {
	for _, c := range []struct{ meter, unit, amount, want string }{
		{"cpu.requested", "core-hour", "1200", "0.1: 1 × 3 = 3.00; total 3.00"},
		{"memory.used", "GiB-hour", "1288490188800", "0.1: 1 × 3 = 3.00; total 3.00"},
		{"storage/fast", "GB-hour", "1200000000000", "0.1: 1 × 3 = 3.00; total 3.00"},
		{"pods", "hour", "1200", "0.1: 1 × 3 = 3.00; total 3.00"},
	} {
		list := listOf(v1alpha1.PricePeriod{From: "2026-01-01", Tiers: tiers("", "3")})
		list.Meters[0].Name, list.Meters[0].Unit = c.meter, c.unit
		var usage []Used
		for _, hour := range []string{"00", "01", "02"} {
			u := used(t, "web", "2026-02-01T"+hour, c.amount)
			usage = append(usage, about(u, c.meter))
		}
		i := compute(t, usage, list, "2026-02")
		if got := lines(i); got != c.want || i.Lines[0].Hours[0].Quantity != "0.333333333333" {
			t.Errorf("%s: got %s in hours of %s, want %s", c.meter, got, i.Lines[0].Hours[0].Quantity, c.want)
		}
	}
}

// TestEachMeterHasUnitsOfPrices: a meter that kubeop measures and no price knows would be priced by the second.
func TestEachMeterHasUnitsOfPrices(t *testing.T) {
	base := map[string][]string{"core-seconds": {"core-hour"}, "byte-seconds": {"GB-hour", "GiB-hour"}, "seconds": {"hour"}}
	for _, group := range meter.Groups {
		for _, name := range append(meter.NamesOf(group), meter.StorageOf("fast")) {
			if got := slices.Sorted(maps.Keys(v1alpha1.UnitsOfPrices(name))); !slices.Equal(got, base[meter.UnitOf(name)]) {
				t.Errorf("%s in %s is priced by %s", name, meter.UnitOf(name), got)
			}
		}
	}
}

func TestDiscountsAreTakenOffInOrderAndTaxesAddedToTheRest(t *testing.T) {
	for name, c := range map[string]struct {
		currency  string
		discounts []v1alpha1.PriceDiscount
		quantity  string
		want      string
	}{
		"none":                        {"EUR", nil, "10", "net 10.00 total 11.90"},
		"of another tenant":           {"EUR", []v1alpha1.PriceDiscount{{Tenant: "rival", Percent: "50"}}, "10", "net 10.00 total 11.90"},
		"percents are of the usage":   {"EUR", []v1alpha1.PriceDiscount{{Tenant: "acme", Percent: "50"}, {Tenant: "acme", Percent: "25"}}, "10", "-5.00 -2.50 net 2.50 total 2.98"},
		"not below zero":              {"EUR", []v1alpha1.PriceDiscount{{Tenant: "acme", Amount: "8"}, {Tenant: "acme", Amount: "8"}, {Tenant: "acme", Amount: "8"}}, "10", "-8.00 -2.00 net 0.00 total 0.00"},
		"before the month":            {"EUR", []v1alpha1.PriceDiscount{{Tenant: "acme", Amount: "8", Until: "2026-02-01"}}, "10", "net 10.00 total 11.90"},
		"until its first day is over": {"EUR", []v1alpha1.PriceDiscount{{Tenant: "acme", Amount: "8", Until: "2026-02-02"}}, "10", "-8.00 net 2.00 total 2.38"},
		"after the usage":             {"EUR", []v1alpha1.PriceDiscount{{Tenant: "acme", Percent: "8", From: "2026-02-03"}}, "10", "net 10.00 total 11.90"},
		"a currency without cents":    {"JPY", nil, "10.5", "net 11 total 13"},
		"a currency of three digits":  {"KWD", nil, "10.0005", "net 10.001 total 11.901"},
	} {
		t.Run(name, func(t *testing.T) {
			list := listOf(v1alpha1.PricePeriod{From: "2026-01-01", Tiers: tiers("", "1")})
			list.Currency, list.Discounts, list.Taxes = c.currency, c.discounts, []v1alpha1.PriceTax{{Name: "VAT", Percent: "19"}}
			i, got := compute(t, []Used{used(t, "web", "2026-02-02T00", c.quantity)}, list, "2026-02"), ""
			for _, d := range i.Discounts {
				got += d.Amount + " "
			}
			if got += "net " + i.Net + " total " + i.Total; got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestUsageAndPricesThatAreWrongAreErrors(t *testing.T) {
	u, late := used(t, "web", "2026-02-01T00", "1"), used(t, "web", "2026-02-01T00", "1")
	late.Hour = late.Hour.Add(time.Minute)
	year := v1alpha1.PricePeriod{From: "2026-01-01", Tiers: tiers("", "1")}
	for name, c := range map[string]struct {
		usage []Used
		list  *v1alpha1.PriceListSpec
		want  string
	}{
		"not of an hour":           {[]Used{late}, listOf(year), "is not of an hour"},
		"there twice":              {[]Used{u, u}, listOf(year), "is there twice"},
		"negative":                 {[]Used{used(t, "web", "2026-02-01T00", "-1")}, listOf(year), "is negative"},
		"prices that overlap":      {nil, listOf(year, year), "spec.meters[0].periods[1]: overlaps with"},
		"a currency that is none":  {nil, &v1alpha1.PriceListSpec{Currency: "EUX"}, "spec.currency: must be a currency"},
		"another cluster is other": {[]Used{u, {Cluster: "second", Project: u.Project, App: u.App, Hour: u.Hour}}, listOf(year), ""},
	} {
		i, err := Compute(Input{Tenant: "acme", Month: february, Usage: c.usage, Prices: Prices{Spec: c.list}})
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) || (i == nil) != (err != nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAnInvoiceAddsUpInWhateverOrderUsageComes makes random usage: lines and taxes add up, the hours of a line too; and neither the order
// of usage nor which apps have the usage of an hour changes a byte.
func TestAnInvoiceAddsUpInWhateverOrderUsageComes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	list := listOf(
		v1alpha1.PricePeriod{From: "2026-01-01", Until: "2026-02-10", Free: "7.5", Tiers: tiers("50", "0.0371", "200", "0.0213", "", "0.011")},
		v1alpha1.PricePeriod{From: "2026-02-10", Free: "3", Tiers: tiers("100", "0.0417", "", "0.019")},
	)
	list.Discounts = []v1alpha1.PriceDiscount{{Tenant: "acme", Percent: "7.5", From: "2026-02-05"}}
	list.Taxes = []v1alpha1.PriceTax{{Name: "VAT", Percent: "19"}, {Name: "city", Percent: "1.25"}}
	for range 50 {
		var whole, parts []Used
		for n := range 100 {
			u := used(t, "web", "2026-02-01T00", "0")
			u.Hour = u.Hour.Add(time.Duration(n*6) * time.Hour)
			a, c := random.Int64N(4000), random.Int64N(4000)
			first, second := u, u
			u.Amounts, first.Amounts, second.Amounts, second.App = of(a+c), of(a), of(c), "api"
			whole, parts = append(whole, u), append(parts, first, second)
		}
		random.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		one, two := compute(t, whole, list, "2026-02"), compute(t, parts, list, "2026-02")
		if a, b := encode(t, one), encode(t, two); a != b {
			t.Fatalf("parts in another order change the invoice:\n%s\n%s", a, b)
		}
		addsUp(t, one)
	}
}

func of(thousandths int64) map[string]*inf.Dec {
	return map[string]*inf.Dec{"gpu": inf.NewDec(thousandths, 3)}
}

func addsUp(t *testing.T, i *Invoice) {
	t.Helper()
	net := new(big.Rat)
	for _, l := range i.Lines {
		sum := new(big.Rat)
		for _, h := range l.Hours {
			mustAdd(t, sum, h.Quantity)
		}
		if text(sum) != l.Quantity {
			t.Errorf("the hours of a line are %s, the line %s", text(sum), l.Quantity)
		}
		mustAdd(t, net, l.Amount)
	}
	for _, d := range i.Discounts {
		mustAdd(t, net, d.Amount)
	}
	if net.FloatString(2) != i.Net {
		t.Errorf("lines and discounts are %s, net is %s", net.FloatString(2), i.Net)
	}
	for _, tax := range i.Taxes {
		mustAdd(t, net, tax.Amount)
	}
	if net.FloatString(2) != i.Total {
		t.Errorf("net and taxes are %s, the total is %s", net.FloatString(2), i.Total)
	}
}

func mustAdd(t *testing.T, sum *big.Rat, text string) {
	t.Helper()
	value, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("%s is no number", text)
	}
	sum.Add(sum, value)
}

func encode(t *testing.T, i *Invoice) string {
	t.Helper()
	text, err := json.Marshal(i)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
