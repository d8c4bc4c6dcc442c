package repository

import (
	"strings"

	"github.com/kubeop/kubeop/delivery/few"
)

// shortened shortens a list for the status: lines are its first lines, of so many in all.
func shortened(lines []string, all, most int) []string {
	if all <= most || len(lines) < most {
		return lines
	}
	return append(lines[:most-1:most-1], few.More(all-most+1))
}

// listed names some of many things.
func listed(names []string) string { return strings.Join(few.Of(names, 5), ", ") }
