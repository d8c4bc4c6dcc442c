package usage

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/namespace"
	"github.com/kubeop/kubeop/delivery/quota"
)

const (
	// gather is how long changes of quotas are collected before a tenant's projects are reconciled. What a tenant creates in that time may
	// exceed its limit.
	gather = time.Second
	// loosen is the minimum time between two updates of a tenant's quotas after its usage fell. Otherwise a tenant that creates and deletes
	// objects at its limit would cause a write of all its projects' quotas each second.
	loosen = 10 * time.Second
)

// Store adds up how much of the API server's store the objects of each tenant may take, from the quotas of its namespaces, and says how
// many more objects each project may create. It reads only from watches, and reads a quota only when it changed. Safe for concurrent use.
type Store struct {
	// Reader reads from a cache.
	Reader client.Reader
	// Limits are for tenants without limits of their own.
	Limits budget.Limits
	// Quota returns the quota of a namespace as the watch shows it; nil if there is none.
	Quota func(namespace string) (*corev1.ResourceQuota, error)
	Clock clock.Clock

	mu      sync.Mutex
	tenants map[string]*stored
	// changed are the tenants that Start must check; signal wakes Start when a tenant was added.
	changed map[string]bool
	signal  chan struct{}
	wake    func(ctx context.Context, tenant string)
}

// stored is the state of one tenant.
type stored struct {
	// bound is the limit with which namespaces were counted.
	bound quota.Bound
	// namespaces are the bytes that the objects of each namespace count; nil before the first count.
	namespaces map[string]int64
	// dirty are the namespaces with a changed quota.
	dirty map[string]bool
	taken int64
	// less says for each checked project namespace whether its quota was lowered.
	less map[string]bool
	// reported is the tenant's taken bytes when its projects were last woken, and at is that time.
	reported int64
	at       time.Time
}

// Changed marks the quota of a tenant's namespace as changed. It does not block.
func (s *Store) Changed(tenant, namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(tenant).dirty[namespace] = true
	s.look(tenant)
}

// OnChange sets the function to call when the projects of a tenant may need other quotas.
func (s *Store) OnChange(wake func(ctx context.Context, tenant string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake = wake
}

// Share returns how much of a quota a project's namespace may have, see quota.Bound, and whether that is less than the whole quota.
func (s *Store) Share(ctx context.Context, tenant *v1alpha1.Tenant, name string, hard corev1.ResourceList) (corev1.ResourceList, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.counted(ctx, tenant)
	if err != nil {
		return nil, false, err
	}
	t.less[name] = false
	if !t.bound.Near(t.taken) {
		return hard, false, nil
	}
	now, err := s.Quota(name)
	if err != nil {
		return nil, false, err
	}
	if now == nil {
		now = &corev1.ResourceQuota{}
	}
	shared, less := t.bound.Share(hard, now.Status.Used, now.Spec.Hard, t.taken)
	t.less[name] = less
	return shared, less, nil
}

// Lowered reports whether a namespace's quota is lower than the project's own, because of the tenant's limit. For a namespace that was not
// checked yet, it reports whether the tenant is near its limit.
func (s *Store) Lowered(tenant, namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenants[tenant]
	if t == nil {
		return false
	}
	if less, known := t.less[namespace]; known {
		return less
	}
	return t.namespaces != nil && t.bound.Near(t.taken)
}

// Taken is how many bytes the objects of a tenant count.
func (s *Store) Taken(ctx context.Context, tenant string) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.named(ctx, tenant)
	if t == nil || err != nil {
		return 0, err
	}
	return t.taken, nil
}

// Start wakes the projects of a tenant whose usage changed near its limit. It runs until the context ends.
func (s *Store) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.signals():
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.Clock.After(gather):
		}
		tenants, wake := s.due(ctx)
		for _, tenant := range tenants {
			wake(ctx, tenant)
		}
	}
}

// due returns the changed tenants whose projects must be reconciled now, and the function that wakes these. Tenants that cannot be counted,
// or that must wait, stay marked as changed.
func (s *Store) due(ctx context.Context) (tenants []string, wake func(context.Context, string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := s.changed
	s.changed = nil
	now := s.Clock.Now()
	for name := range changed {
		t, err := s.named(ctx, name)
		switch {
		case err != nil, s.wake == nil:
			s.look(name)
		case t == nil || t.taken == t.reported:
		case !t.bound.Near(max(t.taken, t.reported)):
			t.reported = t.taken
		case t.taken < t.reported && now.Sub(t.at) < loosen:
			s.look(name)
		default:
			t.reported, t.at = t.taken, now
			tenants = append(tenants, name)
		}
	}
	slices.Sort(tenants)
	return tenants, s.wake
}

// named counts the objects of a tenant; nil if the tenant does not exist.
func (s *Store) named(ctx context.Context, name string) (*stored, error) {
	tenant := &v1alpha1.Tenant{}
	err := s.Reader.Get(ctx, client.ObjectKey{Name: name}, tenant)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading tenant %s: %w", name, err)
	}
	if err != nil {
		delete(s.tenants, name)
		return nil, nil
	}
	return s.counted(ctx, tenant)
}

// counted updates the count of a tenant: only changed quotas or, at first and after a change of how objects count, all of them.
func (s *Store) counted(ctx context.Context, tenant *v1alpha1.Tenant) (*stored, error) {
	t := s.of(tenant.Name)
	bound := quota.Bound{Limit: s.Limits.With(&tenant.Spec.Limits).StoreBytes, MaxObject: namespace.MaxObjectSize(tenant)}
	if t.namespaces == nil || bound.MaxObject != t.bound.MaxObject {
		projects := &v1alpha1.ProjectList{}
		home := v1alpha1.HomeNamespace(tenant.Name)
		if err := s.Reader.List(ctx, projects, client.InNamespace(home), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing the projects of %s: %w", tenant.Name, err)
		}
		t.namespaces, t.taken, t.dirty[home] = map[string]int64{}, 0, true
		for i := range projects.Items {
			t.dirty[v1alpha1.ProjectNamespace(tenant.Name, projects.Items[i].Name)] = true
		}
	}
	t.bound = bound
	for name := range t.dirty {
		now, err := s.Quota(name)
		if err != nil {
			return nil, err
		}
		t.taken -= t.namespaces[name]
		delete(t.namespaces, name)
		delete(t.dirty, name)
		if now == nil {
			delete(t.less, name)
			continue
		}
		t.namespaces[name] = bound.Taken(now.Status.Used)
		t.taken += t.namespaces[name]
	}
	return t, nil
}

func (s *Store) of(tenant string) *stored {
	if s.tenants == nil {
		s.tenants = map[string]*stored{}
	}
	t := s.tenants[tenant]
	if t == nil {
		t = &stored{dirty: map[string]bool{}, less: map[string]bool{}}
		s.tenants[tenant] = t
	}
	return t
}

// look marks a tenant as changed, so that Start checks it.
func (s *Store) look(tenant string) {
	if s.changed == nil {
		s.changed = map[string]bool{}
	}
	s.changed[tenant] = true
	if s.signal == nil {
		s.signal = make(chan struct{}, 1)
	}
	select {
	case s.signal <- struct{}{}:
	default:
	}
}

func (s *Store) signals() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.signal == nil {
		s.signal = make(chan struct{}, 1)
	}
	return s.signal
}
