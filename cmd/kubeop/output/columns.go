package output

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"
)

// Columns collects rows and aligns them, colours left out of the widths. The last column is not padded. The zero Columns is ready to use.
type Columns struct {
	// Gap is the space between columns. Default: three spaces.
	Gap string

	rows   [][]string
	widths []int
}

// Add adds a row.
func (c *Columns) Add(cells ...string) { c.rows = append(c.rows, cells) }

// Empty reports whether no row was added.
func (c *Columns) Empty() bool { return len(c.rows) == 0 }

// Write writes the rows, each after a prefix. Rows that are added later are aligned with these, as far as they fit.
func (c *Columns) Write(w io.Writer, prefix string) error {
	for _, row := range c.rows {
		for i, cell := range row {
			if i == len(c.widths) {
				c.widths = append(c.widths, 0)
			}
			c.widths[i] = max(c.widths[i], width(cell))
		}
	}
	rows := c.rows
	c.rows = nil
	for _, row := range rows {
		line := prefix
		for i, cell := range row {
			line += cell
			if i < len(row)-1 {
				line += strings.Repeat(" ", c.widths[i]-width(cell)) + cmp.Or(c.Gap, "   ")
			}
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " ")); err != nil {
			return err
		}
	}
	return nil
}

// width is the number of characters that a terminal shows.
func width(s string) int { return utf8.RuneCountInString(colour.ReplaceAllString(s, "")) }

// Age says how long ago a time was, as kubectl does: "5m", or "" for the zero time.
func Age(now, then time.Time) string {
	if then.IsZero() {
		return ""
	}
	return duration.HumanDuration(now.Sub(then))
}
