// Package plan decides what to do with the cluster so that it holds what a commit declares. It decides from the commit
// and from the record of what the repository declared before, and reads nothing else.
package plan

import (
	"cmp"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/gitops/tree"
)

// manyDeletions is how many objects may go with one commit without a question, whatever part of the whole they are.
const manyDeletions = 5

// Plan is what to do about one commit. Every recorded entry is applied, kept, deleted, held, or belongs to a Project or
// Tenant that is deleted.
type Plan struct {
	// Apply are the declared objects: Tenants, then Projects, then Apps.
	Apply []client.Object
	// Keep are recorded objects left as they are, because what the commit says about them cannot be used. They stay
	// recorded.
	Keep []v1alpha1.InventoryEntry
	// Delete are recorded objects the commit no longer declares: Apps, then Projects, then Tenants. What belongs to a
	// deleted Project or Tenant is not named: their finalizers remove it.
	Delete []v1alpha1.InventoryEntry
	// Held are recorded objects that would go, those implied included, but wait for a confirmation. They stay recorded.
	Held []v1alpha1.InventoryEntry
}

// Make plans the tree against what is recorded. Only recorded objects are ever deleted, and none that a problem of the
// tree holds back. Confirmed lets held deletions go ahead.
func Make(t *tree.Tree, recorded []v1alpha1.InventoryEntry, confirmed bool) Plan {
	p := Plan{Apply: declared(t)}
	applied := map[apply.ObjectID]bool{}
	for _, o := range p.Apply {
		applied[apply.IDOf(o)] = true
	}
	var gone []record
	for _, r := range records(recorded) {
		switch {
		case applied[r.id]:
		case !r.ours() || r.protected(t.Problems):
			p.Keep = append(p.Keep, r.entry)
		default:
			gone = append(gone, r)
		}
	}
	if !confirmed && doubtful(len(p.Apply), len(gone), len(recorded)) {
		p.Held = entries(gone)
		return p
	}
	p.Delete = entries(slices.DeleteFunc(slices.Clone(gone), func(r record) bool { return r.impliedBy(gone) }))
	return p
}

// doubtful reports whether a commit looks like an accident: a branch emptied by a bad merge, a path that moved, a
// script that removed too much. Such a commit is not wrong, so nobody else stops it, and what it costs cannot be had
// back. Hence two limits: nothing declared at all, or more than half of what is recorded and more than manyDeletions.
// The second number lets a small repository lose most of its few apps without ceremony.
func doubtful(declared, gone, recorded int) bool {
	if gone == 0 {
		return false
	}
	return declared == 0 || (gone > manyDeletions && 2*gone > recorded)
}

// declared lists the tree's objects in the order in which they need each other.
func declared(t *tree.Tree) []client.Object {
	all := make([]client.Object, 0, len(t.Tenants)+len(t.Projects)+len(t.Apps))
	for _, o := range t.Tenants {
		all = append(all, o)
	}
	for _, o := range t.Projects {
		all = append(all, o)
	}
	for _, o := range t.Apps {
		all = append(all, o)
	}
	return all
}

// Entry is how an applied object is recorded.
func Entry(object client.Object) v1alpha1.InventoryEntry {
	return v1alpha1.InventoryEntry{ID: apply.IDOf(object).String(), Version: v1alpha1.GroupVersion.Version}
}

// entries returns the entries of records, Apps first, then by ID.
func entries(records []record) []v1alpha1.InventoryEntry {
	slices.SortFunc(records, func(a, b record) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.entry.ID, b.entry.ID))
	})
	var all []v1alpha1.InventoryEntry
	for _, r := range records {
		all = append(all, r.entry)
	}
	return all
}
