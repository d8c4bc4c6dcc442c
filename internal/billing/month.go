package billing

import (
	"fmt"
	"time"
)

// Month is a calendar month in UTC, the period of every invoice.
type Month struct {
	year  int
	month time.Month
}

// ParseMonth reads YYYY-MM.
func ParseMonth(text string) (Month, error) {
	t, err := time.Parse("2006-01", text)
	if err != nil {
		return Month{}, fmt.Errorf("%q is no month such as 2026-01", text)
	}
	return MonthOf(t), nil
}

// MonthOf returns the month of a time.
func MonthOf(t time.Time) Month { return Month{t.UTC().Year(), t.UTC().Month()} }

// Start is the first hour.
func (m Month) Start() time.Time { return time.Date(m.year, m.month, 1, 0, 0, 0, 0, time.UTC) }

// End is the first hour of the next month.
func (m Month) End() time.Time { return m.Start().AddDate(0, 1, 0) }

// Has reports whether a time is in the month.
func (m Month) Has(t time.Time) bool { return !t.Before(m.Start()) && t.Before(m.End()) }

func (m Month) String() string { return m.Start().Format("2006-01") }
