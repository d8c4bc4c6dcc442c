package plan

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"path/filepath"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app"
	"github.com/kubeop/kubeop/controllers/app/inputs"
	"github.com/kubeop/kubeop/controllers/app/source"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/build"
	"github.com/kubeop/kubeop/delivery/fetch"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/fetch/image"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/metadata"
	"github.com/kubeop/kubeop/delivery/podsecurity"
	"github.com/kubeop/kubeop/delivery/release"
	"github.com/kubeop/kubeop/delivery/trials"
)

// cluster has what the operator delivers apps with, over connections that write nothing.
type cluster struct {
	client   client.Client
	clients  *kube.Clients
	apps     *app.Reconciler
	releases *release.Engine
	// itself: the person may impersonate the projects' deployers.
	itself bool
}

// connect puts the operator's packages together. folders returns a folder of the commit, and scratch is an empty folder.
func connect(ctx context.Context, config *rest.Config, c client.Client, folders func(*v1alpha1.App) (*folder.Folder, error), scratch string) (*cluster, error) {
	k := &cluster{client: c}
	var err error
	if k.itself, err = mayImpersonate(ctx, c); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	as := config.Impersonate
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return dryRun{next, as, k.itself} })
	config.QPS = -1
	asked, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	version, err := asked.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("asking for the cluster's version: %w", err)
	}
	served := memory.NewMemCacheClient(asked)
	mapper := kube.NewMapper(served)
	k.clients = kube.NewClients(config, c.Scheme(), mapper, kube.Deployers{PlatformApps: kube.PlatformAppsClusterAdmin})
	k.releases = release.New(release.Options{Config: config, Discovery: served, Mapper: mapper, Holder: "kubeop-plan"})

	everywhere := &transport.Network{Allowed: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}}
	stores := fetch.NewStores(filepath.Join(scratch, "sources"), everywhere, time.Now)
	fetches := pool.New(pool.Options{Reach: pool.ReachOf}, clock.RealClock{})
	go func() { _ = fetches.Start(ctx) }() // It ends with ctx, without an error.
	sources := &source.Fetcher{
		Folder: func(_ context.Context, a *v1alpha1.App) (*folder.Folder, error) { return folders(a) },
		Git:    stores.Git, Charts: stores.Charts, Artifacts: stores.Artifacts, Tags: image.NewStore(everywhere, time.Now, nil, apart.Runner{}),
		Answers: source.NewAnswers(fetches, clock.RealClock{}),
	}
	k.apps = app.New(app.Options{
		Cluster: app.Cluster{
			Client: c, Direct: c, Clients: k.clients, Version: k.version,
			PodSecurity: podsecurity.VersionOf(version.Major, version.Minor),
		},
		Engines: app.Engines{
			Applier: &apply.Applier{}, Releases: k.releases,
			Builder: &build.Builder{Clock: time.Now, Trials: trials.New("", "these manifests"), Log: logr.Discard()},
		},
		Tenants: app.Tenants{Limits: budget.Default(), Rendered: &usage.Rendered{}},
		Sources: sources, Steps: &step.Runner{Client: c, Events: &events.FakeRecorder{}, Clock: clock.RealClock{}}, Clock: clock.RealClock{},
	})
	sources.Start()
	return k, nil
}

// mayImpersonate reports whether the person may act as the deployers of projects, as administrators may.
func mayImpersonate(ctx context.Context, c client.Client) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "serviceaccounts", Name: v1alpha1.Deployer},
	}}
	if err := c.Create(ctx, review); err != nil {
		return false, fmt.Errorf("asking what you may do: %w", err)
	}
	return review.Status.Allowed, nil
}

// version returns the resourceVersion of a ConfigMap, Secret or Flux source; "" if there is none.
func (k *cluster) version(ctx context.Context, namespace, kind, name string) (string, error) {
	as, err := k.clients.As(namespace)
	if err != nil {
		return "", err
	}
	gvk := corev1.SchemeGroupVersion.WithKind(kind)
	if kind != inputs.ConfigMap && kind != inputs.Secret {
		mapping, err := as.RESTMapper().RESTMapping(schema.GroupKind{Group: sourcev1.GroupVersion.Group, Kind: kind})
		if err != nil {
			return "", err
		}
		gvk = mapping.GroupVersionKind
	}
	found, err := metadata.Read(ctx, as, gvk, client.ObjectKey{Namespace: namespace, Name: name})
	if found == nil || err != nil {
		return "", err
	}
	return found.GetResourceVersion(), nil
}
