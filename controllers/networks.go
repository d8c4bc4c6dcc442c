package controllers

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kubeop/kubeop/controllers/pullrequest"
	"github.com/kubeop/kubeop/controllers/report"
	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/fetch"
	"github.com/kubeop/kubeop/delivery/fetch/cosign"
	"github.com/kubeop/kubeop/delivery/fetch/pack"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/reserved"
	gitreport "github.com/kubeop/kubeop/gitops/report"
	"github.com/kubeop/kubeop/internal/clusternet"
)

// sources holds the network access to sources, and their stores.
type sources struct {
	// own are the networks of the cluster, which the manager learns before it starts the controllers. network is the network access to
	// sources.
	own     *clusternet.Networks
	network *transport.Network
	// cosign verifies signatures.
	cosign  *cosign.Verifier
	fetches *pool.Pool
	stores  *fetch.Stores
	// reporter finds the commit statuses that Git hosts should get, notifier the notifications that receivers of tenants should get, and
	// reports sends both.
	reporter *report.Reporter
	notifier *report.Notifier
	reports  *gitreport.Queue
	// plans plans the pull requests of Repositories.
	plans *pool.Pool
}

func newSources(mgr ctrl.Manager, mapper meta.RESTMapper, o Options, weight func(tenant string) int) (*sources, error) {
	own, err := clusternet.New(mgr.GetConfig(), mgr.GetHTTPClient(), mgr.GetScheme(), mapper, clusternet.Options{
		Named: o.ClusterNetworks, Private: reserved.Private(), Always: reserved.Metadata(),
	})
	if err != nil {
		return nil, err
	}
	if len(o.ClusterNetworks) == 0 {
		mgr.GetLogger().Info("CLUSTER_NETWORKS is not set, so every private network counts as the cluster's own: no source in one is reached " +
			"that ALLOWED_ADDRESSES does not name, and egress to larger ranges leaves them out")
	}
	trusted, err := cosign.TrustedRoot(o.TrustedRoot)
	if err != nil {
		return nil, err
	}
	network := &transport.Network{
		Allowed: o.AllowedAddresses, Named: named(o), Cluster: own.What, Own: ownHosts(mgr.GetConfig(), o.OwnService), TokenServices: o.TokenServices,
	}
	return &sources{
		own: own, network: network, cosign: cosign.NewVerifier(network, o.PlainRegistries, trusted), fetches: pool.New(pool.Options{Reach: pool.ReachOf, Weight: weight}, realClock),
		reports: gitreport.NewQueue(realClock, weight), plans: pullrequest.NewPlans(realClock, weight),
		stores: fetch.NewStores(o.DataDir, network, realClock.Now, o.FluxArtifactHosts...),
	}, nil
}

// bound makes packs be parsed in a sandbox, and sets the limits of each tenant's stores.
func (s *sources) bound(limits *limits, apart apart.Runner) {
	s.stores.Unpack(pack.Reader{Apart: apart})
	s.stores.Limit(func(tenant string) fetch.Bounds {
		limits := limits.of(tenant)
		return fetch.Bounds{Kept: limits.SourceBytes, Inflated: limits.PackBytes}
	})
}

// networksLearned reports an error until the cluster's networks are known. No controller starts before that.
func (s *sources) networksLearned(*http.Request) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if !s.own.WaitForCacheSync(ctx) {
		return errors.New("the cluster's networks are not known yet: may the operator list and watch nodes, servicecidrs and the endpointslice default/kubernetes?")
	}
	return nil
}

// keyService returns an HTTP client for a key service of apps. Tenants name key services, so the same rules apply as for sources.
func (s *sources) keyService(origin *url.URL, ca []byte) (*http.Client, error) {
	return transport.NewClient(s.network, transport.Auth{CA: ca}, origin)
}

// named are the hosts that the operator's settings name.
func named(o Options) []string {
	hosts := []string{transport.HostOf(o.Platform.URL)}
	for _, registry := range o.PlainRegistries {
		hosts = append(hosts, transport.HostOf("http://"+registry))
	}
	for registry, service := range o.TokenServices {
		hosts = append(hosts, transport.HostOf("https://"+registry), transport.HostOf("https://"+service))
	}
	return slices.DeleteFunc(hosts, func(host string) bool { return host == "" })
}

// ownHosts are the hosts of the API server and of the operator's own Service.
func ownHosts(config *rest.Config, service string) []string {
	var hosts []string
	if at, _, err := rest.DefaultServerUrlFor(config); err == nil {
		hosts = append(hosts, at.Hostname())
	}
	if service != "" {
		hosts = append(hosts, service)
	}
	return hosts
}
