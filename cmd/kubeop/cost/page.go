package cost

import (
	"errors"
	"fmt"

	"github.com/kubeop/kubeop/api/client"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/output"
)

// bill is what an invoice and a draft have in common.
type bill struct {
	currency, net, total string
	lines                []client.Line
	discounts            []client.Discount
	taxes                []client.Tax
	apps                 []client.AppShare
	unpriced             []client.Unpriced
	gaps                 []client.Gap
}

// draft shows what the invoice of a month would be now.
func draft(c *call.Call, list *client.InvoicePage, o options) error {
	d := &list.Draft
	if d.Month == "" {
		if list.NoDraft == "" {
			return fmt.Errorf("the manager answered nothing about %s", o.month)
		}
		return errors.New(list.NoDraft)
	}
	page := c.Page()
	page.Title("%s has used in %s, which is not closed", d.Tenant, d.Month)
	b := bill{d.Currency, d.Net, d.Total, d.Lines, d.Discounts, d.Taxes, d.Apps, d.Unpriced, d.Gaps}
	b.write(page, o)
	if d.Forecast.Total != "" {
		page.Title("Forecast, if usage goes on as in the last day")
		page.Line("net", d.Forecast.Net)
		page.Line("total", d.Forecast.Total)
	}
	return page.End()
}

// closed shows an invoice, with the credit notes about it.
func closed(c *call.Call, is *client.Invoice, all []client.InvoiceSummary, o options) error {
	page := c.Page()
	page.Title("Invoice %d of %s for %s", is.Number, is.Tenant, is.Month)
	b := bill{is.Currency, is.Net, is.Total, is.Lines, is.Discounts, is.Taxes, is.Apps, is.Unpriced, is.Gaps}
	b.write(page, o)
	titled := false
	for _, note := range all {
		if note.Credits != is.Number {
			continue
		}
		if !titled {
			page.Title("Credit notes about it")
			titled = true
		}
		page.Line(fmt.Sprint(note.Number), note.Closed.Format("2006-01-02"), note.Total)
	}
	return page.End()
}

func (b *bill) write(page *output.Page, o options) {
	if o.by == "app" {
		b.byApp(page)
	} else {
		b.byMeter(page)
	}
	if len(b.unpriced) > 0 {
		page.Title("Usage without a price, which is on no line")
		for _, u := range b.unpriced {
			page.Line(u.Meter, u.Quantity)
		}
	}
	if len(b.gaps) > 0 {
		minutes := int64(0)
		for _, g := range b.gaps {
			minutes += g.Minutes
		}
		page.Title("Not measured")
		page.Line(fmt.Sprintf("Of some meters %d minutes were not measured together. Nothing is charged for them.", minutes))
	}
}

func (b *bill) byApp(page *output.Page) {
	page.Line("PROJECT", "APP", b.currency)
	for _, a := range b.apps {
		page.Line(a.Project, a.App, a.Amount)
	}
	page.Title("All apps, with discounts and taxes")
	b.sums(func(what, of, amount string) { page.Line(what, of, amount) })
}

func (b *bill) byMeter(page *output.Page) {
	page.Line("METER", "TIER", "QUANTITY", "UNIT", "PRICE", b.currency)
	for i := range b.lines {
		l := &b.lines[i]
		tier := fmt.Sprint(l.Tier)
		if l.Tier == 0 {
			tier = "free"
		}
		page.Line(l.Meter, tier, l.Quantity, l.Unit, l.Price, l.Amount)
	}
	b.sums(func(what, of, amount string) { page.Line(what, "", "", "", of, amount) })
}

// sums writes discounts, taxes and sums.
func (b *bill) sums(line func(what, of, amount string)) {
	percent := func(p string) string {
		if p == "" {
			return ""
		}
		return p + " %"
	}
	for _, d := range b.discounts {
		line("discount", percent(d.Percent), d.Amount)
	}
	line("net", "", b.net)
	for _, t := range b.taxes {
		line(t.Name, percent(t.Percent), t.Amount)
	}
	line("total", "", b.total)
}
