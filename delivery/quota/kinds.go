package quota

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// number is how many objects of a kind a project has by default.
type number struct {
	count int64
	// fixed: it does not grow with the number of pods.
	fixed bool
}

var secrets = schema.GroupResource{Resource: "secrets"}

// usual are the kinds of the chart's role kubeop-deployer-base that can be created, each with the default number of objects for a project
// with the usual number of pods. A Deployment keeps ten earlier ReplicaSets, a StatefulSet and a DaemonSet ten ControllerRevisions, and a
// CronJob four Jobs. The number of pods includes those that have ended.
var usual = map[schema.GroupResource]number{
	{Resource: "configmaps"}:             {500, true},
	secrets:                              {500, true},
	{Resource: "services"}:               {100, false},
	{Resource: "persistentvolumeclaims"}: {100, false},
	{Resource: "serviceaccounts"}:        {100, false},
	{Resource: "pods"}:                   {300, false},

	{Group: "apps", Resource: "deployments"}:         {60, false},
	{Group: "apps", Resource: "statefulsets"}:        {30, false},
	{Group: "apps", Resource: "daemonsets"}:          {10, false},
	{Group: "apps", Resource: "replicasets"}:         {700, false},
	{Group: "apps", Resource: "controllerrevisions"}: {450, false},

	{Group: "batch", Resource: "jobs"}:     {200, false},
	{Group: "batch", Resource: "cronjobs"}: {40, false},

	{Group: "autoscaling", Resource: "horizontalpodautoscalers"}: {100, false},
	{Group: "policy", Resource: "poddisruptionbudgets"}:          {100, false},
	{Group: "networking.k8s.io", Resource: "ingresses"}:          {100, false},
	{Group: "gateway.networking.k8s.io", Resource: "httproutes"}: {100, false},
	{Group: rbacv1.GroupName, Resource: "roles"}:                 {100, false},
	{Group: rbacv1.GroupName, Resource: "rolebindings"}:          {100, false},
	{Group: "coordination.k8s.io", Resource: "leases"}:           {200, false},
}

// otherObjects is how many objects of each kind that administrators added to the deployer's role a project has by default.
const otherObjects = 100

// settling is how long a kind must be served before it is counted. Kubernetes' controllers learn of a new kind within half a minute; until
// then, the API server would refuse every object of a counted kind.
const settling = 2 * time.Minute

// fresh is how long a result is reused.
const fresh = time.Second

// Discovery returns from memory what the API server serves.
type Discovery interface {
	ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
}

// Kinds finds the kinds that a tenant's accounts can create: those in the ClusterRole kubeop-deployer, which has all rights that any
// account of a tenant can have, as far as the API server serves them and a quota can count them. It is safe for concurrent use.
type Kinds struct {
	// Roles reads the ClusterRole; it may be a cache.
	Roles client.Reader
	// Definitions lists the metadata of all CustomResourceDefinitions, once.
	Definitions client.Reader
	Served      Discovery
	Now         func() time.Time

	mu sync.Mutex
	// listed is the last result. It is reused until the time in the next field.
	listed []schema.GroupResource
	until  time.Time
	// since is the time since which each kind is served. For those that the first call found it is the time at which their CustomResourceDefinition was
	// created, zero without one.
	since map[schema.GroupResource]time.Time
}

// List returns the kinds, sorted, at most a second old: thousands of projects call it at once. The caller must not change the result.
func (k *Kinds) List(ctx context.Context) ([]schema.GroupResource, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.Now()
	if now.Before(k.until) {
		return k.listed, nil
	}
	kinds, err := k.list(ctx, now)
	if err == nil {
		k.listed, k.until = kinds, now.Add(fresh)
	}
	return kinds, err
}

func (k *Kinds) list(ctx context.Context, now time.Time) ([]schema.GroupResource, error) {
	role := &rbacv1.ClusterRole{}
	// Without the role, no account can create anything; the chart is about to install it.
	if err := k.Roles.Get(ctx, client.ObjectKey{Name: v1alpha1.Deployer}, role); err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading ClusterRole %s: %w", v1alpha1.Deployer, err)
	}
	served, err := k.served(ctx, now)
	if err != nil {
		return nil, err
	}
	kinds := slices.DeleteFunc(served, func(kind schema.GroupResource) bool {
		_, base := usual[kind] // The controller that aggregates the role's rules may be late.
		return !base && !creatable(role.Rules, kind)
	})
	slices.SortFunc(kinds, func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) })
	return kinds, nil
}

// served returns the namespaced kinds that have been served long enough and that a quota can count.
func (k *Kinds) served(ctx context.Context, now time.Time) ([]schema.GroupResource, error) {
	_, lists, err := k.Served.ServerGroupsAndResources()
	var partly *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &partly) {
		return nil, fmt.Errorf("asking which kinds are served: %w", err)
	}
	found := map[schema.GroupResource]bool{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("reading which kinds are served: %w", err)
		}
		for _, r := range list.APIResources {
			if countable(gv.Group, r) {
				found[schema.GroupResource{Group: gv.Group, Resource: r.Name}] = true
			}
		}
	}
	if k.since == nil {
		if err := k.begin(ctx, found, now); err != nil {
			return nil, err
		}
	}
	return k.settled(found, partly != nil, now), nil
}

// begin notes the kinds that the first call found. Those that were defined a moment ago are as new to Kubernetes' controllers as those that come later.
func (k *Kinds) begin(ctx context.Context, found map[schema.GroupResource]bool, now time.Time) error {
	definitions := &metav1.PartialObjectMetadataList{}
	definitions.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"})
	if err := k.Definitions.List(ctx, definitions); err != nil {
		return fmt.Errorf("listing the CustomResourceDefinitions: %w", err)
	}
	defined := map[string]time.Time{}
	for i := range definitions.Items {
		d := &definitions.Items[i]
		if defined[d.Name] = d.CreationTimestamp.Time; d.CreationTimestamp.After(now) { // The API server's clock is ahead.
			defined[d.Name] = now
		}
	}
	k.since = map[schema.GroupResource]time.Time{}
	for kind := range found {
		k.since[kind] = defined[kind.String()]
	}
	return nil
}

// settled returns the kinds that have been served long enough. If discovery was incomplete, kinds that were served before still count.
func (k *Kinds) settled(found map[schema.GroupResource]bool, partly bool, now time.Time) []schema.GroupResource {
	for kind := range found {
		if _, known := k.since[kind]; !known {
			k.since[kind] = now
		}
	}
	var all []schema.GroupResource
	for kind, since := range k.since {
		switch {
		case !found[kind] && !partly:
			delete(k.since, kind)
		case now.Sub(since) >= settling:
			all = append(all, kind)
		}
	}
	return all
}

// countable reports whether a quota can count the objects of a kind: Kubernetes' controllers count those that they can list and
// watch, and no events.
func countable(group string, r metav1.APIResource) bool {
	if !r.Namespaced || strings.Contains(r.Name, "/") || (r.Name == "events" && (group == "" || group == "events.k8s.io")) {
		return false
	}
	for _, verb := range []string{"create", "list", "watch", "delete"} {
		if !slices.Contains(r.Verbs, verb) {
			return false
		}
	}
	return true
}

// creatable reports whether rules let objects of a kind be created.
func creatable(rules []rbacv1.PolicyRule, kind schema.GroupResource) bool {
	has := func(list []string, value string) bool {
		return slices.Contains(list, value) || slices.Contains(list, "*")
	}
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		return has(rule.Verbs, "create") && has(rule.APIGroups, kind.Group) && has(rule.Resources, kind.Resource)
	})
}
