// Package journal records objects before they are created in the cluster, so that a killed process leaves no object that no record names.
//
// The journal is one ConfigMap in the operator's namespace. It has a key for each owner with a status that is not complete yet, so at most
// for passes that are running. Entries of about the same time are written with one request: if each owner wrote its own status for that, a
// thousand apps that are installed would take a thousand more requests.
package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Name is that of the ConfigMap.
const Name = "kubeop-journal"

// ErrFull says that something is too much for the journal.
var ErrFull = errors.New("the journal has no room")

const (
	// pace is the time between two writes: the first is made at once, and what comes while it lasts waits for the next.
	pace = 200 * time.Millisecond
	// linger is how long what is forgotten waits for something to be written with. It is needless there, but not wrong.
	linger = 2 * time.Second
	// writeTimeout is how long one write may take.
	writeTimeout = 10 * time.Second
	// maxEntries is how many objects of one owner are recorded, and maxSize how many bytes in all: a ConfigMap may have 1 MiB.
	maxEntries = 100
	maxSize    = 512 << 10
)

// Journal is what is recorded. It is safe for concurrent use, by one process at a time.
type Journal struct {
	client    client.Client
	namespace string
	now       func() time.Time

	mu     sync.Mutex
	loaded bool
	// version is the ConfigMap's resourceVersion as far as it is known: a write that was given up and arrives late then changes nothing.
	version string
	// records are by owner, as the ConfigMap is to have them; changed are those that it does not have so yet.
	records map[types.UID]string
	changed map[types.UID]bool
	size    int
	// next is what is written next; nil while no caller waits for it.
	next *batch
	// timer begins the next write; nil while none is due. began is when the last one did, and writing while it lasts.
	timer   *time.Timer
	due     time.Time
	began   time.Time
	writing bool
}

// batch is what is written with one request.
type batch struct {
	done chan struct{}
	err  error
}

// New returns the journal of the operator in a namespace. The client must read past caches; now returns the time.
func New(c client.Client, namespace string, now func() time.Time) *Journal {
	return &Journal{client: c, namespace: namespace, now: now, records: map[types.UID]string{}, changed: map[types.UID]bool{}}
}

// Of returns what is recorded of an owner, none for nothing. The first call reads what an earlier process left.
func (j *Journal) Of(ctx context.Context, owner types.UID) ([]v1alpha1.InventoryEntry, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.load(ctx); err != nil {
		return nil, err
	}
	return parse(j.records[owner]), nil
}

