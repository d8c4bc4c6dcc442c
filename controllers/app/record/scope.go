package record

import (
	"slices"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// isClusterScoped reports whether an entry names an object without a namespace.
func isClusterScoped(e v1alpha1.InventoryEntry) bool { return strings.HasPrefix(e.ID, "_") }

// ClusterScoped returns the entries of objects without a namespace.
func ClusterScoped(entries []v1alpha1.InventoryEntry) []v1alpha1.InventoryEntry {
	return slices.DeleteFunc(slices.Clone(entries), func(e v1alpha1.InventoryEntry) bool { return !isClusterScoped(e) })
}

// Namespaced returns the entries of a release that are judged and compared. Its cluster-scoped objects are recorded only so that they are deleted in
// the end: mostly no watch shows them, and each look would be a request.
func Namespaced(entries []v1alpha1.InventoryEntry) []v1alpha1.InventoryEntry {
	if !slices.ContainsFunc(entries, isClusterScoped) {
		return entries
	}
	return slices.DeleteFunc(slices.Clone(entries), isClusterScoped)
}
