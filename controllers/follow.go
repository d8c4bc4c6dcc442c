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
	"github.com/kubeop/kubeop/delivery/isolation"
	"github.com/kubeop/kubeop/delivery/kube"
)

// usedByAll are the kinds that every Reconcile of a Tenant, a Project or an App reads.
func (s *shared) usedByAll() []schema.GroupVersionKind {
	kinds := []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("Namespace"), corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
		corev1.SchemeGroupVersion.WithKind("ResourceQuota"), corev1.SchemeGroupVersion.WithKind("LimitRange"),
		networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"), rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
		rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
		isolation.ClusterPolicyKind, // Watched only where it is served.
	}
	if s.FlowControl {
		kinds = append(kinds, flowcontrolv1.SchemeGroupVersion.WithKind("FlowSchema"))
	}
	return kinds
}

// firstLists starts the watches of the kinds that all use, and of Pods, whose failures explain why an app is unhealthy.
type firstLists struct{ *shared }

const (
	// inStepWithin is how long workers wait for first lists. After that they start, and objects report which list is missing.
	inStepWithin = 15 * time.Second
	// recordedWithin is how long workers wait for the first lists of the kinds in apps' inventories: the list of one tenant's kind may
	// never come.
	recordedWithin = 2 * time.Second
)

// Start starts the watches, and lets the workers start after the watches' first lists. Otherwise every object would be reconciled again for
// each list that arrives.
func (f *firstLists) Start(ctx context.Context) error {
	defer close(f.inStep)
	f.watch.Begin(corev1.SchemeGroupVersion.WithKind("Pod"))
	f.await(ctx, inStepWithin, f.usedByAll())
	if f.mgr.GetCache().WaitForCacheSync(ctx) && toolscache.WaitForCacheSync(ctx.Done(), f.counted) {
		f.await(ctx, recordedWithin, f.recorded(ctx))
	}
	return nil
}

// await starts the watches of kinds, and waits for their first lists.
func (f *firstLists) await(ctx context.Context, within time.Duration, kinds []schema.GroupVersionKind) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	f.watch.Begin(kinds...)
	for _, kind := range kinds {
		_ = kube.Await(ctx, func() error { return f.watch.Follow(kind) }) // Objects that need the kind report a failure.
	}
}

// recorded returns the kinds in apps' inventories, except Secrets, which the deployers watch. If the apps cannot be listed, the error
// is logged, and each app waits for first lists itself.
func (f *firstLists) recorded(ctx context.Context) []schema.GroupVersionKind {
	apps := &v1alpha1.AppList{}
	if err := f.mgr.GetClient().List(ctx, apps, client.UnsafeDisableDeepCopy); err != nil {
		f.mgr.GetLogger().Error(err, "Listing the apps, to wait for the first lists of the kinds that they deliver; each app waits for its own")
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
