// Package hostclaims gives each host name to the first project that asks for it, by a HostnameClaim, and takes it back when nothing of the
// project uses the name any more. Apps ask before their objects are applied. The controller of the project writes the names that the project has into its
// Guardrails, from which the API server refuses all others. Messages name no other tenant.
package hostclaims

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/own"
)

// Claims are the host names of all projects. It remembers what apps ask for only to know when a name is free, and whom to wake then: which project has a
// name says its HostnameClaim.
type Claims struct {
	// Client reads from the cache, Direct without it.
	Client, Direct client.Client
	Clock          clock.PassiveClock
	// WakeProject reconciles a project, which may have fewer names than before. It may wait, because one commit often removes many apps.
	WakeProject func(types.NamespacedName)
	// Unjudged returns the tenants for whose apps the operator claims nothing, and refuses no objects: only the API server does. Tests set it, to prove that the
	// API server does; nil means none. It is one option, and here, because a name that is claimed is in the Guardrails: the API server would accept it.
	Unjudged func(tenant string) bool

	mu   sync.Mutex
	apps map[types.NamespacedName]*asking
	// unused has the time since which a claim has not been used, by the UID of the claim.
	unused map[types.UID]time.Time
	// looks are the last looks at the objects of namespaces, of those whose projects had names that no app asked for. changed is when an app in a namespace last
	// changed. began is when the first project was looked at.
	looks   map[string]look
	changed map[string]time.Time
	began   time.Time
}

// Judges reports whether the operator refuses what the apps of a tenant may not have.
func (c *Claims) Judges(tenant string) bool {
	return c == nil || c.Unjudged == nil || !c.Unjudged(tenant)
}

// look is when the objects of a namespace were read, and the host names that they served.
type look struct {
	at    time.Time
	names map[string]bool
}

// asking is what an app asks for.
type asking struct {
	// names are the host names of the app's newest objects, and former those of earlier ones, some of which may still be there.
	names, former []string
	// waits are the claims of others that it waits for, by their names. listing: it waits for the Guardrails.
	waits   []string
	listing bool
	// freed counts how often a claim that it waited for was deleted.
	freed int
	// delivered: this process knows all names that objects of the app may have, because it has once delivered them.
	delivered bool
}

// remember returns what an app asks for. The caller holds mu.
func (c *Claims) remember(app types.NamespacedName) *asking {
	a := c.apps[app]
	if a == nil {
		if c.apps == nil {
			c.apps = map[types.NamespacedName]*asking{}
		}
		a = &asking{}
		c.apps[app] = a
	}
	return a
}

// ask records the names of an app's newest objects.
func (c *Claims) ask(app types.NamespacedName, names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.remember(app)
	if !slices.Equal(a.names, names) {
		a.former, a.names = append(a.former, a.names...), names
	}
	a.waits, a.listing = nil, len(names) > 0
}

// await records that an app waits for the claim of another project.
func (c *Claims) await(app types.NamespacedName, claim string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.remember(app); !slices.Contains(a.waits, claim) {
		a.waits = append(a.waits, claim)
	}
}

// Delivered reports that only the newest objects of an app are left in the cluster. Host names of its earlier objects are free, unless others use them.
func (c *Claims) Delivered(app types.NamespacedName) {
	c.mu.Lock()
	a := c.apps[app]
	left := a != nil && len(a.former) > 0
	first := a != nil && !a.delivered
	if a != nil {
		a.former, a.listing, a.delivered = nil, false, true
	}
	c.mu.Unlock()
	switch {
	case left:
		c.wakeProject(app.Namespace)
	case first:
		c.wakeUnasked(app.Namespace)
	}
}

// Forget drops what an App asked for, because there is nothing of it any more.
func (c *Claims) Forget(app *v1alpha1.App) {
	c.mu.Lock()
	a := c.apps[client.ObjectKeyFromObject(app)]
	delete(c.apps, client.ObjectKeyFromObject(app))
	c.mu.Unlock()
	switch {
	case a != nil && len(a.names)+len(a.former) > 0:
		c.wakeProject(app.Namespace)
	case a == nil || !a.delivered:
		c.wakeUnasked(app.Namespace)
	}
}

// Freed counts how often a name that an app waited for became free. When it changes, an input that was refused is worth another try.
func (c *Claims) Freed(app types.NamespacedName) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.apps[app]; a != nil {
		return a.freed
	}
	return 0
}

// wakeProject reconciles the project of a namespace, in which objects may have gone.
func (c *Claims) wakeProject(namespace string) {
	c.touch(namespace)
	tenant := v1alpha1.TenantOf(namespace)
	project := namespace
	if tenant != v1alpha1.PlatformTenant {
		project = namespace[len(v1alpha1.HomeNamespace(tenant))+1:]
	}
	c.WakeProject(types.NamespacedName{Namespace: v1alpha1.HomeNamespace(tenant), Name: project})
}

// wakeUnasked reconciles the project of a namespace in which objects of an app may have gone that an earlier process delivered, if it has names that no app asks
// for.
func (c *Claims) wakeUnasked(namespace string) {
	c.mu.Lock()
	_, unasked := c.looks[namespace]
	c.mu.Unlock()
	if unasked {
		c.wakeProject(namespace)
	} else {
		c.touch(namespace)
	}
}

// touch records that an app in a namespace changed, so that its objects are looked at anew.
func (c *Claims) touch(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed == nil {
		c.changed = map[string]time.Time{}
	}
	c.changed[namespace] = c.Clock.Now()
}

// asked returns the names that apps in a namespace ask for, and those of their earlier objects.
func (c *Claims) asked(namespace string) map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]bool{}
	for app, a := range c.apps {
		if app.Namespace != namespace {
			continue
		}
		for _, name := range slices.Concat(a.names, a.former) {
			all[name] = true
		}
	}
	return all
}

// of returns the claims of a project, from the cache.
func (c *Claims) of(ctx context.Context, tenant, project string) ([]*v1alpha1.HostnameClaim, error) {
	list := &v1alpha1.HostnameClaimList{}
	if err := c.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the claims of host names: %w", err)
	}
	var all []*v1alpha1.HostnameClaim
	for i := range list.Items {
		if claim := &list.Items[i]; claim.Spec.Tenant == tenant && claim.Spec.Project == project && claim.DeletionTimestamp.IsZero() {
			all = append(all, claim)
		}
	}
	return all, nil
}

// isOf reports whether a claim is of the project of an app.
func isOf(claim *v1alpha1.HostnameClaim, owner own.Owner) bool {
	return claim.Spec.Tenant == owner.Tenant && claim.Spec.Project == owner.Project
}

// byHand reports whether a person made a claim.
func byHand(claim *v1alpha1.HostnameClaim) bool {
	return claim.Labels[v1alpha1.ManagedByLabel] != v1alpha1.FieldManager
}
