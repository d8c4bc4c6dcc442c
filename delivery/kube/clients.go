// Package kube connects delivery to the API server: with the rights of a project's deployer to the objects of apps, and through
// metadata-only watches to the state of the cluster.
package kube

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Clients makes clients that impersonate a project's deployer. The clients share connections and the RESTMapper, and read from the API
// server, never from the operator's cache: an app must not see objects that its deployer may not see.
type Clients struct {
	Deployers

	config *rest.Config
	scheme *runtime.Scheme
	mapper meta.RESTMapper

	mu   sync.Mutex
	made map[string]client.Client
}

// NewClients returns Clients over the operator's own connection.
func NewClients(config *rest.Config, scheme *runtime.Scheme, mapper meta.RESTMapper, deployers Deployers) *Clients {
	return &Clients{Deployers: deployers, config: config, scheme: scheme, mapper: mapper, made: map[string]client.Client{}}
}

// As returns the client of a namespace's deployer: ErrPlatformOff for a namespace of the platform itself, unless its apps are delivered.
func (c *Clients) As(namespace string) (client.Client, error) {
	if v1alpha1.TenantOf(namespace) == v1alpha1.PlatformTenant && !c.Platform() {
		return nil, ErrPlatformOff
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if made, ok := c.made[namespace]; ok {
		return made, nil
	}
	made, err := client.New(c.Config(namespace), client.Options{Scheme: c.scheme, Mapper: c.mapper})
	if err != nil {
		return nil, fmt.Errorf("making the client of %s: %w", c.Of(namespace), err)
	}
	c.made[namespace] = made
	return made, nil
}

// Config returns the connection of a namespace's deployer.
func (c *Clients) Config(namespace string) *rest.Config {
	config := rest.CopyConfig(c.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: c.Of(namespace)}
	return config
}

// Forget drops the client of a deleted namespace.
func (c *Clients) Forget(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.made, namespace)
}

// Namespaced reports whether a kind is namespaced, from live discovery. It returns *UnkeptKindError for a kind that is not stored.
func (c *Clients) Namespaced(kind schema.GroupVersionKind) (bool, error) {
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return false, fmt.Errorf("looking whether %s is namespaced: %w", kind.Kind, err)
	}
	if m, ok := c.mapper.(*Mapper); ok {
		if err := m.Kept(mapping); err != nil {
			return false, err
		}
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}
