package clusternet

import (
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// What the networks of a cluster are.
const (
	ofNode      = "the address of a node"
	ofPod       = "an address of pods"
	ofService   = "an address of Services"
	ofAPIServer = "an address of the API server"
	ofCluster   = "an address of the cluster's networks"
	ofPrivate   = "an address of a private network, where the cluster's own are"
	ofNobody    = "an address that no pod may reach"
)

// own are the networks of the cluster at one moment, each with what it is.
type own struct{ networks map[netip.Prefix]string }

// newOwn begins with what is known of every cluster and what administrators say; where they say nothing, with the private networks.
func newOwn(options Options) *own {
	o := &own{networks: map[netip.Prefix]string{}}
	if len(options.Named) == 0 {
		o.add(ofPrivate, options.Private)
	}
	o.add(ofNobody, options.Always)
	o.add(ofCluster, options.Named)
	return o
}

func (o *own) add(what string, networks []netip.Prefix) {
	for _, network := range networks {
		o.networks[network.Masked()] = what
	}
}

// learn adds what the API server says.
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

// network adds a range; what is none, such as the podCIDR of a Node that has none, is nobody's.
func (o *own) network(text, what string) {
	if network, err := netip.ParsePrefix(text); err == nil {
		o.networks[network.Masked()] = what
	}
}

// address adds one address; a Node may have names among its addresses.
func (o *own) address(text, what string) {
	if ip, err := netip.ParseAddr(text); err == nil {
		ip = ip.Unmap().WithZone("")
		o.networks[netip.PrefixFrom(ip, ip.BitLen())] = what
	}
}

// what says what an address is, by the smallest network that has it.
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

// coarse are the bits, of IPv4 and IPv6, to which networks are widened that come and go with nodes, so that what is left out of a large
// range does not change each time.
var coarse = map[string][2]int{ofNode: {24, 64}, ofPod: {16, 56}}

// except returns what is the cluster's own within a range, without what is within another, sorted; all says that all of it is. What is
// left out of a range that is larger than the coarse network of a node or of pods is that whole network. That every private network may
// be the cluster's own matters for larger ranges only: who names one, or a part of it, knows that others are in there.
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
