package invoices

import (
	"bytes"
	"encoding/csv"
	"strconv"
	"strings"
	"time"
)

// csvColumns are the first row. The rows line, discount and tax add up to total; hour says of what hours the line before it is made.
var csvColumns = []string{"row", "name", "unit", "period", "tier", "hour", "quantity", "price", "amount"}

// asCSV writes a row for each line, hour, discount, tax and sum.
func asCSV(is *Invoice) ([]byte, error) {
	rows := [][]string{
		csvColumns,
		{"number", strconv.FormatInt(is.Number, 10)}, {"kind", is.Kind}, {"tenant", is.Tenant}, {"month", is.Month}, {"currency", is.Currency},
		{"closed", is.Closed.Format(time.RFC3339)}, {"price list", is.PriceList}, {"revision", is.Revision},
	}
	if is.Credits != 0 {
		rows = append(rows, []string{"credits", strconv.FormatInt(is.Credits, 10)}, []string{"reason", is.Reason})
	}
	if seller := is.Seller; seller != nil {
		rows = append(rows, []string{"seller", seller.Name}, []string{"seller address", seller.Address}, []string{"seller tax id", seller.TaxID})
	}
	for i := range is.Lines {
		l := &is.Lines[i]
		period, tier := strconv.Itoa(l.Period), strconv.Itoa(l.Tier)
		rows = append(rows, []string{"line", l.Meter, l.Unit, period, tier, "", l.Quantity, l.Price, l.Amount})
		for _, h := range l.Hours {
			rows = append(rows, []string{"hour", l.Meter, l.Unit, period, tier, h.Hour.Format(time.RFC3339), h.Quantity, l.Price, ""})
		}
	}
	for _, d := range is.Discounts {
		rows = append(rows, []string{"discount", "", percentUnit(d.Percent), "", "", "", d.Base, d.Percent, d.Amount})
	}
	rows = append(rows, []string{"net", "", "", "", "", "", "", "", is.Net})
	for _, t := range is.Taxes {
		rows = append(rows, []string{"tax", t.Name, percentUnit(t.Percent), "", "", "", is.Net, t.Percent, t.Amount})
	}
	rows = append(rows, []string{"total", "", "", "", "", "", "", "", is.Total})
	for _, u := range is.Unpriced {
		rows = append(rows, []string{"unpriced", u.Meter, "", "", "", "", u.Quantity, "", ""})
	}
	for _, a := range is.Apps {
		rows = append(rows, []string{"app", a.Project + "/" + a.App, "", "", "", "", "", "", a.Amount})
	}
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	for _, row := range rows {
		row = append(row, make([]string, len(csvColumns)-len(row))...)
		row[1], row[2] = noFormula(row[1]), noFormula(row[2])
		if err := w.Write(row); err != nil {
			return nil, err
		}
	}
	w.Flush()
	return out.Bytes(), w.Error()
}

func percentUnit(percent string) string {
	if percent == "" {
		return ""
	}
	return "percent"
}

// noFormula keeps a text from being a formula in a spreadsheet.
func noFormula(text string) string {
	if text != "" && strings.ContainsAny(text[:1], "=+-@\t\r\n") {
		return "'" + text
	}
	return text
}
