package billing

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/inf.v0"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

var february = Month{2026, time.February}

// TestThePageHasTheInvoiceOfItsExample computes the invoice of docs/cost.md from the prices and the usage there.
func TestThePageHasTheInvoiceOfItsExample(t *testing.T) {
	page, err := os.ReadFile("../../docs/cost.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "```yaml prices/standard.yaml\n")
	block, _, _ := strings.Cut(after, "```")
	list := &v1alpha1.PriceList{}
	if err := yaml.UnmarshalStrict([]byte(block), list); err != nil {
		t.Fatal(err)
	}
	var usage []Used
	for _, row := range rows(string(page), "| hour |") {
		at, err := time.Parse(time.RFC3339, row[0])
		if err != nil {
			t.Fatal(err)
		}
		usage = append(usage, Used{"main", "shop", row[1], at, map[string]*inf.Dec{"cpu.requested": amount(t, row[2])}})
	}
	i, err := Compute(Input{Tenant: "acme", Month: february, Usage: usage, Prices: Prices{Name: list.Name, Spec: &list.Spec}})
	if err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, l := range i.Lines {
		got = append(got, []string{fmt.Sprintf("period %d, tier %d", l.Period, l.Tier), l.Quantity, l.Price, l.Amount})
	}
	for _, d := range i.Discounts {
		got = append(got, []string{"discount", d.Base, d.Percent + " %", d.Amount})
	}
	got = append(got, []string{"net", "", "", i.Net})
	for _, tax := range i.Taxes {
		got = append(got, []string{tax.Name, "", tax.Percent + " %", tax.Amount})
	}
	got = append(got, []string{"total", "", "", i.Total})
	if diff := cmp.Diff(rows(string(page), "| on the invoice |"), got); diff != "" {
		t.Errorf("the page and the invoice differ (-page +invoice):\n%s", diff)
	}
}

// rows returns the cells of a table, without its head.
func rows(page, head string) (all [][]string) {
	_, after, _ := strings.Cut(page, head)
	for n, line := range strings.Split(after, "\n") {
		if n < 2 {
			continue
		}
		if !strings.HasPrefix(line, "|") {
			break
		}
		var cells []string
		for _, cell := range strings.Split(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		all = append(all, cells)
	}
	return all
}
