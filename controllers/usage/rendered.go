package usage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
)

// Rendered adds up the sizes of what each tenant's apps deliver. It starts with the sizes in the apps' statuses. If a status has no size,
// because an older version of the operator wrote it, the size is known after the next rendering. Safe for concurrent use.
type Rendered struct {
	// Wake wakes an app that was refused, when there is enough space for it. It must not block.
	Wake func(app types.NamespacedName)

	mu      sync.Mutex
	tenants map[string]*renderedOf
}

// renderedOf is what the apps of one tenant deliver.
type renderedOf struct {
	sum  int64
	apps map[types.NamespacedName]*appSize
}

// appSize is what one app delivers, in bytes.
type appSize struct {
	// recorded is the size in the status, admitted the size that was last allowed. The larger one counts, because what was allowed may not
	// be applied yet.
	recorded, admitted int64
	// refused is the size that was last refused, 0 if none was; limit is the limit at that time.
	refused, limit int64
	// woken is how often the app was woken because there was enough space.
	woken int
}

func (a *appSize) counts() int64 { return max(a.recorded, a.admitted) }

// Observe counts the size in the status of an app; 0 if the status has none.
func (r *Rendered) Observe(app types.NamespacedName, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	tenant := v1alpha1.TenantOf(app.Namespace)
	if t := r.tenants[tenant]; bytes == 0 && (t == nil || t.apps[app] == nil) {
		return
	}
	t, a := r.of(tenant, app)
	before := a.counts()
	a.recorded = bytes
	r.changes(t, a.counts()-before)
}

// Gone removes a deleted app.
func (r *Rendered) Gone(app types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := v1alpha1.TenantOf(app.Namespace)
	t := r.tenants[name]
	if t == nil || t.apps[app] == nil {
		return
	}
	counted := t.apps[app].counts()
	delete(t.apps, app)
	if len(t.apps) == 0 {
		delete(r.tenants, name)
	}
	r.changes(t, -counted)
}

// Admit counts what an app is about to deliver. If the tenant's apps would then exceed the limit, it returns a *budget.Exceeded. A size
// that is not larger than before is always allowed.
func (r *Rendered) Admit(tenant string, app types.NamespacedName, bytes, limit int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, a := r.of(tenant, app)
	before := a.counts()
	if sum := t.sum - before + bytes; bytes > before && sum > limit {
		a.refused, a.limit = bytes, limit
		return &budget.Exceeded{Field: budget.RenderedBytes, Is: sum, Limit: limit, What: fmt.Sprintf(
			"what all apps of tenant %s deliver, as rendered, with this one's %s (the largest others: %s)", tenant, budget.RenderedBytes.Text(bytes), t.largest(app))}
	}
	a.admitted, a.refused = bytes, 0
	r.changes(t, a.counts()-before)
	return nil
}

// Of is what the apps of a tenant deliver together, in bytes.
func (r *Rendered) Of(tenant string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.tenants[tenant]; t != nil {
		return t.sum
	}
	return 0
}

// LastAdmitted returns the size that was last allowed for an app, 0 if this process allowed none, and how often the app was woken after a
// refusal.
func (r *Rendered) LastAdmitted(app types.NamespacedName) (bytes int64, woken int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.tenants[v1alpha1.TenantOf(app.Namespace)]; t != nil && t.apps[app] != nil {
		return t.apps[app].admitted, t.apps[app].woken
	}
	return 0, 0
}

func (r *Rendered) of(tenant string, app types.NamespacedName) (*renderedOf, *appSize) {
	if r.tenants == nil {
		r.tenants = map[string]*renderedOf{}
	}
	t := r.tenants[tenant]
	if t == nil {
		t = &renderedOf{apps: map[types.NamespacedName]*appSize{}}
		r.tenants[tenant] = t
	}
	if t.apps[app] == nil {
		t.apps[app] = &appSize{}
	}
	return t, t.apps[app]
}

// changes changes the sum, and wakes refused apps for which there is now enough space.
func (r *Rendered) changes(t *renderedOf, by int64) {
	t.sum += by
	if by >= 0 {
		return
	}
	for name, a := range t.apps {
		if a.refused > 0 && t.sum-a.counts()+a.refused <= a.limit {
			a.refused = 0
			a.woken++
			r.Wake(name)
		}
	}
}

// largest names the largest apps for a message, except one.
func (t *renderedOf) largest(but types.NamespacedName) string {
	type size struct {
		app   types.NamespacedName
		bytes int64
	}
	var sizes []size
	for name, a := range t.apps {
		if name != but && a.counts() > 0 {
			sizes = append(sizes, size{name, a.counts()})
		}
	}
	if len(sizes) == 0 {
		return "none"
	}
	slices.SortFunc(sizes, func(a, b size) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.app.String(), b.app.String()))
	})
	var names []string
	for _, s := range sizes[:min(3, len(sizes))] {
		names = append(names, fmt.Sprintf("%s %s", s.app, budget.RenderedBytes.Text(s.bytes)))
	}
	return strings.Join(names, ", ")
}
