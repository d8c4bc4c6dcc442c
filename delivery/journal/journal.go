// Package journal records objects before they are created in the cluster, so that a killed process leaves no object that is recorded
// nowhere.
//
// The journal is one ConfigMap in the operator's namespace. It has a key for each owner whose status is not complete yet, so at most for
// the Reconciles in progress. Entries of about the same time are written with one request: if each owner wrote its own status instead,
// installing a thousand apps would take a thousand more requests.
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

// Name is the name of the ConfigMap.
const Name = "kubeop-journal"

// ErrFull means that the entries do not fit into the journal.
var ErrFull = errors.New("the journal has no room")

const (
	// pace is the time between two writes. The first entry is written at once; entries in the following time wait for the next write.
	pace = 200 * time.Millisecond
	// linger is how long the removal of entries waits for another write to join. Entries that stay longer do no harm.
	linger = 2 * time.Second
	// writeTimeout is how long one write may take.
	writeTimeout = 10 * time.Second
	// maxEntries is how many objects of one owner are recorded, and maxSize is the maximum size of the journal in bytes: a ConfigMap may
	// have 1 MiB.
	maxEntries = 100
	maxSize    = 512 << 10
)

// Journal is the journal of one operator. It is safe for concurrent use, by one process at a time.
type Journal struct {
	client    client.Client
	namespace string
	now       func() time.Time

	mu     sync.Mutex
	loaded bool
	// version is the last known resourceVersion of the ConfigMap. A write that timed out and arrives late then has no effect.
	version string
	// records are the wanted keys of the ConfigMap, by owner. changed are the owners whose keys are not written yet.
	records map[types.UID]string
	changed map[types.UID]bool
	size    int
	// next is the next batch to write; nil while no caller waits for one.
	next *batch
	// timer starts the next write; nil while none is due. began is when the last write started. writing: a write is in progress.
	timer   *time.Timer
	due     time.Time
	began   time.Time
	writing bool
}

// batch is the set of changes that are written with one request.
type batch struct {
	done chan struct{}
	err  error
}

// New returns the journal of the operator in a namespace. The client must not read from a cache; now returns the time.
func New(c client.Client, namespace string, now func() time.Time) *Journal {
	return &Journal{client: c, namespace: namespace, now: now, records: map[types.UID]string{}, changed: map[types.UID]bool{}}
}

// Of returns the recorded entries of an owner. The first call reads what an earlier process left.
func (j *Journal) Of(ctx context.Context, owner types.UID) ([]v1alpha1.InventoryEntry, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.load(ctx); err != nil {
		return nil, err
	}
	return parse(j.records[owner]), nil
}

// Record adds entries of an owner, and returns when they are written. An ErrFull is final.
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

// Forget removes the entries of an owner, because its status has all of them, or none of the objects exists any more.
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

// schedule schedules the next write of changes.
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

// write writes the changes. Changes that could not be written are written the next time.
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

	// Many callers wait for this write: a short failure of the API server must not fail all of them.
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

// passing reports whether an immediate retry may help.
func passing(err error) bool {
	return apierrors.IsInternalError(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err)
}

// send writes the changed keys, or all keys if there is no ConfigMap yet.
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
		// A write that timed out has arrived, or another process wrote. The next try overwrites it.
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

// reference returns the ConfigMap without its data, so that answers do not contain the data.
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

// format writes entries, without duplicates, as lines of version and ID. Names of RBAC objects may contain spaces and more, so the ID is
// quoted.
func format(entries []v1alpha1.InventoryEntry) string {
	lines := make([]string, 0, len(entries))
	for _, e := range entries {
		lines = append(lines, e.Version+" "+strconv.Quote(e.ID)+"\n")
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "")
}

// parse parses the result of format. Other lines are skipped.
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
