package apply

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fingerprint"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// Memory has what was applied for each owner and is not in the owner's status, which need not be written when an object only has another version. The zero
// value is empty. Safe for concurrent use.
//
// It is for kinds that hardly anybody but kubeop writes: the recorded state of an object is its resourceVersion. So a record that is out of date is never
// taken for the present state: after a restart, which loses the memory, the object is applied again, which changes nothing. And while the watch shows an
// older version than was written, nothing is applied again.
type Memory struct {
	mu sync.Mutex
	// newer are entries of which the status has older ones. There is an entry, perhaps empty, for each owner whose status recorded all in this process.
	newer map[types.UID][]v1alpha1.InventoryEntry
}

// Ledger returns the Ledger of an owner, which continues from the recorded entries, and from newer ones of this process.
func (m *Memory) Ledger(a *Applier, c client.Client, owner types.UID, recorded v1alpha1.Inventory, byVersion fingerprint.ByVersion) *Ledger {
	m.mu.Lock()
	defer m.mu.Unlock()
	newer, resumed := m.newer[owner]
	l := NewLedger(a, c, inventory.Join(newer, inventory.Without(recorded.Entries, newer)))
	l.byVersion, l.resumed, l.keep = byVersion, resumed, func(entries []v1alpha1.InventoryEntry) { m.keep(owner, entries) }
	return l
}

// Forget drops what was applied for an owner.
func (m *Memory) Forget(owner types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.newer, owner)
}

func (m *Memory) keep(owner types.UID, entries []v1alpha1.InventoryEntry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.newer == nil {
		m.newer = map[types.UID][]v1alpha1.InventoryEntry{}
	}
	m.newer[owner] = entries
}

// Report returns the entries that the owner's status has to have. For an object of which only manifest and version have changed, it is what the status has
// already, and the Memory keeps the newer one. The first time in a process, and if the status is written anyway, it returns the newer ones, so that the next
// process has to apply nothing again.
func (l *Ledger) Report(status []v1alpha1.InventoryEntry, written bool) v1alpha1.Inventory {
	now, newer := l.Inventory(), []v1alpha1.InventoryEntry(nil)
	for i, e := range now.Entries {
		at := slices.IndexFunc(status, func(r v1alpha1.InventoryEntry) bool { return r.ID == e.ID })
		if l.resumed && at >= 0 && onlyVersionDiffers(status[at], e) {
			newer = append(newer, e) // Also if it is written, which may fail.
			if !written {
				now.Entries[i] = status[at]
			}
		}
	}
	if l.keep != nil {
		l.keep(newer)
	}
	return now
}

// onlyVersionDiffers reports whether two records of an object differ in nothing but its manifest and its resourceVersion.
func onlyVersionDiffers(a, b v1alpha1.InventoryEntry) bool {
	marked := a.Digest != b.Digest && fingerprint.IsVersion(a.Digest) && fingerprint.IsVersion(b.Digest)
	a.Digest = b.Digest
	return marked && a == b
}
