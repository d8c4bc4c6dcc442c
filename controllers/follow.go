package controllers

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/kube"
)

// usedByAll are the kinds that every Reconcile of a Tenant, a Project or an App looks at.
func (s *shared) usedByAll() []schema.GroupVersionKind {
	kinds := []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("Namespace"), corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
		corev1.SchemeGroupVersion.WithKind("ResourceQuota"), corev1.SchemeGroupVersion.WithKind("LimitRange"),
		networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"), rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
		rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
	}
	if s.FlowControl {
		kinds = append(kinds, flowcontrolv1.SchemeGroupVersion.WithKind("FlowSchema"))
	}
	return kinds
}

// firstLists begins to watch the kinds that are used by all, and Pods: they are not applied, and their failures are what an app waits for.
type firstLists struct{ *shared }

const (
	// inStepWithin is how long workers wait for first lists before they begin all the same, and report at the objects what is missing.
	inStepWithin = 15 * time.Second
	// recordedWithin is how long they wait for those of what apps are recorded to hold: one tenant's may never come.
	recordedWithin = 2 * time.Second
)

// Start begins the watches, and lets the workers begin when their first lists are there: every object would be looked at
// once for each list that arrives after.
func (f *firstLists) Start(ctx context.Context) error {
	defer close(f.inStep)
	f.watch.Begin(corev1.SchemeGroupVersion.WithKind("Pod"))
	f.await(ctx, inStepWithin, f.usedByAll())
	if f.mgr.GetCache().WaitForCacheSync(ctx) && toolscache.WaitForCacheSync(ctx.Done(), f.counted) {
		f.await(ctx, recordedWithin, f.recorded(ctx))
	}
	return nil
}

// await begins the watches of kinds, and waits for their first lists.
func (f *firstLists) await(ctx context.Context, within time.Duration, kinds []schema.GroupVersionKind) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	f.watch.Begin(kinds...)
	for _, kind := range kinds {
		_ = kube.Await(ctx, func() error { return f.watch.Follow(kind) }) // The objects that need the kind report it.
	}
}

// recorded are the kinds of what apps are recorded to hold, but for Secrets, which are their deployers' to watch. None where they cannot
// be listed: apps then wait for first lists one by one.
func (f *firstLists) recorded(ctx context.Context) []schema.GroupVersionKind {
	apps := &v1alpha1.AppList{}
	if err := f.mgr.GetClient().List(ctx, apps, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	kinds := map[schema.GroupVersionKind]bool{}
	for i := range apps.Items {
		for _, entry := range apps.Items[i].Status.Inventory.Entries {
			if id, err := inventory.ParseObjectID(entry.ID); err == nil && id.Kind != "Secret" {
				kinds[schema.GroupVersionKind{Group: id.Group, Version: entry.Version, Kind: id.Kind}] = true
			}
		}
	}
	return slices.Collect(maps.Keys(kinds))
}
