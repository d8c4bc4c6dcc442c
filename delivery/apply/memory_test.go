package apply

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fingerprint"
)

var configMaps = fingerprint.ByVersion{{Kind: "ConfigMap"}}

// TestAChangedVersionIsNotRecordedInTheStatus, but remembered: the next ledger of the owner applies nothing.
func TestAChangedVersionIsNotRecordedInTheStatus(t *testing.T) {
	b, m := newFixture(t), &Memory{}
	var status []v1alpha1.InventoryEntry
	pass := func(m *Memory, value string, written bool) (recorded bool) {
		t.Helper()
		l := m.Ledger(b.Applier, b.Client, "1", v1alpha1.Inventory{Entries: status}, configMaps)
		if err := l.Apply(t.Context(), b.config("one", value)); err != nil {
			t.Fatal(err)
		}
		now := l.Report(status, written).Entries
		recorded, status = cmp.Diff(status, now) != "", now
		return recorded
	}
	for _, c := range []struct {
		does, value string
		anew        bool
		written     bool
		recorded    bool
		writes      int64
	}{
		{does: "creates it", value: "a", recorded: true, writes: 1},
		{does: "sees it unchanged", value: "a"},
		{does: "changes it", value: "b", writes: 1},
		{does: "sees the change", value: "b"},
		{does: "begins anew, with the value in the status, which is not in the object", value: "a", anew: true, recorded: true, writes: 1},
		{does: "sees the change again", value: "a"},
		{does: "changes it once more", value: "c", writes: 1},
		{does: "begins anew", value: "c", anew: true, recorded: true, writes: 1},
		{does: "changes it while the status is written anyway", value: "d", written: true, recorded: true, writes: 1},
		{does: "begins anew after that", value: "d", anew: true},
	} {
		if c.anew {
			m = &Memory{}
		}
		before := b.writes.Load()
		if recorded := pass(m, c.value, c.written); recorded != c.recorded || b.writes.Load()-before != c.writes {
			t.Errorf("a pass that %s: %d writes, want %d; recorded: %t", c.does, b.writes.Load()-before, c.writes, recorded)
		}
		if got := b.read("one").Data["key"]; got != c.value {
			t.Errorf("a pass that %s: the object has %q, want %q", c.does, got, c.value)
		}
	}
	if !strings.Contains(status[0].Digest, "@") {
		t.Errorf("recorded is %q", status[0].Digest)
	}
	m.Forget("1")
	if len(m.newer) != 0 {
		t.Errorf("left is %v", m.newer)
	}
}

// TestAStatusThatCouldNotBeWrittenCausesNoSecondWrite: the process still knows what it applied.
func TestAStatusThatCouldNotBeWrittenCausesNoSecondWrite(t *testing.T) {
	b, m := newFixture(t), &Memory{}
	var status []v1alpha1.InventoryEntry
	for pass, value := range []string{"a", "b", "b"} {
		before := b.writes.Load()
		l := m.Ledger(b.Applier, b.Client, "1", v1alpha1.Inventory{Entries: status}, configMaps)
		if err := l.Apply(t.Context(), b.config("one", value)); err != nil {
			t.Fatal(err)
		}
		if now := l.Report(status, true).Entries; pass == 0 {
			status = now
		}
		if got, want := b.writes.Load()-before, int64(min(1, 2-pass)); got != want {
			t.Errorf("pass %d: %d writes, want %d", pass, got, want)
		}
	}
}

// TestAWatchThatShowsAnOlderObjectCausesNoSecondWrite: a field that kubeop did not own before is in no object that the watch shows yet.
func TestAWatchThatShowsAnOlderObjectCausesNoSecondWrite(t *testing.T) {
	b, m := newFixture(t), &Memory{}
	more := b.config("one", "b")
	more.Object["data"].(map[string]any)["more"] = "c"
	b.must(1, b.config("one", "a"))
	old := b.read("one")
	late := &Applier{Live: func(context.Context, schema.GroupVersionKind, types.NamespacedName) (metav1.Object, bool, error) {
		return old, true, nil
	}}
	for pass, writes := range []int64{1, 0, 0} {
		before := b.writes.Load()
		l := m.Ledger(late, b.Client, "1", v1alpha1.Inventory{Entries: b.recorded}, configMaps)
		if err := l.Apply(t.Context(), more); err != nil {
			t.Fatal(err)
		}
		if settled, err := l.Settled(t.Context(), more); err != nil || (settled != nil) != (writes == 0) {
			t.Errorf("pass %d: settled is %v (%v)", pass, settled, err)
		}
		b.recorded = l.Report(b.recorded, false).Entries
		if got := b.writes.Load() - before; got != writes {
			t.Errorf("pass %d: %d writes, want %d", pass, got, writes)
		}
	}
}
