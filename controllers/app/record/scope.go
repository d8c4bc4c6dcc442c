package record

import (
	"slices"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Outside returns the entries of objects that are not in the App's namespace: those without a namespace and, of an App of the platform itself,
// those in other namespaces.
func Outside(entries []v1alpha1.InventoryEntry, namespace string) []v1alpha1.InventoryEntry {
	return slices.DeleteFunc(slices.Clone(entries), func(e v1alpha1.InventoryEntry) bool { return isInside(e, namespace) })
}

// Inside returns the entries of a release that are judged and compared. Its objects outside of the App's namespace are recorded only so that they
// are deleted in the end: mostly no watch shows them, and each look would be a request.
func Inside(entries []v1alpha1.InventoryEntry, namespace string) []v1alpha1.InventoryEntry {
	outside := func(e v1alpha1.InventoryEntry) bool { return !isInside(e, namespace) }
	if !slices.ContainsFunc(entries, outside) {
		return entries
	}
	return slices.DeleteFunc(slices.Clone(entries), outside)
}

// isInside reports whether an entry names an object of a namespace, which its ID begins with.
func isInside(e v1alpha1.InventoryEntry, namespace string) bool {
	return strings.HasPrefix(e.ID, namespace+"_")
}
