package plan

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/pod-security-admission/api"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app"
	"github.com/kubeop/kubeop/controllers/app/inputs"
	"github.com/kubeop/kubeop/controllers/app/project"
	"github.com/kubeop/kubeop/controllers/app/source"
	"github.com/kubeop/kubeop/controllers/hostclaims"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/build"
	"github.com/kubeop/kubeop/delivery/fetch"
	"github.com/kubeop/kubeop/delivery/fetch/cosign"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/fetch/image"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/metadata"
	"github.com/kubeop/kubeop/delivery/podsecurity"
	"github.com/kubeop/kubeop/delivery/release"
	"github.com/kubeop/kubeop/delivery/render/workload"
	"github.com/kubeop/kubeop/delivery/trials"
)

// Folders returns the folder of an App.
type Folders func(*v1alpha1.App) (*folder.Folder, error)

// Environment is what a Renderer works with.
type Environment struct {
	Cluster
	Sources
	// Apart evaluates the input of tenants in another process, and KeyService connects to the key services that they name.
	Apart      apart.Runner
	KeyService func(origin *url.URL, ca []byte) (*http.Client, error)
	// Limits are for tenants without limits of their own.
	Limits budget.Limits
	// Gateway and IngressClass are those of app.Options.
	Gateway      workload.Gateway
	IngressClass string
}

// Cluster is the access to the API server.
type Cluster struct {
	// Config connects as the deployers of projects, and Client reads what the Reconcile of an App reads as itself.
	Config *rest.Config
	Client client.Client
	// Deployers are the names of the deployers.
	Deployers kube.Deployers
	// Discovery and Mapper know the kinds that are served.
	Discovery discovery.CachedDiscoveryInterface
	Mapper    meta.RESTMapper
	// PodSecurity is the version of the Pod Security checks.
	PodSecurity api.Version
}

// Sources are the stores of what is fetched, and the pool that fetches.
type Sources struct {
	Stores  *fetch.Stores
	Tags    *image.Store
	Fetches *pool.Pool
	Cosign  *cosign.Verifier
}

// Renderer renders Apps.
type Renderer struct {
	// Clients has the connections of the projects' deployers.
	Clients  *kube.Clients
	apps     *app.Reconciler
	releases *release.Engine
}

// Local returns an Environment of a person, in this process. scratch is an empty folder. It ends with ctx.
func Local(ctx context.Context, config *rest.Config, c client.Client, scratch string) (Environment, error) {
	asked, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return Environment{}, fmt.Errorf("connecting to the cluster: %w", err)
	}
	version, err := asked.ServerVersion()
	if err != nil {
		return Environment{}, fmt.Errorf("asking for the cluster's version: %w", err)
	}
	served := memory.NewMemCacheClient(asked)
	everywhere := &transport.Network{Allowed: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}}
	fetches := pool.New(pool.Options{Reach: pool.ReachOf}, clock.RealClock{})
	go func() { _ = fetches.Start(ctx) }() // It ends with ctx, without an error.
	return Environment{
		Cluster: Cluster{
			Config: config, Client: c, Deployers: kube.Deployers{PlatformApps: kube.PlatformAppsClusterAdmin}, Discovery: served, Mapper: kube.NewMapper(served),
			PodSecurity: podsecurity.VersionOf(version.Major, version.Minor),
		},
		Sources: Sources{
			Stores: fetch.NewStores(filepath.Join(scratch, "sources"), everywhere, clock.RealClock{}.Now), Fetches: fetches,
			Tags: image.NewStore(everywhere, clock.RealClock{}.Now, nil, apart.Runner{}), Cosign: cosign.NewVerifier(everywhere, nil, nil),
		},
		Limits: budget.Default(),
	}, nil
}

// NewRenderer puts the operator's packages together.
func NewRenderer(e Environment, folders Folders) *Renderer {
	r := &Renderer{
		Clients:  kube.NewClients(e.Config, e.Client.Scheme(), e.Mapper, e.Deployers),
		releases: release.New(release.Options{Config: e.Config, Discovery: e.Discovery, Mapper: e.Mapper, Holder: "kubeop-preview", Apart: e.Apart}),
	}
	sources := &source.Fetcher{
		Folder: func(_ context.Context, a *v1alpha1.App) (*folder.Folder, error) { return folders(a) },
		Git:    e.Stores.Git, Charts: e.Stores.Charts, Artifacts: e.Stores.Artifacts, Tags: e.Tags, Signatures: source.Signatures{Cosign: e.Cosign},
		Answers: source.NewAnswers(e.Fetches, clock.RealClock{}),
	}
	r.apps = app.New(app.Options{
		Cluster: app.Cluster{Client: e.Client, Direct: e.Client, Clients: r.Clients, Version: r.version, PodSecurity: e.PodSecurity},
		Engines: app.Engines{
			Applier: &apply.Applier{}, Releases: r.releases,
			Builder: &build.Builder{Apart: e.Apart, Services: e.KeyService, Now: clock.RealClock{}.Now, Trials: trials.New("", "these manifests"), Log: logr.Discard()},
		},
		Tenants: app.Tenants{Limits: e.Limits, Rendered: &usage.Rendered{}, Hosts: &hostclaims.Claims{}},
		Sources: sources, Steps: &step.Runner{Client: e.Client, Events: &events.FakeRecorder{}, Clock: clock.RealClock{}}, Clock: clock.RealClock{},
		Gateway: e.Gateway, IngressClass: e.IngressClass,
	})
	sources.Start()
	return r
}

// Render renders an App within its timeout. released is what a Helm App releases, and nil for other Apps. With an error, made may be nil.
func (r *Renderer) Render(ctx context.Context, a *v1alpha1.App, at project.Place) (made *app.Preview, released *release.Preview, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.Spec.Within())
	defer cancel()
	if made, err = r.apps.Preview(ctx, a, at); err == nil && made.Release != nil {
		released, err = r.releases.Preview(ctx, *made.Release)
	}
	return made, released, err
}

// Objects renders an App to its objects.
func (r *Renderer) Objects(ctx context.Context, a *v1alpha1.App, at project.Place) ([]*unstructured.Unstructured, error) {
	made, released, err := r.Render(ctx, a, at)
	switch {
	case err != nil:
		return nil, err
	case released != nil:
		return released.After, nil
	}
	return made.Objects, nil
}

// version returns the resourceVersion of a ConfigMap, Secret or Flux source; "" if there is none.
func (r *Renderer) version(ctx context.Context, namespace, kind, name string) (string, error) {
	as, err := r.Clients.As(namespace)
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
