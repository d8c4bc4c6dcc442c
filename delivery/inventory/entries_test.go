package inventory

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func configMaps(names ...string) (entries []v1alpha1.InventoryEntry) {
	for _, name := range names {
		entries = append(entries, v1alpha1.InventoryEntry{ID: "shop_" + name + "__ConfigMap", Version: "v1"})
	}
	return entries
}

func TestJoinedEntriesAreSortedAndThoseGivenAreNotChanged(t *testing.T) {
	made, kept := append(configMaps("c", "a"), configMaps("spare")...)[:2], configMaps("d", "b")
	if diff := cmp.Diff(v1alpha1.Inventory{Entries: configMaps("a", "b", "c", "d")}, Join(made, kept)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(configMaps("c", "a", "spare"), made[:3]); diff != "" {
		t.Errorf("the given entries (-want +got):\n%s", diff)
	}
}

func TestNamesOfEntriesAreListedUpToALimit(t *testing.T) {
	for name, c := range map[string]struct {
		entries []v1alpha1.InventoryEntry
		want    string
	}{
		"none":              {nil, ""},
		"one":               {configMaps("a"), "ConfigMap/a"},
		"no ID":             {append([]v1alpha1.InventoryEntry{{ID: "nonsense"}}, configMaps("a")...), "nonsense, ConfigMap/a"},
		"as many as listed": {configMaps("a", "b", "c", "d", "e"), "ConfigMap/a, ConfigMap/b, ConfigMap/c, ConfigMap/d, ConfigMap/e"},
		"more than listed":  {configMaps("a", "b", "c", "d", "e", "f", "g"), "ConfigMap/a, ConfigMap/b, ConfigMap/c, ConfigMap/d, ConfigMap/e, and 2 more"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Names(c.entries); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// TestEntriesWithoutThoseThatAreKept compares IDs only: an entry that is recorded in another version is the same object.
func TestEntriesWithoutThoseThatAreKept(t *testing.T) {
	kept := configMaps("b", "d")
	kept[0].Version, kept[0].Policy = "v2", v1alpha1.PolicyConfirm
	if diff := cmp.Diff(configMaps("a", "c"), Without(configMaps("a", "b", "c"), kept)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
