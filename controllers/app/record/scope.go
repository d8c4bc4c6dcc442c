package record

import (
	"slices"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Outside returns the entries of objects outside the App's namespace: cluster-scoped objects and, for an App of the platform itself,
// objects in other namespaces.
func Outside(entries []v1alpha1.InventoryEntry, namespace string) []v1alpha1.InventoryEntry {
	return slices.DeleteFunc(slices.Clone(entries), func(e v1alpha1.InventoryEntry) bool { return isInside(e, namespace) })
}

// Inside returns the entries of objects in the App's namespace.
func Inside(entries []v1alpha1.InventoryEntry, namespace string) []v1alpha1.InventoryEntry {
	outside := func(e v1alpha1.InventoryEntry) bool { return !isInside(e, namespace) }
	if !slices.ContainsFunc(entries, outside) {
		return entries
	}
	return slices.DeleteFunc(slices.Clone(entries), outside)
}

// isInside reports whether an entry names an object of the namespace. An entry's ID begins with the namespace.
func isInside(e v1alpha1.InventoryEntry, namespace string) bool {
	return strings.HasPrefix(e.ID, namespace+"_")
}
