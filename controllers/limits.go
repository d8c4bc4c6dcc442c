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
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fetch"
	"github.com/kubeop/kubeop/delivery/fetch/pack"
	"github.com/kubeop/kubeop/delivery/quota"
)

// limits are those of the Tenants, by name.
type limits struct {
	usual budget.Limits
	set   sync.Map
}

// bound has what tenants share bounded by the limits of each.
func (s *shared) bound() error {
	if err := budget.Check(&s.TenantLimits); err != nil {
		return fmt.Errorf("the limits of tenants: %w", err)
	}
	s.limits = &limits{usual: budget.Default().With(&s.TenantLimits)}
	s.usage = &usage.Counter{Reader: s.mgr.GetClient(), Limits: s.limits.usual}
	s.store = &usage.Store{Reader: s.mgr.GetClient(), Limits: s.limits.usual, Quota: s.quota, Clock: clock.RealClock{}}
	s.watch.OnKind(s.quotas)
	s.rendered = &usage.Rendered{}
	s.stores.Unpack(pack.Reader{Apart: s.apart})
	s.stores.Limit(func(tenant string) fetch.Bounds {
		limits := s.limits.of(tenant)
		return fetch.Bounds{Kept: limits.SourceBytes, Inflated: limits.PackBytes}
	})
	return nil
}

// of returns the limits of a tenant, the usual ones of any other name. It never waits.
func (l *limits) of(tenant string) budget.Limits {
	if limits, ok := l.set.Load(tenant); ok {
		return limits.(budget.Limits)
	}
	return l.usual
}

// follow keeps the limits as the Tenants in a cache say.
func (l *limits) follow(ctx context.Context, objects cache.Cache) error {
	heard := func(tenant *v1alpha1.Tenant) { l.set.Store(tenant.Name, l.usual.With(&tenant.Spec.Limits)) }
	gone := func(name string) {
		l.set.Delete(name)
		step.ForgetRefusals(name)
	}
	return followTenants(ctx, objects, heard, gone)
}

// usages tells, each time it is asked, how much each tenant has and may have. Nothing is held between two times, and nothing is left of
// a tenant that is gone. The series are twelve for each tenant.
type usages struct {
	reader   client.Reader
	usage    *usage.Counter
	store    *usage.Store
	rendered *usage.Rendered
	// sources are the bytes on disk of a tenant's sources.
	sources func(tenant string) int64
	// elected is closed when this replica leads: the others would tell everything again.
	elected <-chan struct{}
}

var (
	tenantUsed = prometheus.NewDesc("kubeop_tenant_used",
		"What a tenant has of what spec.limits of its Tenant bounds, by the name of the field: numbers, or bytes.",
		[]string{"tenant", "resource"}, nil)
	tenantLimit = prometheus.NewDesc("kubeop_tenant_limit",
		"How much a tenant may have, by the name of the field in spec.limits of its Tenant: a number, or bytes.",
		[]string{"tenant", "resource"}, nil)
)

// Describe is for the registry.
func (*usages) Describe(out chan<- *prometheus.Desc) {
	out <- tenantUsed
	out <- tenantLimit
}

// Collect is for the registry.
func (u *usages) Collect(out chan<- prometheus.Metric) {
	select {
	case <-u.elected:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	tenants := &v1alpha1.TenantList{}
	if err := u.reader.List(ctx, tenants, client.UnsafeDisableDeepCopy); err != nil {
		out <- prometheus.NewInvalidMetric(tenantUsed, err)
		return
	}
	for i := range tenants.Items {
		if err := u.tell(ctx, out, tenants.Items[i].Name); err != nil {
			out <- prometheus.NewInvalidMetric(tenantUsed, err)
			return
		}
	}
}

func (u *usages) tell(ctx context.Context, out chan<- prometheus.Metric, tenant string) error {
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

// usages are the metrics of what tenants have.
func (s *shared) usages() *usages {
	return &usages{reader: s.mgr.GetClient(), usage: s.usage, store: s.store, rendered: s.rendered, sources: s.stores.Used, elected: s.mgr.Elected()}
}

var quotaKind = corev1.SchemeGroupVersion.WithKind("ResourceQuota")

// quota returns spec and status of the quota of a tenant's namespace as they are watched, nil where there is none.
func (s *shared) quota(namespace string) (*corev1.ResourceQuota, error) {
	live := &corev1.ResourceQuota{}
	found, err := s.watch.Decode(quotaKind, types.NamespacedName{Namespace: namespace, Name: quota.Name}, live)
	if !found || err != nil {
		return nil, err
	}
	return live, nil
}

// quotas tells the store of each quota that changes.
func (s *shared) quotas(kind schema.GroupVersionKind, informer cache.Informer) error {
	if kind != quotaKind {
		return nil
	}
	heard := func(o any) {
		if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
			o = gone.Obj
		}
		live, err := meta.Accessor(o)
		if err != nil || live.GetName() != quota.Name || live.GetLabels()[v1alpha1.TenantLabel] == "" {
			return
		}
		s.store.Changed(live.GetLabels()[v1alpha1.TenantLabel], live.GetNamespace())
	}
	_, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: heard, UpdateFunc: func(_, is any) { heard(is) }, DeleteFunc: heard})
	return err
}

// apps tells what counts the sizes of what apps deliver of each app, and returns what says that it has been told of all that were
// there at first.
func (s *shared) apps(ctx context.Context) (toldOfAll toolscache.InformerSynced, err error) {
	informer, err := s.mgr.GetCache().GetInformer(ctx, &v1alpha1.App{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("following the apps: %w", err)
	}
	told := func(o any) {
		if app, ok := o.(*v1alpha1.App); ok {
			s.rendered.Told(client.ObjectKeyFromObject(app), app.Status.RenderedBytes)
		}
	}
	handle, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: told, UpdateFunc: func(_, is any) { told(is) },
		DeleteFunc: func(o any) {
			if key, err := toolscache.DeletionHandlingObjectToName(o); err == nil {
				s.rendered.Gone(types.NamespacedName{Namespace: key.Namespace, Name: key.Name})
			}
		},
	})
	if err != nil {
		return nil, err
	}
	return handle.HasSynced, nil
}
