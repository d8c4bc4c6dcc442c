package check

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/identity"
)

const prices = `apiVersion: paas.kubeop.io/v1alpha1
kind: PriceList
metadata: {name: standard}
spec:
  currency: EUR
  meters:
  - name: cpu.requested
    unit: core-hour
    periods:
    - from: 2026-01-01
      until: 2026-07-01
      tiers:
      - {upTo: "10", price: "0.04"}
      - price: "0.03"
    - from: 2026-07-01
      tiers: [{price: "0.05"}]
  discounts:
  - {tenant: acme, percent: "10"}
  taxes:
  - {name: VAT, percent: "19"}
`

// TestPriceListsAreRefusedWhereTheyAreWrong changes one place of a valid file.
func TestPriceListsAreRefusedWhereTheyAreWrong(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"valid":                            {"", "", ""},
		"periods that overlap":             {"from: 2026-07-01", "from: 2026-06-30", "15: spec.meters[0].periods[1]: overlaps with spec.meters[0].periods[0], from 2026-01-01: until is the day after the last one, so end the earlier period on the day on which the later begins"},
		"an end that is misspelt":          {"until: 2026", "untl: 2026", "11: unknown field spec.meters[0].periods[0].untl (did you mean spec.meters[0].periods[0].until?)"},
		"a price without quotes":           {`price: "0.03"`, "price: 0.03", "14: spec.meters[0].periods[0].tiers[1].price: must be of type string, not number"},
		"a negative price":                 {`"0.03"`, `"-0.03"`, "14: spec.meters[0].periods[0].tiers[1].price: must be a number in quotes such as \"0.025\", not negative, with at most 12 digits before the point and 12 after it"},
		"a huge price":                     {`"0.03"`, `"1e9999"`, "14: spec.meters[0].periods[0].tiers[1].price: must be a number in quotes such as \"0.025\", not negative, with at most 12 digits before the point and 12 after it"},
		"no day":                           {"2026-01-01", "2026-02-30", "10: spec.meters[0].periods[0].from: must be a day that the calendar has, such as 2026-01-31"},
		"no date":                          {"2026-01-01", "soon", "10: spec.meters[0].periods[0].from: must be a day as YYYY-MM-DD, such as 2026-01-31"},
		"an end before its start":          {"until: 2026-07-01", "until: 2026-01-01", "10: spec.meters[0].periods[0]: until must be after from: it is the day after the last one"},
		"a tier without its end":           {`upTo: "10", `, "", "13: spec.meters[0].periods[0].tiers[0]: upTo is required: only the last tier has none"},
		"an end of the last tier":          {`{price: "0.05"}`, `{price: "0.05", upTo: "5"}`, "16: spec.meters[0].periods[1].tiers[0].upTo: the last tier has no end: remove upTo, or add a tier for what is beyond it"},
		"a tier that ends where it begins": {`upTo: "10"`, `upTo: "0"`, "13: spec.meters[0].periods[0].tiers[0].upTo: must be more than that of the tier before it, and more than 0"},
		"an unknown currency":              {"EUR", "EUX", "5: spec.currency: must be a currency of ISO 4217 in upper case, such as EUR"},
		"a currency in lower case":         {"EUR", "eur", "5: spec.currency: must be a currency of ISO 4217 in upper case, such as EUR"},
		"a unit of something else":         {"core-hour", "GiB-hour", "8: spec.meters[0].unit: prices of cpu.requested are for one core-hour"},
		"more than all":                    {`"10"}`, `"100.5"}`, "18: spec.discounts[0].percent: must be a number in quotes from \"0\" to \"100\", such as \"7.5\""},
		"two kinds of discount":            {`percent: "10"`, `percent: "10", amount: "5"`, "18: spec.discounts[0]: either percent or amount is required: write two discounts to have both"},
		"a discount of no day":             {`percent: "10"`, `percent: "10", from: 2026-13-01`, "18: spec.discounts[0].from: must be a day that the calendar has, such as 2026-01-31"},
		"a seller of two lines":            {"  meters:", "  seller: {name: \"a\\nb\"}\n  meters:", "6: spec.seller.name: must be a text on one line, which neither begins nor ends with a space"},
		"an empty number of a seller":      {"  meters:", "  seller: {name: a, taxID: \"\"}\n  meters:", "6: spec.seller.taxID: must be a text on one line, which neither begins nor ends with a space"},
		"another name":                     {"name: standard", "name: other", `3: metadata.name is "other", but its file is "standard": give both the same name`},
	} {
		t.Run(name, func(t *testing.T) {
			result, got := findings(t, identity.Ref{PriceList: "standard"}, strings.Replace(prices, c.old, c.new, 1), false)
			var want []string
			if c.want != "" {
				want = []string{c.want}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if list, is := result.Object.(*v1alpha1.PriceList); want == nil && (!is || list.Spec.Meters[0].Periods[1].From != "2026-07-01") {
				t.Errorf("the object is %v", result.Object)
			}
		})
	}
}