// Record has entries of an owner recorded besides those that are, and returns when they are. An ErrFull is for good.
func (j *Journal) Record(ctx context.Context, owner types.UID, entries []v1alpha1.InventoryEntry) error {
	written, err := j.add(ctx, owner, entries)
	if err != nil {
		return err
	}
	select {
	case <-written.done:
		return written.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Forget drops what is recorded of an owner, because its status has all of it or nothing of it is there any more.
func (j *Journal) Forget(owner types.UID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.records[owner] != "" {
		j.set(owner, "")
		j.schedule()
	}
}

func (j *Journal) add(ctx context.Context, owner types.UID, entries []v1alpha1.InventoryEntry) (*batch, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.load(ctx); err != nil {
		return nil, err
	}
	was := j.records[owner]
	now := format(append(parse(was), entries...))
	if strings.Count(now, "\n") > maxEntries || j.size-len(was)+len(now) > maxSize {
		return nil, ErrFull
	}
	j.set(owner, now)
	if j.next == nil {
		j.next = &batch{done: make(chan struct{})}
	}
	j.schedule()
	return j.next, nil
}

func (j *Journal) set(owner types.UID, record string) {
	j.size += len(record) - len(j.records[owner])
	if j.records[owner] = record; record == "" {
		delete(j.records, owner)
	}
	j.changed[owner] = true
}

// schedule has what changed written when it is time.
func (j *Journal) schedule() {
	if j.writing || len(j.changed) == 0 {
		return
	}
	now := j.now()
	due := now.Add(linger)
	if j.next != nil {
		due = j.began.Add(pace)
	}
	if j.timer != nil && !due.Before(j.due) {
		return
	}
	if j.timer != nil {
		j.timer.Stop()
	}
	j.due, j.timer = due, time.AfterFunc(due.Sub(now), j.write)
}

// write writes what changed. What could not be written is written the next time.
func (j *Journal) write() {
	j.mu.Lock()
	if j.writing || len(j.changed) == 0 {
		j.mu.Unlock()
		return
	}
	written, changed := j.next, j.changed
	j.next, j.changed, j.timer, j.writing, j.began = nil, map[types.UID]bool{}, nil, true, j.now()
	some, all := map[string]any{}, map[string]string{}
	for owner := range changed {
		some[string(owner)] = nil
	}
	for owner, record := range j.records {
		all[string(owner)] = record
		if changed[owner] {
			some[string(owner)] = record
		}
	}
	j.mu.Unlock()

	// Many wait for it: a short failure of the API server is not to fail all of them.
	err := retry.OnError(retry.DefaultBackoff, passing, func() error { return j.send(some, all) })

	j.mu.Lock()
	defer j.mu.Unlock()
	j.writing = false
	if err != nil {
		for owner := range changed {
			j.changed[owner] = true
		}
	}
	if written != nil {
		written.err = err
		close(written.done)
	}
	j.schedule()
}

// passing reports whether another try may help at once.
func passing(err error) bool {
	return apierrors.IsInternalError(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err)
}

// send writes the keys that changed, or all where there is no ConfigMap yet.
func (j *Journal) send(some map[string]any, all map[string]string) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	content := map[string]any{"data": some}
	if j.version != "" {
		content["metadata"] = map[string]any{"resourceVersion": j.version}
	}
	patch, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encoding the journal: %w", err)
	}
	there := j.reference()
	err = j.client.Patch(ctx, there, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.FieldManager))
	if apierrors.IsNotFound(err) {
		fresh := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: j.namespace, Name: Name, Labels: map[string]string{"app.kubernetes.io/managed-by": "kubeop"},
		}, Data: all}
		err = j.client.Create(ctx, fresh, client.FieldOwner(v1alpha1.FieldManager))
		there.ResourceVersion = fresh.ResourceVersion
	}
	if apierrors.IsConflict(err) {
		// A write that was given up arrived, or another process wrote. The next try writes over it.
		if looked := j.client.Get(ctx, client.ObjectKeyFromObject(there), there); client.IgnoreNotFound(looked) == nil {
			j.version = there.ResourceVersion
		}
	}
	if err != nil {
		return fmt.Errorf("writing ConfigMap %s/%s: %w", j.namespace, Name, err)
	}
	j.version = there.ResourceVersion
	return nil
}

// reference is the ConfigMap without its data, which no answer needs to hold.
func (j *Journal) reference() *metav1.PartialObjectMetadata {
	reference := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: j.namespace, Name: Name}}
	reference.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	return reference
}

// load reads what an earlier process left, once.
func (j *Journal) load(ctx context.Context) error {
	if j.loaded {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	left := &corev1.ConfigMap{}
	err := j.client.Get(ctx, client.ObjectKey{Namespace: j.namespace, Name: Name}, left)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading ConfigMap %s/%s: %w", j.namespace, Name, err)
	}
	for owner, record := range left.Data {
		j.records[types.UID(owner)] = record
		j.size += len(record)
	}
	j.loaded, j.version = true, left.ResourceVersion
	return nil
}

// format writes entries, each once, as lines of their version and ID. Names of RBAC objects may hold spaces and more; quoted, an
// ID is one line.
func format(entries []v1alpha1.InventoryEntry) string {
	lines := make([]string, 0, len(entries))
	for _, e := range entries {
		lines = append(lines, e.Version+" "+strconv.Quote(e.ID)+"\n")
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "")
}

// parse reads what format wrote. A line of any other form is skipped.
func parse(record string) []v1alpha1.InventoryEntry {
	var entries []v1alpha1.InventoryEntry
	for line := range strings.Lines(record) {
		version, quoted, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if id, err := strconv.Unquote(quoted); err == nil {
			entries = append(entries, v1alpha1.InventoryEntry{ID: id, Version: version})
		}
	}
	return entries
}
