package record

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func entries(ids ...string) []v1alpha1.InventoryEntry {
	var all []v1alpha1.InventoryEntry
	for _, id := range ids {
		all = append(all, v1alpha1.InventoryEntry{ID: id, Version: "v1"})
	}
	return all
}

func TestWritesCountUntilTheWatchShowsThem(t *testing.T) {
	w, now := &Writes{}, time.Unix(1000, 0)
	w.Add(entries("a", "b"), map[string]string{"a": "1", "b": "2", "gone": "3"}, now)
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "2"}, w.Unsettled()); diff != "" {
		t.Errorf("an object outside the inventory counts (-want +got):\n%s", diff)
	}
	now = now.Add(watchLag)
	w.Add(entries("a", "b"), map[string]string{"b": "4"}, now)
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "4"}, w.Unsettled()); diff != "" {
		t.Errorf("within the lag of a watch (-want +got):\n%s", diff)
	}
	now = now.Add(watchLag + time.Nanosecond)
	w.Add(entries("a", "b"), map[string]string{"a": "5"}, now)
	if diff := cmp.Diff(map[string]string{"a": "5"}, w.Unsettled()); diff != "" {
		t.Errorf("after the lag of a watch (-want +got):\n%s", diff)
	}
	if w.At() != now {
		t.Errorf("written at %s, want %s", w.At(), now)
	}
}

func TestAHealthyAppHasOnlyRecentWrites(t *testing.T) {
	w, now := &Writes{}, time.Unix(1000, 0)
	w.Add(entries("a"), map[string]string{"a": "1"}, now)
	w.Settled()
	if w.Unsettled() != nil {
		t.Errorf("the unsettled writes are %v", w.Unsettled())
	}
	if got := w.Recent(now.Add(watchLag)); got["a"] != "1" {
		t.Errorf("the recent writes are %v", got)
	}
	if got := w.Recent(now.Add(watchLag + time.Nanosecond)); got != nil {
		t.Errorf("after the lag of a watch the recent writes are %v", got)
	}
}

func TestAReleaseHasNoRecentWrites(t *testing.T) {
	w, now := &Writes{}, time.Unix(1000, 0)
	w.Released(map[string]string{"a": "1"}, now)
	if w.Unsettled()["a"] != "1" || w.At() != now || w.Recent(now) != nil || w.Shown(now) {
		t.Errorf("the unsettled writes are %v at %s, the recent ones %v; want none", w.Unsettled(), w.At(), w.Recent(now))
	}
}

func TestEntriesOutsideOfTheNamespaceAreDistinguished(t *testing.T) {
	all := entries("_a__Namespace", "ns_a__ConfigMap", "_b_rbac.authorization.k8s.io_ClusterRole", "ns-2_a__ConfigMap")
	if diff := cmp.Diff(entries("_a__Namespace", "_b_rbac.authorization.k8s.io_ClusterRole", "ns-2_a__ConfigMap"), Outside(all, "ns")); diff != "" {
		t.Errorf("outside (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(entries("ns_a__ConfigMap"), Inside(all, "ns")); diff != "" {
		t.Errorf("inside (-want +got):\n%s", diff)
	}
	if len(all) != 4 || all[2].ID != "_b_rbac.authorization.k8s.io_ClusterRole" {
		t.Errorf("the entries were changed: %v", all)
	}
}
