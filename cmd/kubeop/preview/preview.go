// Package preview renders apps as the operator would deliver them, with the operator's own packages and over a connection that it is given. It
// writes nothing.
package preview

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/go-logr/logr"
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
	"github.com/kubeop/kubeop/controllers/app/project"
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

// Options are what a Renderer works with.
type Options struct {
	// Config connects to the cluster as the deployers of projects, and Client as the person.
	Config *rest.Config
	Client client.Client
	// Folder returns the folder of an App.
	Folder func(*v1alpha1.App) (*folder.Folder, error)
	// Scratch is an empty folder.
	Scratch string
}

// Renderer renders Apps.
type Renderer struct {
	// Clients has the connections of the projects' deployers.
	Clients  *kube.Clients
	apps     *app.Reconciler
	releases *release.Engine
}

// New puts the operator's packages together. They stop when ctx ends.
func New(ctx context.Context, o Options) (*Renderer, error) {
	asked, err := discovery.NewDiscoveryClientForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	version, err := asked.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("asking for the cluster's version: %w", err)
	}
	served := memory.NewMemCacheClient(asked)
	mapper := kube.NewMapper(served)
	r := &Renderer{
		Clients:  kube.NewClients(o.Config, o.Client.Scheme(), mapper, kube.Deployers{PlatformApps: kube.PlatformAppsClusterAdmin}),
		releases: release.New(release.Options{Config: o.Config, Discovery: served, Mapper: mapper, Holder: "kubeop-preview"}),
	}
	everywhere := &transport.Network{Allowed: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}}
	stores := fetch.NewStores(filepath.Join(o.Scratch, "sources"), everywhere, time.Now)
	fetches := pool.New(pool.Options{Reach: pool.ReachOf}, clock.RealClock{})
	go func() { _ = fetches.Start(ctx) }() // It ends with ctx, without an error.
	sources := &source.Fetcher{
		Folder: func(_ context.Context, a *v1alpha1.App) (*folder.Folder, error) { return o.Folder(a) },
		Git:    stores.Git, Charts: stores.Charts, Artifacts: stores.Artifacts, Tags: image.NewStore(everywhere, time.Now, nil, apart.Runner{}),
		Answers: source.NewAnswers(fetches, clock.RealClock{}),
	}
	r.apps = app.New(app.Options{
		Cluster: app.Cluster{
			Client: o.Client, Direct: o.Client, Clients: r.Clients, Version: r.version,
			PodSecurity: podsecurity.VersionOf(version.Major, version.Minor),
		},
		Engines: app.Engines{
			Applier: &apply.Applier{}, Releases: r.releases,
			Builder: &build.Builder{Clock: time.Now, Trials: trials.New("", "these manifests"), Log: logr.Discard()},
		},
		Tenants: app.Tenants{Limits: budget.Default(), Rendered: &usage.Rendered{}},
		Sources: sources, Steps: &step.Runner{Client: o.Client, Events: &events.FakeRecorder{}, Clock: clock.RealClock{}}, Clock: clock.RealClock{},
	})
	sources.Start()
	return r, nil
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
