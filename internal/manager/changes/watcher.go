package changes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/manager/eventtype"
	"github.com/kubeop/kubeop/internal/store"
)

const (
	// baseline is a key beside the keys of objects. It is in the store once all objects were recorded for the first time; objects from
	// before cause no messages.
	baseline = "!baseline"
	// batch is how many objects are compared together, and page how many states are read at once.
	batch = 100
	page  = 1000
	// maxMessages is how many messages fill a transaction, which then gets no further change. The transaction writes each message for up to 40
	// webhooks, within its timeout.
	maxMessages = 10
	// settle is how long changes are collected: one commit changes many objects.
	settle = 200 * time.Millisecond
	// compareEvery is how often all objects are compared, even if no change of them was noticed. retryEvery is how often the watcher checks whether
	// the caches follow the cluster.
	compareEvery = 10 * time.Minute
	retryEvery   = time.Second
	// confirm is how long an object must be missing before it counts as deleted, if no deletion was noticed. A connection that breaks silently is
	// noticed within 45 seconds; until then, the caches of a manager that starts may be older than what another one observed.
	confirm = time.Minute
)

// Watcher finds out what happens to objects, and enqueues messages about it. Only one may run at a time on a store.
type Watcher struct {
	// Reader reads the objects, from caches.
	Reader client.Reader
	Store  store.Observations
	// Following returns nil while the caches follow the cluster. Otherwise nothing is compared, because the caches may be older than what was
	// observed.
	Following func(context.Context) error
	Now       func() time.Time

	mu      sync.Mutex
	running bool
	// changed has the objects to compare. The value is true if a change of the object was noticed.
	changed map[subject]bool
	wake    chan struct{}

	// observed has the last states of the objects. Only Run uses it.
	observed map[string]string
	// missing says since when an object is missing whose deletion was not noticed.
	missing map[subject]time.Time
}

// Changed makes the watcher compare an object.
func (w *Watcher) Changed(object client.Object) {
	s, is := subjectOf(object)
	if !is {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.running {
		return // When it runs, it compares all objects first.
	}
	w.changed[s] = true
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Run watches until the context ends. After an error, such as one that another running manager causes, it starts again from the beginning.
func (w *Watcher) Run(ctx context.Context) error {
	w.mu.Lock()
	w.running, w.changed, w.wake = true, map[subject]bool{}, make(chan struct{}, 1)
	w.mu.Unlock()
	defer w.stop()
	if err := w.load(ctx); err != nil {
		return err
	}
	all := time.NewTimer(compareEvery)
	defer all.Stop()
	for everything := true; ; {
		if err := w.follow(ctx); err != nil {
			return nil //nolint:nilerr // The context ended.
		}
		missed := len(w.missing) > 0
		if err := w.round(ctx, everything); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if everything || !missed && len(w.missing) > 0 {
			all.Reset(w.nextComparison())
		}
		everything = false
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake:
		case <-all.C:
			everything = true
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(settle):
		}
	}
}

// nextComparison returns when all objects are compared again, from now.
func (w *Watcher) nextComparison() time.Duration {
	if len(w.missing) > 0 {
		return confirm
	}
	return compareEvery
}

func (w *Watcher) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running, w.changed = false, nil
}

// follow waits until the caches follow the cluster.
func (w *Watcher) follow(ctx context.Context) error {
	for w.Following(ctx) != nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retryEvery):
		}
	}
	return ctx.Err()
}

// load reads the states.
func (w *Watcher) load(ctx context.Context) error {
	w.observed, w.missing = map[string]string{}, map[subject]time.Time{}
	for after := ""; ; {
		read, err := w.Store.ListStates(ctx, after, page)
		if err != nil {
			return err
		}
		for _, t := range read {
			w.observed[t.Object] = t.State
		}
		if len(read) < page {
			return nil
		}
		after = read[len(read)-1].Object
	}
}

// round compares what changed, or everything, and records what happened.
func (w *Watcher) round(ctx context.Context, everything bool) error {
	w.mu.Lock()
	changed := w.changed
	w.changed = map[subject]bool{}
	w.mu.Unlock()
	if everything {
		if err := w.addAll(ctx, changed); err != nil {
			return err
		}
	}
	subjects := make([]subject, 0, len(changed))
	for s := range changed {
		subjects = append(subjects, s)
	}
	slices.SortFunc(subjects, func(a, b subject) int {
		if a.kind != b.kind {
			return slices.Index(kinds, a.kind) - slices.Index(kinds, b.kind)
		}
		return strings.Compare(a.path, b.path)
	})
	for some := range slices.Chunk(subjects, batch) {
		if err := w.compare(ctx, some, changed); err != nil {
			return err
		}
	}
	if _, has := w.observed[baseline]; !has {
		return w.record(ctx, []store.StateChange{{Object: baseline, To: "1"}})
	}
	if everything {
		w.sweep(ctx)
	}
	return nil
}

// sweep has the store delete webhooks whose tenants have been gone for long. A tenant is there until its deletion was recorded. Messages do
// not depend on it, so a failure is only logged.
func (w *Watcher) sweep(ctx context.Context) {
	var exist []store.TenantRef
	for key, text := range w.observed {
		s, is := subjectAt(key), state{}
		if s.kind != "tenant" {
			continue
		}
		if err := json.Unmarshal([]byte(text), &is); err != nil {
			logr.FromContextOrDiscard(ctx).Error(err, "Reading the state of a tenant. No webhook is removed", "tenant", s.path)
			return
		}
		exist = append(exist, store.TenantRef{Name: s.path, UID: is.UID})
	}
	if err := w.Store.SweepWebhooks(ctx, exist, w.Now()); err != nil && ctx.Err() == nil {
		logr.FromContextOrDiscard(ctx).Error(err, "Removing webhooks whose tenants are gone")
	}
}

