// Package owners knows the scopes of people: owners of tenants have them by the Tenants, administrators by the configuration. So a person has in the
// API the role of spec.owners, as with kubectl.
package owners

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/manager/access"
)

// maxOutage is how long the owners that were read last are used while the Tenants are not followed: others may have changed them since.
const maxOutage = time.Hour

// ErrUnknown is returned before the owners were read, and after maxOutage.
var ErrUnknown = errors.New("the owners of tenants are not known")

// subject is a person or a group.
type subject struct{ kind, name string }

// The kinds of subjects, as in spec.owners.
const (
	user  = "User"
	group = "Group"
)

// ranks orders the roles of owners: the greater one counts.
var ranks = map[string]int{"view": 1, "edit": 2, "admin": 3}

// Owners knows who owns what.
type Owners struct {
	// Synced returns an error until the Tenants were read. Behind returns for how long they have not been followed.
	Synced func(context.Context) error
	Behind func() time.Duration

	mu     sync.RWMutex
	admins map[subject]bool
	// of has the role of each owner in each tenant, and in the owners of each tenant.
	of map[subject]map[string]string
	in map[string][]subject
}

// New returns Owners without administrators, before any Tenant was read.
func New() *Owners {
	return &Owners{admins: map[subject]bool{}, of: map[subject]map[string]string{}, in: map[string][]subject{}}
}

// Administer makes users and groups administrators of the platform.
func (o *Owners) Administer(users, groups []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, name := range users {
		o.admins[subject{user, name}] = true
	}
	for _, name := range groups {
		o.admins[subject{group, name}] = true
	}
}

// Put records the owners of a tenant. An owner with several roles has the greatest one, as with RBAC.
func (o *Owners) Put(tenant string, owners []v1alpha1.Owner) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forget(tenant)
	if tenant == v1alpha1.PlatformTenant {
		return
	}
	for _, each := range owners {
		s, role := subject{each.Kind, each.Name}, each.Role
		if ranks[role] == 0 {
			role = "view"
		}
		if o.of[s] == nil {
			o.of[s] = map[string]string{}
		}
		if ranks[role] > ranks[o.of[s][tenant]] {
			o.of[s][tenant] = role
		}
		o.in[tenant] = append(o.in[tenant], s)
	}
}

// Forget records that a tenant was deleted.
func (o *Owners) Forget(tenant string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forget(tenant)
}

func (o *Owners) forget(tenant string) {
	for _, s := range o.in[tenant] {
		if delete(o.of[s], tenant); len(o.of[s]) == 0 {
			delete(o.of, s)
		}
	}
	delete(o.in, tenant)
}

// Grant returns the scopes of a person: admin alone, or one scope for each tenant, in the order of their names. Administrators get theirs even if the
// owners are unknown.
func (o *Owners) Grant(ctx context.Context, name string, groups []string) (access.Grant, error) {
	subjects := []subject{{user, name}}
	for _, g := range groups {
		subjects = append(subjects, subject{group, g})
	}
	o.mu.RLock()
	defer o.mu.RUnlock()
	if slices.ContainsFunc(subjects, func(s subject) bool { return o.admins[s] }) {
		return access.Grant{{Role: access.Admin}}, nil
	}
	if o.Synced(ctx) != nil || o.Behind() > maxOutage {
		return nil, ErrUnknown
	}
	roles := map[string]string{}
	for _, s := range subjects {
		for tenant, role := range o.of[s] {
			if ranks[role] > ranks[roles[tenant]] {
				roles[tenant] = role
			}
		}
	}
	var grant access.Grant
	for _, tenant := range slices.Sorted(maps.Keys(roles)) {
		grant = append(grant, access.Scope{Role: access.Role("tenant:" + roles[tenant]), Tenant: tenant})
	}
	return grant, nil
}
