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
	// gather is how long changes of quotas are gathered before a tenant's projects are looked at: what a tenant makes meanwhile may be
	// beyond its bound.
	gather = time.Second
	// loosen is the minimum time between two updates of a tenant's quotas after its usage fell. Otherwise a tenant that creates and deletes
	// objects at the bound would have the quotas of all its projects written each second.
	loosen = 10 * time.Second
)

// Store adds up how much of the API server's store the objects of each tenant may take, by the quotas of its namespaces, and says how
// many more each project may make. It reads what is watched anyway, each quota once for each time that it changed. Safe for
// concurrent use.
type Store struct {
	// Reader is a cache.
	Reader client.Reader
	// Limits are the limits of tenants without limits of their own.
	Limits budget.Limits
	// Quota returns the quota of a namespace from the watch, nil if there is none.
	Quota func(namespace string) (*corev1.ResourceQuota, error)
	Clock clock.Clock

	mu      sync.Mutex
	tenants map[string]*stored
	// changed are the tenants that are to be looked at, and signal says that there are some.
	changed map[string]bool
	signal  chan struct{}
	wake    func(ctx context.Context, tenant string)
}

// stored is what is known of one tenant.
type stored struct {
	// bound is what namespaces was counted by.
	bound quota.Bound
	// namespaces are what the objects of each count; nil before the first look.
	namespaces map[string]int64
	// dirty are the namespaces with a changed quota.
	dirty map[string]bool
	taken int64
	// less are the checked namespaces of projects, and whether their quota was lowered.
	less map[string]bool
	// reported is what was taken when the projects were woken last, at a time.
	reported int64
	at       time.Time
}

// Changed notes that the quota of a tenant's namespace is another one. It does not wait.
func (s *Store) Changed(tenant, namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(tenant).dirty[namespace] = true
	s.look(tenant)
}

// OnChange has a function called when the projects of a tenant may need other quotas.
func (s *Store) OnChange(wake func(ctx context.Context, tenant string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake = wake
}

// Share returns how much of a quota a project's namespace may have, see quota.Bound, and whether that is less than all.
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

// Lowered reports whether the quota of a namespace lets less be made than the project's own would, because of the tenant's bound. Of
// one that was not looked at yet, that the tenant is near its bound.
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

// Taken is how much the objects of a tenant count, in bytes.
func (s *Store) Taken(ctx context.Context, tenant string) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.named(ctx, tenant)
	if t == nil || err != nil {
		return 0, err
	}
	return t.taken, nil
}

// Start has projects looked at when others of their tenant took what was left, until the context ends.
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

// due returns, of the tenants that changed, those with projects to reconcile now, and the function that wakes these. What cannot be
// counted, or is to be reconciled later, stays marked as changed.
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

// named counts what a tenant has; nil of one that is not there.
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

// counted counts what changed of what a tenant has; everything, where that is not known or is to be counted in another way.
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

// look has a tenant looked at by Start.
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
