package inventory

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Join returns the entries of both lists, sorted by ID.
func Join(made, kept []v1alpha1.InventoryEntry) v1alpha1.Inventory {
	entries := append(slices.Clone(made), kept...)
	slices.SortFunc(entries, func(x, y v1alpha1.InventoryEntry) int { return strings.Compare(x.ID, y.ID) })
	return v1alpha1.Inventory{Entries: entries}
}

// Names lists entries for people, as "Kind/name", at most five.
func Names(entries []v1alpha1.InventoryEntry) string {
	var names []string
	for i, e := range entries {
		if i == 5 {
			names = append(names, fmt.Sprintf("and %d more", len(entries)-i))
			break
		}
		name := e.ID
		if id, err := ParseObjectID(e.ID); err == nil {
			name = id.Kind + "/" + id.Name
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// Without returns the recorded entries that are not among the kept ones.
func Without(recorded, kept []v1alpha1.InventoryEntry) []v1alpha1.InventoryEntry {
	ids := map[string]bool{}
	for _, e := range kept {
		ids[e.ID] = true
	}
	var stale []v1alpha1.InventoryEntry
	for _, e := range recorded {
		if !ids[e.ID] {
			stale = append(stale, e)
		}
	}
	return stale
}
