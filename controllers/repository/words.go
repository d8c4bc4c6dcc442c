package repository

import (
	"fmt"
	"strings"
)

// shortened shortens a list for the status: lines are its first lines, of so many in all.
func shortened(lines []string, all, most int) []string {
	if all <= most || len(lines) < most {
		return lines
	}
	return append(lines[:most-1:most-1], fmt.Sprintf("and %d more", all-most+1))
}

// listed names some of many things.
func listed(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
