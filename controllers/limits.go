package controllers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/eventlimit"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/quota"
)

// limits are the limits of the Tenants, by name.
type limits struct {
	usual budget.Limits
	set   sync.Map
}

// budgets knows the limits of each tenant, and what each uses.
type budgets struct {
	limits *limits
	// usage counts the objects of tenants, store their size in the API server's store, rendered the size of what their apps deliver.
	usage    *usage.Counter
	store    *usage.Store
	rendered *usage.Rendered
	// kinds are the kinds that quotas count, and grants what quotas get of the budget of a tenant.
	kinds  *quota.Kinds
	grants *usage.Grants
	// counted reports whether the sizes of all apps that existed at the start are counted; set by followSizes.
	counted toolscache.InformerSynced
}

func newBudgets(mgr ctrl.Manager, o Options, c *cluster, steady clock.PassiveClock) (*budgets, error) {
	if err := budget.Check(&o.TenantLimits); err != nil {
		return nil, fmt.Errorf("the limits of tenants: %w", err)
	}
	usual := budget.Default().With(&o.TenantLimits)
	b := &budgets{
		limits: &limits{usual: usual}, rendered: &usage.Rendered{},
		usage:  &usage.Counter{Reader: mgr.GetClient(), Limits: usual},
		store:  &usage.Store{Reader: mgr.GetClient(), Limits: usual, Quota: c.quota, Clock: realClock},
		grants: &usage.Grants{Reader: mgr.GetClient(), Quota: c.quota, Clock: steady},
		kinds:  &quota.Kinds{Roles: mgr.GetClient(), Definitions: c.direct, Served: c.served, Now: steady.Now},
	}
	b.usage.Budgets = &usage.Budgets{Reader: mgr.GetClient(), Kinds: b.kinds.List}
	c.watch.OnKind(b.followQuotas)
	return b, nil
}

// of returns the limits of a tenant, or the default limits for an unknown name. It never waits.
func (l *limits) of(tenant string) budget.Limits {
	if limits, ok := l.set.Load(tenant); ok {
		return limits.(budget.Limits)
	}
	return l.usual
}

// follow keeps the limits up to date with the Tenants in a cache.
func (l *limits) follow(ctx context.Context, objects cache.Cache) error {
	set := func(tenant *v1alpha1.Tenant) { l.set.Store(tenant.Name, l.usual.With(&tenant.Spec.Limits)) }
	gone := func(name string) {
		l.set.Delete(name)
		step.ForgetRefusals(name)
	}
	return followTenants(ctx, objects, set, gone)
}

// usages reports at each scrape what each tenant uses and may use, in twelve series per tenant. It keeps nothing between scrapes, so there
// are no series of deleted tenants.
type usages struct {
	reader   client.Reader
	usage    *usage.Counter
	store    *usage.Store
	rendered *usage.Rendered
	// sources returns the bytes on disk of a tenant's sources.
	sources func(tenant string) int64
}

var (
	tenantUsed = prometheus.NewDesc("kubeop_tenant_used",
		"What a tenant has of what spec.limits of its Tenant bounds, by the name of the field: numbers, or bytes.",
		[]string{"tenant", "resource"}, nil)
	tenantLimit = prometheus.NewDesc("kubeop_tenant_limit",
		"How much a tenant may have, by the name of the field in spec.limits of its Tenant: a number, or bytes.",
		[]string{"tenant", "resource"}, nil)
)

// Describe implements prometheus.Collector.
func (*usages) Describe(out chan<- *prometheus.Desc) {
	out <- tenantUsed
	out <- tenantLimit
}

// Collect implements prometheus.Collector.
func (u *usages) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	tenants := &v1alpha1.TenantList{}
	if err := u.reader.List(ctx, tenants, client.UnsafeDisableDeepCopy); err != nil {
		out <- prometheus.NewInvalidMetric(tenantUsed, err)
		return
	}
	for i := range tenants.Items {
		if err := u.collect(ctx, out, tenants.Items[i].Name); err != nil {
			out <- prometheus.NewInvalidMetric(tenantUsed, err)
			return
		}
	}
}

