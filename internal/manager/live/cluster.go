// Package live has the operations that read the tenants, projects and apps of the cluster, from caches: a request to the API costs none to the API server.
package live

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Cluster caches the tenants, projects and apps of a cluster.
type Cluster struct {
	cache.Cache
	informers []cache.Informer
}

// NewCluster returns the caches. Start fills them, and returns when its context ends.
func NewCluster(ctx context.Context, config *rest.Config) (*Cluster, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	// The kinds are known, so a start does not depend on the API server.
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(v1alpha1.GroupVersion.WithKind(v1alpha1.TenantKind), meta.RESTScopeRoot)
	mapper.Add(v1alpha1.GroupVersion.WithKind(v1alpha1.ProjectKind), meta.RESTScopeNamespace)
	mapper.Add(v1alpha1.GroupVersion.WithKind(v1alpha1.AppKind), meta.RESTScopeNamespace)
	caches, err := cache.New(config, cache.Options{Scheme: scheme, Mapper: mapper, DefaultTransform: slim, ReaderFailOnMissingInformer: true})
	if err != nil {
		return nil, fmt.Errorf("making the caches: %w", err)
	}
	c := &Cluster{Cache: caches}
	for _, kind := range []client.Object{&v1alpha1.Tenant{}, &v1alpha1.Project{}, &v1alpha1.App{}} {
		informer, err := caches.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("making the caches: %w", err)
		}
		c.informers = append(c.informers, informer)
	}
	return c, nil
}

// slim drops what no operation tells, and what may be large or secret, before a cache holds it.
func slim(object any) (any, error) {
	switch o := object.(type) {
	case *v1alpha1.Tenant:
		o.Status.Inventory = v1alpha1.Inventory{}
	case *v1alpha1.Project:
		o.Status.Inventory = v1alpha1.Inventory{}
	case *v1alpha1.App:
		o.Status.Inventory, o.Spec.Raw = v1alpha1.Inventory{}, nil
		if o.Spec.Helm != nil {
			o.Spec.Helm.Values = nil
		}
	}
	return cache.TransformStripManagedFields()(object)
}

var errNotSynced = errors.New("the caches were not filled yet; the API server does not answer, or refuses")

// Synced returns nil once all caches were filled. They stay filled when the API server is gone.
func (c *Cluster) Synced(context.Context) error {
	for _, informer := range c.informers {
		if !informer.HasSynced() {
			return errNotSynced
		}
	}
	return nil
}
