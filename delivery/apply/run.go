package apply

import (
	"sync"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// run is one application of a set.
type run struct {
	*Applier
	set      Set
	recorded map[string]v1alpha1.InventoryEntry
	// definitions are the kinds that CustomResourceDefinitions of the set define.
	definitions definitions
	scalers     scalers

	mu     sync.Mutex
	result Result
	failed map[inventory.ObjectID]error
}

func (r *run) unseen() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Unseen = true
}

func (r *run) record(entry v1alpha1.InventoryEntry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Entries = append(r.result.Entries, entry)
}

func (r *run) wrote(id inventory.ObjectID, version string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Written[id.String()] = version
}

func (r *run) fail(id inventory.ObjectID, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed[id] = err
}

func (r *run) failure(id inventory.ObjectID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed[id]
}

// written reports whether this run wrote an object.
func (r *run) written(id inventory.ObjectID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.result.Written[id.String()] != ""
}
