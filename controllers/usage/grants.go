package usage

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/quota"
	"github.com/kubeop/kubeop/gitops/plan"
)

// unseenFor is how long a granted quota counts although the watch does not show it. No watch lags for that long, so after that time it was not
// written.
const unseenFor = time.Minute

// Grants decides what the quotas of a tenant's projects may have of the tenant's budget when they are written. Commits are checked before; this
// holds for whatever else changes a quota: several commits at once, projects that are not from Git, other defaults. It counts the quotas that
// are in force, also those of projects that were deleted and left their namespace behind. It is safe for concurrent use.
type Grants struct {
	// Reader reads from a cache.
	Reader client.Reader
	// Quota returns the quota of a namespace as the watch shows it; nil if there is none.
	Quota func(namespace string) (*corev1.ResourceQuota, error)
	Clock clock.PassiveClock

	mu      sync.Mutex
	tenants map[string]*granted
	wake    func(tenant, project string)
}

// granted is what the projects of one tenant have.
type granted struct {
	// budget is the budget for which they were counted.
	budget corev1.ResourceList
	// spaces are the namespaces whose quotas count, and dirty those with a changed quota. waiting are the projects that were refused.
	spaces  map[string]*space
	dirty   map[string]bool
	waiting map[string]bool
}

// space is a namespace.
type space struct {
	// live is what the quota has, as the watch shows it; nil if there is none. given is what was granted last, at the time at; nil once the
	// watch shows that.
	live, given corev1.ResourceList
	at          time.Time
}

// OnChange sets the function that wakes a refused project when another one gave something back. It must not block.
func (g *Grants) OnChange(wake func(tenant, project string)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wake = wake
}

// Changed says that the quota of a tenant's namespace changed. It wakes the projects that were refused if the quota is another one, and not only
// its use.
func (g *Grants) Changed(tenant, namespace string) {
	now, err := g.Quota(namespace)
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.of(tenant)
	if t.spaces == nil { // Without a budget, only what exists has to be known.
		if t.dirty[namespace] = true; now == nil && err == nil {
			delete(t.dirty, namespace)
		}
		return
	}
	if s := t.spaces[namespace]; s != nil && s.live != nil && now != nil && equality.Semantic.DeepEqual(s.live, quota.Part(t.budget, now.Spec.Hard)) {
		return
	}
	t.dirty[namespace] = true
	for project := range t.waiting {
		if g.wake != nil && v1alpha1.ProjectNamespace(tenant, project) != namespace {
			g.wake(tenant, project)
		}
	}
}

// Grant returns how much of a quota a project may have now. Of a resource that does not fit, it keeps what its quota has in force, and the
// reason says what is missing.
func (g *Grants) Grant(ctx context.Context, tenant *v1alpha1.Tenant, project string, hard corev1.ResourceList) (corev1.ResourceList, *plan.OverBudget, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.of(tenant.Name)
	if len(tenant.Spec.Budget) == 0 {
		t.budget, t.spaces = nil, nil
		delete(t.waiting, project)
		return hard, nil, nil
	}
	if err := g.count(ctx, t, tenant); err != nil {
		return nil, nil, err
	}
	name, wants := v1alpha1.ProjectNamespace(tenant.Name, project), quota.Part(t.budget, hard)
	over := g.budgetOf(t, tenant, project, wants).Fit().Refused[project]
	delete(t.waiting, project)
	if over != nil {
		has := g.counted(t.spaces[name])
		hard = maps.Clone(hard)
		for _, lack := range over.Lacks {
			amount, there := has[lack.Name]
			if !there {
				amount = resource.Quantity{Format: lack.Limit.Format}
			}
			hard[lack.Name] = amount
		}
		wants = quota.Part(t.budget, hard)
		t.waiting[project] = true
	}
	if t.spaces[name] == nil {
		t.spaces[name] = &space{}
	}
	t.spaces[name].give(wants, g.Clock.Now())
	return hard, over, nil
}

// budgetOf returns the budget of a tenant, with what its namespaces have and what one project wants.
func (g *Grants) budgetOf(t *granted, tenant *v1alpha1.Tenant, project string, wants corev1.ResourceList) plan.Budget {
	b := plan.Budget{Tenant: tenant.Name, Limit: t.budget}
	own := plan.Share{Project: project, Wants: wants, Requested: wants}
	for name, s := range t.spaces {
		has := g.counted(s)
		if other := strings.TrimPrefix(name, v1alpha1.ProjectNamespace(tenant.Name, "")); other != project {
			b.Shares = append(b.Shares, plan.Share{Project: other, Has: has})
			continue
		}
		own.Has = has
	}
	b.Shares = append(b.Shares, own)
	return b
}

// count updates what the namespaces of a tenant have: those with changed quotas or, at first and after a change of the budget, all.
func (g *Grants) count(ctx context.Context, t *granted, tenant *v1alpha1.Tenant) error {
	if t.spaces == nil || !sameNames(t.budget, tenant.Spec.Budget) {
		projects := &v1alpha1.ProjectList{}
		if err := g.Reader.List(ctx, projects, client.InNamespace(v1alpha1.HomeNamespace(tenant.Name)), client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing the projects of %s: %w", tenant.Name, err)
		}
		for name := range t.spaces {
			t.dirty[name] = true
		}
		for i := range projects.Items {
			t.dirty[v1alpha1.ProjectNamespace(tenant.Name, projects.Items[i].Name)] = true
		}
		t.spaces = map[string]*space{}
	}
	t.budget = tenant.Spec.Budget
	delete(t.dirty, v1alpha1.HomeNamespace(tenant.Name)) // The budget is for projects.
	for name := range t.dirty {
		now, err := g.Quota(name)
		if err != nil {
			return err
		}
		if t.spaces[name] == nil {
			t.spaces[name] = &space{}
		}
		s := t.spaces[name]
		s.live = nil
		if now != nil {
			s.live = quota.Part(t.budget, now.Spec.Hard)
		}
		s.give(s.given, s.at)
		delete(t.dirty, name)
	}
	for name, s := range t.spaces {
		if s.live == nil && (s.given == nil || g.Clock.Since(s.at) > unseenFor) {
			delete(t.spaces, name)
		}
	}
	return nil
}

// give records what was granted, until the watch shows it.
func (s *space) give(amounts corev1.ResourceList, at time.Time) {
	if s.given, s.at = amounts, at; s.live != nil && equality.Semantic.DeepEqual(s.live, amounts) {
		s.given = nil
	}
}

// counted is what a namespace has: what its quota has and, until the watch shows it, what was granted.
func (g *Grants) counted(s *space) corev1.ResourceList {
	switch {
	case s == nil:
		return nil
	case s.given == nil || g.Clock.Since(s.at) > unseenFor:
		return s.live
	}
	most := maps.Clone(s.live)
	if most == nil {
		most = corev1.ResourceList{}
	}
	for name, amount := range s.given {
		if is := most[name]; amount.Cmp(is) > 0 {
			most[name] = amount
		}
	}
	return most
}

func (g *Grants) of(tenant string) *granted {
	if g.tenants == nil {
		g.tenants = map[string]*granted{}
	}
	if g.tenants[tenant] == nil {
		g.tenants[tenant] = &granted{dirty: map[string]bool{}, waiting: map[string]bool{}}
	}
	return g.tenants[tenant]
}

func sameNames(a, b corev1.ResourceList) bool {
	return slices.Equal(slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b)))
}
