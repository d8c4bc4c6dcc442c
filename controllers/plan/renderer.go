package plan

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/pod-security-admission/api"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/project"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fetch"
	"github.com/kubeop/kubeop/delivery/fetch/cosign"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/fetch/image"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/podsecurity"
	"github.com/kubeop/kubeop/delivery/release"
	"github.com/kubeop/kubeop/delivery/render/workload"
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
	// Gateway and IngressClass have the same meaning as in app.Options.
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

// NewRenderer returns a Renderer for Apps whose folders folders returns. A program passes in render.New, which runs the steps of the App controller.
type NewRenderer func(e Environment, folders Folders) *Renderer

// Renderer renders Apps.
type Renderer struct {
	// Clients has the connections of the projects' deployers.
	Clients *kube.Clients
	// Render renders an App within its timeout. With an error, the result still masks secrets.
	Render func(ctx context.Context, a *v1alpha1.App, at project.Place) (*Rendered, error)
}

// Rendered is what an App is rendered to.
type Rendered struct {
	*subject.Subject
	// Revision names the source.
	Revision string
	// Objects are the objects to apply, checked and labelled. Release is what a Helm App releases, which has no Objects.
	Objects []*unstructured.Unstructured
	Release *release.Preview
}

// Declared returns the objects that the App declares; none of an App that was not rendered.
func (r *Rendered) Declared() []*unstructured.Unstructured {
	switch {
	case r == nil:
		return nil
	case r.Release != nil:
		return r.Release.After
	}
	return r.Objects
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
