package controllers

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kubeop/kubeop/delivery/fetch/pool"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/reserved"
	"github.com/kubeop/kubeop/internal/clusternet"
)

// newNetworks returns the networks that are the cluster's own, which the manager learns before it starts the controllers, and the one by
// which sources are reached.
func newNetworks(mgr ctrl.Manager, mapper meta.RESTMapper, o Options) (*clusternet.Networks, *transport.Network, error) {
	own, err := clusternet.New(mgr.GetConfig(), mgr.GetHTTPClient(), mgr.GetScheme(), mapper, clusternet.Options{
		Named: o.ClusterNetworks, Private: reserved.Private(), Always: reserved.Metadata(),
	})
	if err == nil {
		err = errors.Join(mgr.Add(own), mgr.AddReadyzCheck("networks", func(*http.Request) error { return learned(own) }))
	}
	if err != nil {
		return nil, nil, err
	}
	if len(o.ClusterNetworks) == 0 {
		mgr.GetLogger().Info("CLUSTER_NETWORKS is not set, so every private network counts as the cluster's own: no source in one is reached " +
			"that ALLOWED_ADDRESSES does not name, and egress to larger ranges leaves them out")
	}
	return own, &transport.Network{
		Allowed: o.AllowedAddresses, Named: named(o), Cluster: own.What, Own: ownHosts(mgr.GetConfig(), o.OwnService), TokenServices: o.TokenServices,
	}, nil
}

// named are the hosts that settings name.
func named(o Options) []string {
	hosts := []string{pool.HostOf(o.Platform.URL)}
	for _, registry := range o.PlainRegistries {
		hosts = append(hosts, pool.HostOf("http://"+registry))
	}
	for registry, service := range o.TokenServices {
		hosts = append(hosts, pool.HostOf("https://"+registry), pool.HostOf("https://"+service))
	}
	return slices.DeleteFunc(hosts, func(host string) bool { return host == "" })
}

// learned reports an error until the cluster's networks are known: before that no controller is started.
func learned(own *clusternet.Networks) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if !own.WaitForCacheSync(ctx) {
		return errors.New("the cluster's networks are not known yet: may the operator list and watch nodes, servicecidrs and the endpointslice default/kubernetes?")
	}
	return nil
}

// ownHosts are those of the API server and of the operator's own Service.
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
