// Package clusternet knows which addresses are the cluster's own: those of nodes, pods, Services and API servers. Nothing that tenants
// name may reach them by way of the operator, and no pod of theirs past the rules for pods.
//
// Most is learned from the cluster and kept up to date: the addresses of Nodes and their podCIDRs, the ServiceCIDRs, and where the API
// servers are. Where a network plugin gives pods other addresses than the podCIDRs of Nodes, as Calico and Cilium may, nothing in the
// API tells which. So unless administrators name the networks, every private network counts as the cluster's own.
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

// apiServers is the name of the EndpointSlice, in the namespace default, in which the API servers keep their addresses.
const apiServers = "kubernetes"

// Networks are those of one cluster. It is a Runnable that a manager has to start before anything asks; see GetCache. Safe for
// concurrent use.
type Networks struct {
	cache.Cache
	options Options

	mu      sync.Mutex
	known   *own
	changed []func()
}

// Options say what is not learned.
type Options struct {
	// Named are the networks of pods, Services and nodes as administrators know them. None: all of Private count as the cluster's own.
	Named, Private []netip.Prefix
	// Always are networks that no pod may reach in any cluster.
	Always []netip.Prefix
}

// New returns Networks that are learned over the connection; it needs to list and watch Nodes, ServiceCIDRs and the EndpointSlice
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
				AddFunc: func(any) { n.outdated() }, DeleteFunc: func(any) { n.outdated() },
				UpdateFunc: func(was, is any) {
					if !sameNode(was, is) {
						n.outdated()
					}
				},
			})
		}
		if err != nil {
			return nil, fmt.Errorf("watching %T for the cluster's networks: %w", object, err)
		}
	}
	return n, nil
}

// GetCache has a manager start this before everything that may ask, and wait for it: while the addresses of nodes are not known, none
// may be taken for safe.
func (n *Networks) GetCache() cache.Cache { return n.Cache }

// OnChange has f called when the networks that Except leaves out may be others than before. It must not block.
func (n *Networks) OnChange(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changed = append(n.changed, f)
}

// outdated has the networks looked up anew.
func (n *Networks) outdated() {
	n.mu.Lock()
	was := n.known
	n.known = nil
	changed := n.changed
	n.mu.Unlock()
	if was == nil {
		return // Nobody has asked since the last change.
	}
	if now, err := n.own(context.Background()); err == nil && now.equal(was) {
		return
	}
	for _, f := range changed {
		f()
	}
}

// What says what an address of the cluster's own is, such as "the address of a node"; "" for any other. It costs no request.
func (n *Networks) What(ctx context.Context, ip netip.Addr) (string, error) {
	known, err := n.own(ctx)
	if err != nil {
		return "", err
	}
	return known.what(ip), nil
}

// Except returns what is the cluster's own within a range, sorted; all says that it is the whole of it. It costs no request.
func (n *Networks) Except(ctx context.Context, within netip.Prefix) (except []netip.Prefix, all bool, err error) {
	known, err := n.own(ctx)
	if err != nil {
		return nil, false, err
	}
	except, all = known.except(within.Masked())
	return except, all, nil
}

// own is what is known now.
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

// slimNode keeps of a Node what is read here; there may be thousands, each with the list of its images.
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

// sameNode reports whether both are a Node with the same networks: it changes often, and they hardly ever.
func sameNode(was, is any) bool {
	before, ok := was.(*corev1.Node)
	after, also := is.(*corev1.Node)
	return ok && also && equality.Semantic.DeepEqual(before.Spec, after.Spec) && equality.Semantic.DeepEqual(before.Status, after.Status)
}
