package measure

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Table writes aligned columns: the first to the left, the others to the right.
type Table struct {
	out  io.Writer
	rows [][]string
}

// NewTable returns an empty table. End writes it.
func NewTable(out io.Writer) *Table { return &Table{out: out} }

// Row adds a row. The first one is the header.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, cells) }

// End writes the rows.
func (t *Table) End() {
	first := 0
	for _, row := range t.rows {
		first = max(first, len(row[0]))
	}
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range t.rows {
		_, _ = fmt.Fprintf(w, "%-*s\t%s\t\n", first, row[0], strings.Join(row[1:], "\t"))
	}
	_ = w.Flush()
}

// Fixed formats a number with two decimals, and zero as "".
func Fixed(value float64) string {
	if value == 0 {
		return "0"
	}
	return strconv.FormatFloat(value, 'f', 2, 64)
}

// MiB formats a number of bytes as MiB.
func MiB(bytes int64) string { return fmt.Sprintf("%.0f MiB", float64(bytes)/(1<<20)) }

// Percentile returns the nearest rank of a share between 0 and 1.
func Percentile(values []float64, share float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}
