package revision

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/release/cluster"
)

func entry(name, digest string) v1alpha1.InventoryEntry {
	return v1alpha1.InventoryEntry{ID: "ns_" + name + "__ConfigMap", Version: "v1", Digest: digest}
}

func TestObjectsThatDifferKeepTheirRecordedState(t *testing.T) {
	recorded := []v1alpha1.InventoryEntry{entry("changed", "old"), entry("differs", "old"), entry("gone", "old"), entry("unmoved", "old")}
	moved := []v1alpha1.InventoryEntry{entry("changed", "new"), entry("differs", "new"), entry("gone", "")}
	got := StatesAfter(recorded, moved, []cluster.Difference{{Object: "ConfigMap/differs"}})
	want := []v1alpha1.InventoryEntry{entry("changed", "new"), entry("differs", "old"), entry("gone", "old"), entry("unmoved", "old")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if recorded[0].Digest != "old" {
		t.Error("the recorded entries were changed in place")
	}
}

func TestSharedObjectsOfARevisionAreRecorded(t *testing.T) {
	shared := func(namespace, name string, kept bool) cluster.Shared {
		ref := cluster.Ref{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Role"}, Namespace: namespace, Name: name}
		return cluster.Shared{Applied: cluster.Applied{Ref: ref}, Kept: kept}
	}
	role := func(id, digest string, policy v1alpha1.PrunePolicy, stale bool) v1alpha1.InventoryEntry {
		return v1alpha1.InventoryEntry{ID: id + "__Role", Version: "v1", Digest: digest, Policy: policy, Stale: stale}
	}
	before := []v1alpha1.InventoryEntry{role("other_left", "d", "", false), role("other_stays", "d", "", false)}
	entries := []v1alpha1.InventoryEntry{entry("web", "d"), role("other_stays", "e", "", false)}
	got := WithShared(entries, before, []cluster.Shared{shared("other", "stays", false), shared("", "came", true)})
	want := []v1alpha1.InventoryEntry{role("_came", "", v1alpha1.PolicyDisabled, false), entry("web", "d"), role("other_left", "d", "", true), role("other_stays", "e", "", false)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
