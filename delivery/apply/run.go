package apply

import (
	"fmt"
	"slices"
	"strings"
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

// errors joins the failures in the order of kinds and names, so that the same failures always result in the same message.
func (r *run) errors() error {
	if len(r.failed) == 0 {
		return nil
	}
	joined := make(failures, 0, len(r.failed))
	for id, err := range r.failed {
		joined = append(joined, &inventory.ObjectError{ID: id, Err: err})
	}
	slices.SortFunc(joined, func(x, y error) int { return strings.Compare(x.Error(), y.Error()) })
	return joined
}

// failures are joined errors; the message shows the first few.
type failures []error

// maxNamed is how many failed objects a message names if there are at least two more.
const maxNamed = 10

func (f failures) Error() string {
	lines := make([]string, 0, maxNamed+1)
	for i, err := range f {
		if i == maxNamed && len(f) > maxNamed+1 {
			lines = append(lines, fmt.Sprintf("and %d objects more", len(f)-maxNamed))
			break
		}
		lines = append(lines, err.Error())
	}
	return strings.Join(lines, "\n")
}

func (f failures) Unwrap() []error { return f }
