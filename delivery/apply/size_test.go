package apply

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// etcdLimit is the largest request that etcd takes by default, which bounds an App with its whole status.
const etcdLimit = 3 << 19

// TestAnInventoryFits measures what the inventory of a large app takes in etcd, and in the operator's cache.
func TestAnInventoryFits(t *testing.T) {
	shortest, longest := "kubeop-acme-shop", "kubeop-"+strings.Repeat("a", 20)+"-"+strings.Repeat("b", 35)
	cases := map[string]struct {
		objects   int
		namespace string
		name      int
	}{
		"2000 with common names": {2000, shortest, 20},
		"2000 with long names":   {2000, longest, 63},
		"5000 with common names": {5000, shortest, 20},
		"5000 with long names":   {5000, longest, 63},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var all v1alpha1.Inventory
			for i := range c.objects {
				id := inventory.ObjectID{Namespace: c.namespace, Name: fmt.Sprintf("%0*d", c.name, i), Group: "networking.k8s.io", Kind: "Ingress"}
				all.Entries = append(all.Entries, v1alpha1.InventoryEntry{ID: id.String(), Version: "v1", Digest: strings.Repeat("f", 32), Policy: v1alpha1.PolicyConfirm})
			}
			data, err := json.Marshal(all)
			if err != nil {
				t.Fatal(err)
			}
			before := heap()
			held := &v1alpha1.Inventory{}
			if err := json.Unmarshal(data, held); err != nil {
				t.Fatal(err)
			}
			memory := heap() - before
			t.Logf("%d objects: %d KiB of JSON, %d KiB in memory", c.objects, len(data)>>10, memory>>10)
			if len(data) > etcdLimit*9/10 {
				t.Errorf("%d bytes leave no room for the rest of the App in the %d that etcd takes", len(data), etcdLimit)
			}
			runtime.KeepAlive(held)
			runtime.KeepAlive(all)
			runtime.KeepAlive(data)
		})
	}
}

func heap() int64 {
	for range 3 { // What pools hold goes with the second.
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
