package prune

import (
	"testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestATokenStandsForOneList: whatever was not shown is asked anew.
func TestATokenStandsForOneList(t *testing.T) {
	a, b := v1alpha1.InventoryEntry{ID: "ns_a__PersistentVolumeClaim"}, v1alpha1.InventoryEntry{ID: "ns_b__PersistentVolumeClaim"}
	shown := token("1.2.3", []v1alpha1.InventoryEntry{a, b}, false)
	if again := token("1.2.3", []v1alpha1.InventoryEntry{b, a}, false); again != shown || shown == "" {
		t.Errorf("the same list has the tokens %q and %q", shown, again)
	}
	for name, other := range map[string]string{
		"another revision":             token("1.2.4", []v1alpha1.InventoryEntry{a, b}, false),
		"a shorter list":               token("1.2.3", []v1alpha1.InventoryEntry{a}, false),
		"claims go now":                token("1.2.3", []v1alpha1.InventoryEntry{a, b}, true),
		"nothing":                      token("1.2.3", nil, false),
		"a revision that is not known": token("", []v1alpha1.InventoryEntry{a, b}, false),
	} {
		if other == shown {
			t.Errorf("%s has the same token", name)
		}
	}
}