func (u *usages) collect(ctx context.Context, out chan<- prometheus.Metric, tenant string) error {
	has, err := u.usage.Of(ctx, tenant)
	if err != nil {
		return err
	}
	stored, err := u.store.Taken(ctx, tenant)
	if err != nil {
		return err
	}
	for _, each := range []struct {
		field     budget.Field
		used, may int64
	}{
		{budget.Projects, has.Projects, has.Limits.Projects},
		{budget.Apps, has.Apps, has.Limits.Apps},
		{budget.TreeBytes, has.TreeBytes, has.Limits.TreeBytes},
		{budget.SourceBytes, u.sources(tenant), has.Limits.SourceBytes},
		{budget.RenderedBytes, u.rendered.Of(tenant), has.Limits.RenderedBytes},
		{budget.StoreBytes, stored, has.Limits.StoreBytes},
	} {
		out <- prometheus.MustNewConstMetric(tenantUsed, prometheus.GaugeValue, float64(each.used), tenant, each.field.Name)
		out <- prometheus.MustNewConstMetric(tenantLimit, prometheus.GaugeValue, float64(each.may), tenant, each.field.Name)
	}
	return nil
}

// usages returns the metrics of what tenants use.
func (s *shared) usages() *usages {
	return &usages{reader: s.mgr.GetClient(), usage: s.usage, store: s.store, rendered: s.rendered, sources: s.stores.Used}
}

// eventLimiter returns what limits the number of Events in tenants' namespaces.
func (s *shared) eventLimiter() *eventlimit.Limiter {
	return &eventlimit.Limiter{
		Direct: s.direct, Projects: s.mgr.GetClient(), Events: s.mgr.GetEventRecorder("kubeop-events"), Clock: realClock,
		Log: s.mgr.GetLogger().WithName("events"), Most: eventlimit.Most,
	}
}

var quotaKind = corev1.SchemeGroupVersion.WithKind("ResourceQuota")

// quota returns the quota of a tenant's namespace as the watch shows it; nil if there is none.
func (c *cluster) quota(namespace string) (*corev1.ResourceQuota, error) {
	live := &corev1.ResourceQuota{}
	found, err := c.watch.Decode(quotaKind, types.NamespacedName{Namespace: namespace, Name: quota.Name}, live)
	if !found || err != nil {
		return nil, err
	}
	return live, nil
}

// followQuotas reports to the store and the grants which quotas changed.
func (b *budgets) followQuotas(kind schema.GroupVersionKind, informer cache.Informer) error {
	if kind != quotaKind {
		return nil
	}
	changed := func(o any) {
		if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
			o = gone.Obj
		}
		live, err := meta.Accessor(o)
		if err != nil || live.GetName() != quota.Name || live.GetLabels()[v1alpha1.TenantLabel] == "" {
			return
		}
		b.store.Changed(live.GetLabels()[v1alpha1.TenantLabel], live.GetNamespace())
		b.grants.Changed(live.GetLabels()[v1alpha1.TenantLabel], live.GetNamespace())
	}
	_, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: changed, UpdateFunc: func(_, is any) { changed(is) }, DeleteFunc: changed})
	if err != nil {
		return fmt.Errorf("following the quotas: %w", err)
	}
	return nil
}

// followSizes counts the size of what each app in a cache delivers, from its status.
func (b *budgets) followSizes(ctx context.Context, objects cache.Cache) error {
	informer, err := objects.GetInformer(ctx, &v1alpha1.App{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("following the apps: %w", err)
	}
	count := func(o any) {
		if app, ok := o.(*v1alpha1.App); ok {
			b.rendered.Observe(client.ObjectKeyFromObject(app), app.Status.RenderedBytes)
		}
	}
	handle, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: count, UpdateFunc: func(_, is any) { count(is) },
		DeleteFunc: func(o any) {
			if key, err := toolscache.DeletionHandlingObjectToName(o); err == nil {
				b.rendered.Gone(types.NamespacedName{Namespace: key.Namespace, Name: key.Name})
			}
		},
	})
	if err != nil {
		return fmt.Errorf("following the apps: %w", err)
	}
	b.counted = handle.HasSynced
	return nil
}
