package clusternet

import (
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// Descriptions of the cluster's networks.
const (
	ofNode      = "the address of a node"
	ofPod       = "an address of pods"
	ofService   = "an address of Services"
	ofAPIServer = "an address of the API server"
	ofCluster   = "an address of the cluster's networks"
	ofPrivate   = "an address of a private network, where the cluster's own are"
	ofNoPod     = "an address that no pod may reach"
)

// own are the cluster's networks at one time, each with its description.
type own struct{ networks map[netip.Prefix]string }

// newOwn returns the networks of every cluster and those that administrators named. If they named none, it includes the private networks.
func newOwn(options Options) *own {
	o := &own{networks: map[netip.Prefix]string{}}
	if len(options.Named) == 0 {
		o.add(ofPrivate, options.Private)
	}
	o.add(ofNoPod, options.Always)
	o.add(ofCluster, options.Named)
	return o
}

func (o *own) add(what string, networks []netip.Prefix) {
	for _, network := range networks {
		o.networks[network.Masked()] = what
	}
}

// learn adds the networks that the API server reports.
func (o *own) learn(nodes []corev1.Node, servers []discoveryv1.EndpointSlice, services []networkingv1.ServiceCIDR) {
	for i := range services {
		for _, cidr := range services[i].Spec.CIDRs {
			o.network(cidr, ofService)
		}
	}
	for i := range nodes {
		for _, cidr := range append([]string{nodes[i].Spec.PodCIDR}, nodes[i].Spec.PodCIDRs...) {
			o.network(cidr, ofPod)
		}
		for _, at := range nodes[i].Status.Addresses {
			o.address(at.Address, ofNode)
		}
	}
	for i := range servers {
		for _, endpoint := range servers[i].Endpoints {
			for _, at := range endpoint.Addresses {
				o.address(at, ofAPIServer)
			}
		}
	}
}

// network adds a range. Invalid ranges, such as the empty podCIDR of a Node, are ignored.
func (o *own) network(text, what string) {
	if network, err := netip.ParsePrefix(text); err == nil {
		o.networks[network.Masked()] = what
	}
}

// address adds one address. A Node's addresses may include host names, which are ignored.
func (o *own) address(text, what string) {
	if ip, err := netip.ParseAddr(text); err == nil {
		ip = ip.Unmap().WithZone("")
		o.networks[netip.PrefixFrom(ip, ip.BitLen())] = what
	}
}

// what returns the description of the smallest network that contains the address.
func (o *own) what(ip netip.Addr) string {
	what, bits := "", -1
	for network, is := range o.networks {
		if network.Bits() > bits && network.Contains(ip) {
			what, bits = is, network.Bits()
		}
	}
	return what
}

func (o *own) equal(other *own) bool { return maps.Equal(o.networks, other.networks) }

// coarse are the prefix lengths, of IPv4 and IPv6, to which the networks of nodes and pods are widened. So the exceptions of a large range
// do not change with every node.
var coarse = map[string][2]int{ofNode: {24, 64}, ofPod: {16, 56}}

// except returns the cluster's own networks within a range, sorted and without those inside another. all means that they are the whole range. In a
// range larger than the coarse network, the whole coarse network of a node or of pods is returned. The private networks count for larger
// ranges only: a rule that names a private network, or a part of one, does so on purpose.
func (o *own) except(within netip.Prefix) (except []netip.Prefix, all bool) {
	found := map[netip.Prefix]bool{}
	for network, what := range o.networks {
		if network.Addr().Is4() != within.Addr().Is4() || !network.Overlaps(within) {
			continue
		}
		switch {
		case network.Bits() > within.Bits():
		case what == ofPrivate:
			continue
		default:
			return nil, true
		}
		if wide := widened(network, what); wide.Bits() > within.Bits() {
			network = wide
		}
		found[network] = true
	}
	byWidth := slices.SortedFunc(maps.Keys(found), func(a, b netip.Prefix) int { return a.Bits() - b.Bits() })
	for _, network := range byWidth {
		if !slices.ContainsFunc(except, network.Overlaps) {
			except = append(except, network)
		}
	}
	slices.SortFunc(except, netip.Prefix.Compare)
	return except, false
}

func widened(network netip.Prefix, what string) netip.Prefix {
	bits, widens := coarse[what]
	if !widens {
		return network
	}
	to := bits[1]
	if network.Addr().Is4() {
		to = bits[0]
	}
	if to >= network.Bits() {
		return network
	}
	return netip.PrefixFrom(network.Addr(), to).Masked()
}