// addAll adds all objects of the cluster, and all with a state in the store.
func (w *Watcher) addAll(ctx context.Context, to map[subject]bool) error {
	add := func(s subject) {
		if _, noticed := to[s]; !noticed {
			to[s] = false
		}
	}
	for key := range w.observed {
		if key != baseline {
			add(subjectAt(key))
		}
	}
	for _, kind := range kinds {
		found := list(kind)
		if err := w.Reader.List(ctx, found, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing objects: %w", err)
		}
		err := meta.EachListItem(found, func(object runtime.Object) error {
			o, is := object.(client.Object)
			if !is {
				return nil
			}
			if s, is := subjectOf(o); is {
				add(s)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *Watcher) compare(ctx context.Context, subjects []subject, noticed map[subject]bool) error {
	var changes []store.StateChange
	messages := 0
	for _, s := range subjects {
		c, err := w.change(ctx, s, noticed[s])
		if err != nil {
			return err
		}
		if c.From == c.To {
			continue
		}
		changes, messages = append(changes, c), messages+len(c.Messages)
		if messages < maxMessages {
			continue
		}
		if err := w.record(ctx, changes); err != nil {
			return err
		}
		changes, messages = nil, 0
	}
	if len(changes) == 0 {
		return nil
	}
	return w.record(ctx, changes)
}

// errConflict is returned if another manager recorded a change of an object.
var errConflict = errors.New("another manager recorded changes of the same objects; the states are read anew")

func (w *Watcher) record(ctx context.Context, changes []store.StateChange) error {
	conflicts, err := w.Store.RecordChanges(ctx, changes)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if c.To == "" {
			delete(w.observed, c.Object)
		} else {
			w.observed[c.Object] = c.To
		}
	}
	if len(conflicts) > 0 {
		return errConflict
	}
	return nil
}

// change compares an object with its state.
func (w *Watcher) change(ctx context.Context, s subject, noticed bool) (store.StateChange, error) {
	c := store.StateChange{Object: s.String(), From: w.observed[s.String()]}
	var was *state
	if c.From != "" {
		was = &state{}
		if err := json.Unmarshal([]byte(c.From), was); err != nil {
			return c, fmt.Errorf("reading the state of %s: %w", s, err)
		}
	}
	object, key := s.object()
	err := w.Reader.Get(ctx, key, object)
	var all []happened
	switch {
	case apierrors.IsNotFound(err):
		if was == nil || !noticed && !w.confirmed(s) {
			c.To = c.From
			return c, nil
		}
		delete(w.missing, s)
		all = deleted(s, *was, w.Now())
	case err != nil:
		return c, fmt.Errorf("reading %s: %w", s, err)
	case was != nil && behind(object, *was) && !w.confirmed(s):
		c.To = c.From
		return c, nil
	default:
		delete(w.missing, s)
		tenant, err := w.tenantUID(ctx, s, object)
		if err != nil {
			return c, err
		}
		var is state
		is, all = compare(s, object, tenant, was, w.Now())
		if c.To, err = is.text(); err != nil {
			return c, err
		}
	}
	if _, has := w.observed[baseline]; !has {
		return c, nil
	}
	w.addMessages(ctx, &c, object, all)
	return c, nil
}

// tenantUID returns the UID of the tenant to which an object belongs; "" if that tenant does not exist, or if the object is a tenant itself.
func (w *Watcher) tenantUID(ctx context.Context, s subject, object client.Object) (string, error) {
	name, _, _ := s.names()
	switch o := object.(type) {
	case *v1alpha1.Tenant:
		return "", nil
	case *v1alpha1.HostnameClaim:
		name = o.Spec.Tenant
	}
	tenant := &v1alpha1.Tenant{}
	if err := w.Reader.Get(ctx, client.ObjectKey{Name: name}, tenant); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading the tenant of %s: %w", s, err)
	}
	return string(tenant.GetUID()), nil
}

// confirmed reports whether an object has been missing, or older than observed, for so long that the caches cannot be behind any more.
func (w *Watcher) confirmed(s subject) bool {
	since, has := w.missing[s]
	if !has {
		w.missing[s] = w.Now()
		return false
	}
	if w.Now().Sub(since) < confirm {
		return false
	}
	delete(w.missing, s)
	return true
}

// addMessages adds a message about each event. It drops a message that cannot be encoded, because all others would wait for it.
func (w *Watcher) addMessages(ctx context.Context, c *store.StateChange, object client.Object, all []happened) {
	now := w.Now()
	for _, h := range all {
		if h.kind == eventtype.TenantCreated {
			c.NewTenant = store.TenantRef{Name: h.data.Tenant, UID: string(object.GetUID()), Created: object.GetCreationTimestamp().Time}
		}
		id, body, err := eventtype.Encode(h.kind, h.at, h.data)
		if err != nil {
			logr.FromContextOrDiscard(ctx).Error(err, "Leaving out a message to webhooks", "object", c.Object)
			continue
		}
		// The message waits from now on, also if the event is older.
		c.Messages = append(c.Messages, store.Message{ID: id, Type: h.kind, Tenant: h.data.Tenant, TenantUID: h.tenant, Object: c.Object, At: now, Body: body})
	}
}
