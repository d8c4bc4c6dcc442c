// Package live has the operations that read the tenants, projects and apps of the cluster. It reads from caches, so a request to the API causes no
// request to the API server.
package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/manager/index"
	"github.com/kubeop/kubeop/internal/manager/owners"
)

// Cluster follows the tenants, projects, apps, repositories, price lists and Clusters of a cluster, and the further kinds that NewCluster gets.
type Cluster struct {
	// Index has the answers about the objects.
	Index *index.Index
	// Owners has the owners of the tenants.
	Owners *owners.Owners
	// Changed, unless nil, is called with each object that was added, changed or deleted. Set it before Start.
	Changed func(client.Object)
	caches  cache.Cache
	filled  []toolscache.ResourceEventHandlerRegistration

	following following
}

// NewCluster returns a Cluster that is empty until it is started.
func NewCluster(ctx context.Context, config *rest.Config, also ...client.Object) (*Cluster, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	// This mapper needs no discovery, so a start does not depend on the API server.
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(v1alpha1.GroupVersion.WithKind(v1alpha1.TenantKind), meta.RESTScopeRoot)
	mapper.Add(v1alpha1.GroupVersion.WithKind(v1alpha1.ProjectKind), meta.RESTScopeNamespace)
	mapper.Add(v1alpha1.GroupVersion.WithKind(v1alpha1.AppKind), meta.RESTScopeNamespace)
	mapper.Add(v1alpha1.GroupVersion.WithKind(v1alpha1.RepositoryKind), meta.RESTScopeRoot)
	mapper.Add(v1alpha1.GroupVersion.WithKind(v1alpha1.HostnameClaimKind), meta.RESTScopeRoot)
	mapper.Add(v1alpha1.GroupVersion.WithKind(v1alpha1.PriceListKind), meta.RESTScopeRoot)
	mapper.Add(v1alpha1.GroupVersion.WithKind(v1alpha1.ClusterKind), meta.RESTScopeRoot)
	c := &Cluster{Index: index.New(), Owners: owners.New()}
	c.Owners.Synced, c.Owners.Behind = c.Synced, c.Behind
	config = rest.CopyConfig(config)
	config.Wrap(c.following.wrap)
	caches, err := cache.New(config, cache.Options{Scheme: scheme, Mapper: mapper, DefaultTransform: slim, ReaderFailOnMissingInformer: true})
	if err != nil {
		return nil, fmt.Errorf("making the caches: %w", err)
	}
	c.caches = caches
	for _, kind := range append([]client.Object{&v1alpha1.Tenant{}, &v1alpha1.Project{}, &v1alpha1.App{}, &v1alpha1.Repository{}, &v1alpha1.PriceList{}, &v1alpha1.Cluster{}}, also...) {
		informer, err := caches.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("making the caches: %w", err)
		}
		filled, err := informer.AddEventHandler(c.handler())
		if err != nil {
			return nil, fmt.Errorf("making the caches: %w", err)
		}
		c.filled = append(c.filled, filled)
	}
	return c, nil
}

// Reader reads the objects from the caches, reduced by slim.
func (c *Cluster) Reader() client.Reader { return c.caches }

// Start follows the cluster until the context ends.
func (c *Cluster) Start(ctx context.Context) error { return c.caches.Start(ctx) }

func (c *Cluster) handler() toolscache.ResourceEventHandler {
	apply := func(object any) {
		if o, is := object.(client.Object); is {
			if err := Apply(c.Index, o); err != nil {
				ctrl.Log.WithName("live").Error(err, "Reading an object of the cluster")
			}
		}
		if t, is := object.(*v1alpha1.Tenant); is {
			c.Owners.Put(t.Name, t.Spec.Owners)
		}
		c.changed(object)
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    apply,
		UpdateFunc: func(_, object any) { apply(object) },
		DeleteFunc: func(object any) {
			// The event of a missed deletion has the object in its last known state.
			if missed, is := object.(toolscache.DeletedFinalStateUnknown); is {
				object = missed.Obj
			}
			if o, is := object.(client.Object); is {
				Forget(c.Index, o)
			}
			if t, is := object.(*v1alpha1.Tenant); is {
				c.Owners.Forget(t.Name)
			}
			c.changed(object)
		},
	}
}

func (c *Cluster) changed(object any) {
	if o, is := object.(client.Object); is && c.Changed != nil {
		c.Changed(o)
	}
}

// slim keeps the parts of an object that the API shows: the rest, such as values and inventories, may be large or secret.
func slim(object any) (any, error) {
	o, is := object.(client.Object)
	if !is {
		return object, nil
	}
	o.SetManagedFields(nil)
	o.SetLabels(nil)
	o.SetOwnerReferences(nil)
	kept := map[string]string{}
	for _, name := range []string{v1alpha1.TreeAnnotation, v1alpha1.RevisionAnnotation, v1alpha1.BranchAnnotation, v1alpha1.AuthorAnnotation} {
		if value, has := o.GetAnnotations()[name]; has {
			kept[name] = value
		}
	}
	o.SetAnnotations(kept)
	switch o := object.(type) {
	case *v1alpha1.Tenant:
		o.Spec, o.Status.Inventory = v1alpha1.TenantSpec{Owners: o.Spec.Owners, Limits: o.Spec.Limits, PriceList: o.Spec.PriceList, CostBudget: o.Spec.CostBudget, Clusters: o.Spec.Clusters}, v1alpha1.Inventory{} // Writes are checked by the limits and clusters.
	case *v1alpha1.Project:
		o.Spec, o.Status.Inventory = v1alpha1.ProjectSpec{}, v1alpha1.Inventory{}
	case *v1alpha1.App:
		o.Spec, o.Status.Inventory = slimSpec(o.Spec), v1alpha1.Inventory{}
	}
	return o, nil
}

// slimSpec keeps the type of an app, whether its content comes from elsewhere, which StatusIsCurrent needs, and whether it can be rolled back.
func slimSpec(of v1alpha1.AppSpec) v1alpha1.AppSpec {
	kept := v1alpha1.AppSpec{Type: of.Type}
	if of.Git != nil {
		kept.Git = &v1alpha1.GitSource{}
	}
	if of.Helm == nil {
		return kept
	}
	kept.Helm = &v1alpha1.HelmSource{}
	if of.Helm.Git != nil {
		kept.Helm.Git = &v1alpha1.ChartGitSource{}
	}
	if of.Helm.Repository != "" {
		kept.Helm.Repository = "elsewhere"
	}
	return kept
}

var errNotSynced = errors.New("the caches were not filled yet; the API server does not answer, or refuses")

// Synced returns nil once the whole cluster was read. The objects stay readable if the API server is gone later.
func (c *Cluster) Synced(context.Context) error {
	for _, registration := range c.filled {
		if !registration.HasSynced() {
			return errNotSynced
		}
	}
	return nil
}

// Following returns nil while the caches follow the cluster. Otherwise they have the state of the last answer of the API server.
func (c *Cluster) Following(ctx context.Context) error {
	if err := c.Synced(ctx); err != nil {
		return err
	}
	if kind, lost := c.following.oldest(); kind != "" {
		return fmt.Errorf("%s are answered as they were at %s: %w", kind, lost.since.UTC().Format(time.RFC3339), lost.why)
	}
	return nil
}

// Behind returns for how long the caches have not followed the cluster.
func (c *Cluster) Behind() time.Duration {
	kind, lost := c.following.oldest()
	if kind == "" {
		return 0
	}
	return time.Since(lost.since)
}
