package release

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	helm "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/metadata"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/release/decide"
)

// index returns the release's history from the metadata of its records, corrected by what this process itself wrote a
// moment ago. It costs no request where Options.Records is set.
func (e *Engine) index(ctx context.Context, req Request) (decide.State, error) {
	read := e.opts.Records
	if read == nil {
		read = e.lister(req)
	}
	seen, err := read(ctx, req.Namespace, req.Name)
	if err != nil {
		return nil, fmt.Errorf("reading the records of release %s: %w", req.Name, err)
	}
	return decide.StateOf(req.Name, e.slot(req.key()).memory.correct(seen, e.opts.Now())), nil
}

// lister lists metadata as the request's user.
func (e *Engine) lister(req Request) func(context.Context, string, string) ([]metav1.PartialObjectMetadata, error) {
	return func(ctx context.Context, namespace, release string) ([]metav1.PartialObjectMetadata, error) {
		client, err := metadata.NewForConfig(e.impersonated(req))
		if err != nil {
			return nil, fmt.Errorf("connecting as %s: %w", req.User, err)
		}
		selector := metav1.ListOptions{LabelSelector: "owner=helm,name=" + release}
		list, err := client.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace).List(ctx, selector)
		if err != nil {
			return nil, err
		}
		return list.Items, nil
	}
}

// payload reads one revision.
func payload(ctx context.Context, conn *connection, name string, number int) (*helm.Release, error) {
	rel, _, err := conn.store(name, &memo{}, nil).read(ctx, number)
	return rel, err
}

// stale is how long an own write outweighs an index that does not have the record at all: it was not told of it yet, or
// somebody deleted it. A mistake is found when the number is taken or the record is gone.
const stale = 30 * time.Second

// memo is what this process wrote and read of one release's records.
type memo struct {
	mu    sync.Mutex
	notes map[string]note
	// snapshots by revision.
	snapshots map[int]v1alpha1.ReleaseSnapshot
	// tampered are the versions of records whose content is not what they were written with.
	tampered map[int]string
}

// note is a record as this process last wrote it, or that it deleted that version.
type note struct {
	meta metav1.ObjectMeta
	gone bool
	at   time.Time
}

func (m *memo) wrote(meta *metav1.ObjectMeta, at time.Time) {
	m.put(note{meta: metav1.ObjectMeta{
		Name: meta.Name, Labels: meta.Labels, ResourceVersion: meta.ResourceVersion, CreationTimestamp: meta.CreationTimestamp,
	}, at: at})
}

func (m *memo) removed(name, version string, at time.Time) {
	m.put(note{meta: metav1.ObjectMeta{Name: name, ResourceVersion: version}, gone: true, at: at})
}

func (m *memo) put(n note) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.notes == nil {
		m.notes = map[string]note{}
	}
	m.notes[n.meta.Name] = n
}

// correct returns what is there, the newer of the index and the own writes, and forgets what the index has caught up with.
func (m *memo) correct(seen []metav1.PartialObjectMetadata, now time.Time) []metav1.PartialObjectMetadata {
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
		case now.Sub(n.at) > stale:
			delete(m.notes, name)
		case !n.gone:
			out = append(out, metav1.PartialObjectMetadata{ObjectMeta: n.meta})
		}
	}
	return out
}

// newer compares versions of one resource. One that is no number is taken for newer: it is not ours.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil && a != b || order > 0
}

// saw keeps what a payload says about its revision.
func (m *memo) saw(rel *helm.Release, labels map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.snapshots == nil {
		m.snapshots = map[int]v1alpha1.ReleaseSnapshot{}
	}
	m.snapshots[rel.Version] = decide.Snapshot(rel, labels)
}

// history returns the snapshots of the revisions there are, newest first, and forgets the others.
func (m *memo) history(s decide.State) []v1alpha1.ReleaseSnapshot {
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

// distrust has a version of a record be no target of a rollback.
func (m *memo) distrust(number int, version string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tampered == nil {
		m.tampered = map[int]string{}
	}
	m.tampered[number] = version
}

func (m *memo) trusts(number int, version string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tampered[number] != version
}
