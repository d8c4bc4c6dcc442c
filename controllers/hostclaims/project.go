package hostclaims

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/backoff"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/delivery/hostname"
)

// grace is how long a name is no longer in the Guardrails before its claim is deleted. By then every API server refuses new objects with it, so that
// none appears after the last look.
const grace = 2 * time.Second

// Project is a project and what its Guardrails in the cache have.
type Project struct {
	Tenant, Name, Namespace string

	Listed *v1alpha1.ClaimedHostnames
}

// Names returns the host names that a project has, sorted, for its Guardrails, without those that overlap with an older claim of another
// tenant. It deletes the claims that kubeop made for it and that nothing uses: no app asks for them, and no object in the namespace serves
// them. again is when to look at those that are about to be deleted, or at objects that may be; 0 if there are none.
func (c *Claims) Names(ctx context.Context, p Project) (names []string, again time.Duration, err error) {
	claims, err := c.of(ctx, p.Tenant, p.Name)
	if err != nil {
		return nil, 0, err
	}
	unused, again, err := c.unusedOf(ctx, p, claims)
	if err != nil {
		return nil, 0, err
	}
	for _, claim := range claims {
		if slices.Contains(unused, claim) {
			wait, err := c.release(ctx, p, claim)
			if err != nil {
				return nil, 0, err
			}
			again = backoff.Sooner(again, wait)
			continue
		}
		c.use(claim)
		other, err := c.rival(ctx, p.Tenant, claim.Spec.Hostname, claim)
		if err != nil {
			return nil, 0, err
		}
		if other == nil {
			names = append(names, claim.Spec.Hostname)
		}
	}
	slices.Sort(names)
	return names[:min(len(names), v1alpha1.MaxHostnames)], again, nil
}

// Release deletes the claims that kubeop made for a project whose apps are gone, except those that objects in its namespace still use.
func (c *Claims) Release(ctx context.Context, p Project) error {
	claims, err := c.of(ctx, p.Tenant, p.Name)
	if err != nil {
		return err
	}
	c.touch(p.Namespace)
	unused, _, err := c.unusedOf(ctx, p, claims)
	if err != nil {
		return err
	}
	for _, claim := range unused {
		if err := c.delete(ctx, claim); err != nil {
			return err
		}
	}
	return nil
}

// unusedOf returns the claims that kubeop made and that nothing uses. Objects are only looked at if some are of no app that this process knows. again
// is when to look at those of which this is not known yet, or that objects alone use; 0 is never.
func (c *Claims) unusedOf(ctx context.Context, p Project, claims []*v1alpha1.HostnameClaim) (unused []*v1alpha1.HostnameClaim, again time.Duration, err error) {
	asked := c.asked(p.Namespace)
	for _, claim := range claims {
		if !byHand(claim) && !asked[claim.Spec.Hostname] {
			unused = append(unused, claim)
		}
	}
	if len(unused) == 0 {
		return nil, 0, nil
	}
	if rest, err := c.starting(ctx, p.Namespace); rest > 0 || err != nil {
		return nil, rest, err
	}
	names, err := c.served(ctx, p.Namespace, unused)
	if err != nil {
		return nil, 0, err
	}
	unasked := len(unused)
	unused = slices.DeleteFunc(unused, func(claim *v1alpha1.HostnameClaim) bool { return names[claim.Spec.Hostname] })
	if len(unused) < unasked {
		again = c.nextLook(p.Namespace)
	}
	return unused, again, nil
}

// nextLook returns when to look again at the objects of a namespace that serve names for which no app asks: they may be about to go, so
// first after the grace period and then after as long as it is since an app changed. 0 is never, for objects that nobody touched for long.
func (c *Claims) nextLook(namespace string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	since := c.Clock.Now().Sub(c.changed[namespace])
	if since >= settled {
		return 0
	}
	return max(since, grace)
}

// Looks cost a request for each kind. So while the apps of a project ask anew after a start of the process, for at most startup, nothing is
// looked at. Where no app changed for settled, objects that served all names in question are looked at again after fresh: before, some may
// be about to go.
const (
	startup = 10 * time.Minute
	settled = 20 * time.Minute
	fresh   = time.Hour
)

