package records

import (
	"maps"
	"slices"
	"sync"
	"time"

	helm "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/release/decide"
)

// Stale is how long an own write takes precedence over an index that lacks the record: the index has not received it yet, or someone
// deleted it. A mistake is noticed when the number is taken or the record is gone.
const Stale = 30 * time.Second

// Memo is what this process wrote and read of one release's records.
type Memo struct {
	mu    sync.Mutex
	notes map[string]note
	// snapshots are by revision number.
	snapshots map[int]v1alpha1.ReleaseSnapshot
	// tampered are the versions of records with content that kubeop did not write.
	tampered map[int]string
}

// note is a record as this process last wrote it, or the version of it that this process deleted.
type note struct {
	meta metav1.ObjectMeta
	gone bool
	at   time.Time
}

func (m *Memo) wrote(meta *metav1.ObjectMeta, at time.Time) {
	m.put(note{meta: metav1.ObjectMeta{
		Name: meta.Name, Labels: meta.Labels, ResourceVersion: meta.ResourceVersion, CreationTimestamp: meta.CreationTimestamp,
	}, at: at})
}

func (m *Memo) removed(name, version string, at time.Time) {
	m.put(note{meta: metav1.ObjectMeta{Name: name, ResourceVersion: version}, gone: true, at: at})
}

func (m *Memo) put(n note) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.notes == nil {
		m.notes = map[string]note{}
	}
	m.notes[n.meta.Name] = n
}

// Correct returns the newest known records: for each, the newer of the index and the own write. It drops own writes that the index has
// received.
func (m *Memo) Correct(seen []metav1.PartialObjectMetadata, now time.Time) []metav1.PartialObjectMetadata {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]metav1.PartialObjectMetadata, 0, len(seen)+1)
	known := map[string]bool{}
	for _, record := range seen {
		known[record.Name] = true
		n, ok := m.notes[record.Name]
		switch {
		case !ok || newer(record.ResourceVersion, n.meta.ResourceVersion) || !n.gone && record.ResourceVersion == n.meta.ResourceVersion:
			delete(m.notes, record.Name)
			out = append(out, record)
		case !n.gone:
			out = append(out, metav1.PartialObjectMetadata{ObjectMeta: n.meta})
		}
	}
	for name, n := range m.notes {
		switch {
		case known[name]:
		case now.Sub(n.at) > Stale:
			delete(m.notes, name)
		case !n.gone:
			out = append(out, metav1.PartialObjectMetadata{ObjectMeta: n.meta})
		}
	}
	return out
}

// newer compares two resourceVersions. A version that is not a number counts as newer, because it is not ours.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil && a != b || order > 0
}

// saw records the snapshot of a revision whose payload was read.
func (m *Memo) saw(rel *helm.Release, labels map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.snapshots == nil {
		m.snapshots = map[int]v1alpha1.ReleaseSnapshot{}
	}
	m.snapshots[rel.Version] = decide.Snapshot(rel, labels)
}

// History returns the snapshots of the existing revisions, newest first, and drops the others.
func (m *Memo) History(s decide.State) []v1alpha1.ReleaseSnapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []v1alpha1.ReleaseSnapshot
	there := map[int]bool{}
	for i := range slices.Backward(s) {
		there[s[i].Number] = true
		if snap, ok := m.snapshots[s[i].Number]; ok {
			snap.Status, snap.Test = s[i].Status.String(), s[i].Test
			out = append(out, snap)
		}
	}
	maps.DeleteFunc(m.snapshots, func(n int, _ v1alpha1.ReleaseSnapshot) bool { return !there[n] })
	maps.DeleteFunc(m.tampered, func(n int, _ string) bool { return !there[n] })
	return out
}

// Distrust excludes a version of a record as the target of a rollback.
func (m *Memo) Distrust(number int, version string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tampered == nil {
		m.tampered = map[int]string{}
	}
	m.tampered[number] = version
}

// Trusts reports whether a version of a record may be the target of a rollback.
func (m *Memo) Trusts(number int, version string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tampered[number] != version
}
