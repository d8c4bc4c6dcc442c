// Package clusternet knows the cluster's own addresses: those of nodes, pods, Services and API servers. URLs from tenants may not lead to
// them through the operator (SSRF), and egress rules of tenants may not include them.
//
// Most are learned from the cluster and kept up to date: the addresses and podCIDRs of Nodes, the ServiceCIDRs, and the addresses of the
// API servers. Some network plugins, such as Calico and Cilium, may give pods addresses outside of the podCIDRs, and the API does not show
// them. So unless administrators name the networks, every private network counts as the cluster's own.
package clusternet

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// apiServers is the name of the EndpointSlice in the namespace default that lists the API servers' addresses.
const apiServers = "kubernetes"

// Networks are the networks of one cluster. It is a Runnable that a manager must start before any use; see GetCache. Safe for concurrent
// use.
type Networks struct {
	cache.Cache
	options Options

	mu      sync.Mutex
	known   *own
	changed []func()
}

// Options are the networks that are not learned.
type Options struct {
	// Named are the networks of pods, Services and nodes that administrators configured. If there are none, all of Private count as the
	// cluster's own.
	Named, Private []netip.Prefix
	// Always are networks that no pod may reach in any cluster.
	Always []netip.Prefix
}

// New returns Networks that are learned through the connection. It needs to list and watch Nodes, ServiceCIDRs and the EndpointSlice
// default/kubernetes.
func New(config *rest.Config, shared *http.Client, scheme *runtime.Scheme, mapper meta.RESTMapper, o Options) (*Networks, error) {
	learned := map[client.Object]cache.ByObject{
		&corev1.Node{}: {Transform: slimNode},
		&discoveryv1.EndpointSlice{}: {Namespaces: map[string]cache.Config{
			metav1.NamespaceDefault: {FieldSelector: fields.OneTermEqualSelector("metadata.name", apiServers)},
		}},
		&networkingv1.ServiceCIDR{}: {},
	}
	objects, err := cache.New(config, cache.Options{
		HTTPClient: shared, Scheme: scheme, Mapper: mapper, ByObject: learned, DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache of the cluster's networks: %w", err)
	}
	n := &Networks{Cache: objects, options: o}
	for object := range learned {
		informer, err := objects.GetInformer(context.Background(), object, cache.BlockUntilSynced(false))
		if meta.IsNoMatchError(err) {
			continue // An API server before 1.33, or one that does not serve ServiceCIDRs.
		}
		if err == nil {
			_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
				AddFunc: func(any) { n.outdated() }, DeleteFunc: func(any) { n.outdated() }, UpdateFunc: n.updated,
			})
		}
		if err != nil {
			return nil, fmt.Errorf("watching %T for the cluster's networks: %w", object, err)
		}
	}
	return n, nil
}

// updated is called for each update of a learned object. Kubelets update their Node every few minutes without a change of its networks.
func (n *Networks) updated(was, is any) {
	if !sameNode(was, is) {
		n.outdated()
	}
}

// GetCache makes a manager start this before its users, and wait for it. No address may count as safe before the nodes' addresses are
// known.
func (n *Networks) GetCache() cache.Cache { return n.Cache }

// OnChange calls f when the result of Except may have changed. f must not block.
func (n *Networks) OnChange(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changed = append(n.changed, f)
}

// outdated recomputes the networks at the next use.
func (n *Networks) outdated() {
	n.mu.Lock()
	was := n.known
	n.known = nil
	changed := n.changed
	n.mu.Unlock()
	if was == nil {
		return // Nothing used the networks since the last change.
	}
	if now, err := n.own(context.Background()); err == nil && now.equal(was) {
		return
	}
	for _, f := range changed {
		f()
	}
}

// What describes an address of the cluster's own, such as "the address of a node". It returns "" for any other address. It makes no
// request.
func (n *Networks) What(ctx context.Context, ip netip.Addr) (string, error) {
	known, err := n.own(ctx)
	if err != nil {
		return "", err
	}
	return known.what(ip), nil
}

// Except returns the cluster's own networks within a range, sorted. all means that they are the whole range. It makes no request.
func (n *Networks) Except(ctx context.Context, within netip.Prefix) (except []netip.Prefix, all bool, err error) {
	known, err := n.own(ctx)
	if err != nil {
		return nil, false, err
	}
	except, all = known.except(within.Masked())
	return except, all, nil
}

// own returns the networks that are known now.
func (n *Networks) own(ctx context.Context) (*own, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known != nil {
		return n.known, nil
	}
	nodes, servers, services := &corev1.NodeList{}, &discoveryv1.EndpointSliceList{}, &networkingv1.ServiceCIDRList{}
	for _, list := range []client.ObjectList{nodes, servers, services} {
		if err := n.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil && !meta.IsNoMatchError(err) {
			return nil, fmt.Errorf("looking up the cluster's networks: %w", err)
		}
	}
	known := newOwn(n.options)
	known.learn(nodes.Items, servers.Items, services.Items)
	n.known = known
	return known, nil
}

// slimNode keeps only the used fields of a Node. There may be thousands of Nodes, each with a list of images.
func slimNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion},
		Spec:       corev1.NodeSpec{PodCIDR: node.Spec.PodCIDR, PodCIDRs: node.Spec.PodCIDRs},
		Status:     corev1.NodeStatus{Addresses: node.Status.Addresses},
	}, nil
}

// sameNode reports whether both versions of a Node have the same networks. A Node changes often, its networks rarely.
func sameNode(was, is any) bool {
	before, ok := was.(*corev1.Node)
	after, also := is.(*corev1.Node)
	return ok && also && equality.Semantic.DeepEqual(before.Spec, after.Spec) && equality.Semantic.DeepEqual(before.Status, after.Status)
}