// starting returns how long to wait for an app in a namespace that has not asked for its host names since the process began; 0 if there is none.
func (c *Claims) starting(ctx context.Context, namespace string) (rest time.Duration, err error) {
	c.mu.Lock()
	if c.began.IsZero() {
		c.began = c.Clock.Now()
	}
	rest = startup - c.Clock.Now().Sub(c.began)
	c.mu.Unlock()
	if rest <= 0 {
		return 0, nil
	}
	apps := &v1alpha1.AppList{}
	if err := c.Client.List(ctx, apps, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return 0, fmt.Errorf("listing the apps of namespace %s: %w", namespace, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.ContainsFunc(apps.Items, func(app v1alpha1.App) bool { return c.apps[client.ObjectKeyFromObject(&app)] == nil }) {
		return 0, nil
	}
	c.keepLook(namespace, look{})
	return rest + spread(namespace), nil
}

// spread is how much later than the end of the start a project looks, up to half as long again, so that not all projects look at once.
func spread(namespace string) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(namespace)) // Write never fails.
	return time.Duration(h.Sum64() % uint64(startup/2))
}

// served returns the host names that objects in a namespace serve, as the last look saw them if it is fresh and all claims were used then.
func (c *Claims) served(ctx context.Context, namespace string, claims []*v1alpha1.HostnameClaim) (map[string]bool, error) {
	c.mu.Lock()
	last, changed := c.looks[namespace], c.changed[namespace]
	c.mu.Unlock()
	unseen := func(claim *v1alpha1.HostnameClaim) bool { return !last.names[claim.Spec.Hostname] }
	if c.Clock.Now().Sub(last.at) < fresh && last.at.Sub(changed) >= settled && !slices.ContainsFunc(claims, unseen) {
		return last.names, nil
	}
	now := c.Clock.Now()
	names, err := c.look(ctx, namespace)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keepLook(namespace, look{now, names})
	return names, nil
}

// keepLook keeps the last look at a namespace. The caller holds mu.
func (c *Claims) keepLook(namespace string, last look) {
	if c.looks == nil {
		c.looks = map[string]look{}
	}
	c.looks[namespace] = last
}

// look reads which host names the objects in a namespace serve.
func (c *Claims) look(ctx context.Context, namespace string) (map[string]bool, error) {
	names := map[string]bool{}
	for _, kind := range guardrails.HostKinds {
		objects, err := c.objects(ctx, kind, namespace)
		if err != nil {
			return nil, fmt.Errorf("looking for host names in use, among the %s objects of namespace %s: %w", kind.Kind, namespace, err)
		}
		for _, h := range writtenIn(objects) {
			if name, err := hostname.Normalize(h.written); err == nil {
				names[name] = true
			}
		}
	}
	return names, nil
}

// objects returns the objects of a kind in a namespace; none if the API server does not serve the kind.
func (c *Claims) objects(ctx context.Context, kind schema.GroupKind, namespace string) (all []*unstructured.Unstructured, err error) {
	mapping, err := c.Direct.RESTMapper().RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(mapping.GroupVersionKind)
	err = c.Direct.List(ctx, list, client.InNamespace(namespace))
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all, err
}

// use records that a claim is used.
func (c *Claims) use(claim *v1alpha1.HostnameClaim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.unused, claim.UID)
}

// release deletes an unused claim, once its name has not been in the Guardrails for the grace period. It returns how long to wait until then.
func (c *Claims) release(ctx context.Context, p Project, claim *v1alpha1.HostnameClaim) (wait time.Duration, err error) {
	listed := p.Listed != nil && slices.Contains(p.Listed.Names, claim.Spec.Hostname)
	c.mu.Lock()
	since, known := c.unused[claim.UID]
	if !known || listed {
		if c.unused == nil {
			c.unused = map[types.UID]time.Time{}
		}
		since = c.Clock.Now()
		c.unused[claim.UID] = since
	}
	c.mu.Unlock()
	if wait = grace - c.Clock.Now().Sub(since); wait > 0 {
		return wait, nil
	}
	if err := c.delete(ctx, claim); err != nil {
		return 0, err
	}
	c.use(claim)
	return 0, nil
}
