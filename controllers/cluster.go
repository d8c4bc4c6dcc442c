package controllers

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/pod-security-admission/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/registry"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/digest"
	"github.com/kubeop/kubeop/delivery/fingerprint"
	"github.com/kubeop/kubeop/delivery/health"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/metadata"
	"github.com/kubeop/kubeop/delivery/podsecurity"
)

// cluster holds the clients, caches and watches of the cluster.
type cluster struct {
	// direct reads and writes without any cache.
	direct client.Client
	// objects is the cache of delivered objects, of the kinds that watch follows. local watches the kinds that only deployers may watch.
	objects cache.Cache
	watch   *kube.Watch
	local   *kube.LocalWatch
	// secrets is the cache of the metadata of Secrets in the operator's namespace.
	secrets cache.Cache
	applier *apply.Applier
	// clients are clients with the rights of the projects' deployers.
	clients *kube.Clients
	// registries keep the pull Secrets of projects.
	registries *registry.Provider
	// served and mapper know the kinds that the API server serves. The manager's own mapper keeps deleted kinds; this one forgets them, and
	// shares the results of discovery with Helm.
	served discovery.CachedDiscoveryInterface
	mapper *kube.Mapper
	// podSecurity is the Kubernetes version of the Pod Security checks that the API server enforces.
	podSecurity api.Version
}

func newCluster(mgr ctrl.Manager, namespace string, deployers kube.Deployers, seal digest.Seal) (*cluster, error) {
	asked, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making the discovery client: %w", err)
	}
	version, err := asked.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("asking for the cluster's version: %w", err)
	}
	c := &cluster{served: memory.NewMemCacheClient(asked), podSecurity: podsecurity.VersionOf(version.Major, version.Minor)}
	c.mapper = kube.NewMapper(c.served)
	c.direct, err = client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: c.mapper})
	if err != nil {
		return nil, fmt.Errorf("making the client past the cache: %w", err)
	}
	lists := kube.NewLists(realClock)
	if c.objects, err = newObjects(mgr, lists, c.mapper); err != nil {
		return nil, fmt.Errorf("making the cache of delivered objects: %w", err)
	}
	c.secrets, err = cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: c.mapper,
		DefaultNamespaces: map[string]cache.Config{namespace: {}}, DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache of the repositories' Secrets: %w", err)
	}
	c.watch = kube.NewWatch(lists, c.objects, mgr.GetClient(), c.direct, health.HasStatus)
	c.local = kube.NewLocalWatch(mgr.GetConfig(), mgr.GetHTTPClient(), mgr.GetLogger().WithName("local-watch"), realClock)
	c.local.Mapper, c.local.Deployers = c.mapper, deployers
	c.applier = &apply.Applier{Live: liveOf(c.watch, c.local), Seal: seal}
	c.clients = kube.NewClients(mgr.GetConfig(), mgr.GetScheme(), c.mapper, deployers)
	return c, nil
}

// newObjects returns the cache of objects that carry a tenant's label.
func newObjects(mgr ctrl.Manager, lists *kube.Lists, mapper *kube.Mapper) (cache.Cache, error) {
	ours, err := labels.NewRequirement(v1alpha1.TenantLabel, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	return cache.New(mgr.GetConfig(), lists.Of(cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mapper,
		DefaultLabelSelector: labels.NewSelector().Add(*ours),
		DefaultTransform:     kube.Hold(mgr.GetScheme(), fingerprint.Slim),
	}))
}

// liveOf returns the live metadata of objects: of Secrets from the watch of their namespace's deployer, of other kinds from the operator's
// watch.
func liveOf(watch *kube.Watch, local *kube.LocalWatch) metadata.Watch {
	return func(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (metav1.Object, bool, error) {
		if kind != corev1.SchemeGroupVersion.WithKind("Secret") {
			return watch.Live(ctx, kind, key)
		}
		version, err := local.Version(ctx, key.Namespace, kind.Kind, key.Name)
		var unready *kube.Unready
		switch {
		case errors.As(err, &unready) && unready.Err == nil:
			return nil, false, err
		case err != nil || version == "":
			// If the deployer may not watch, the request that follows reports why.
			return nil, err == nil, nil
		}
		return &metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, ResourceVersion: version}, true, nil
	}
}

// explainer returns what explains, with the rights of a namespace's deployer, why objects are unhealthy.
func (c *cluster) explainer(namespace string, mask func(string) string) (health.Explainer, error) {
	deployer, err := c.clients.As(namespace)
	if err != nil {
		return health.Explainer{}, err
	}
	logs, err := health.LogsOf(c.clients.Config(namespace))
	return health.Explainer{Client: deployer, Logs: logs, Mask: mask}, err
}

// explain says why one object is not healthy; "" if that is unknown.
func (c *cluster) explain(ctx context.Context, namespace string, mask func(string) string, o *unstructured.Unstructured) string {
	explainer, err := c.explainer(namespace, mask)
	if err != nil {
		return ""
	}
	return explainer.Explain(ctx, o).Why
}
