package clusternet

import (
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

func prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func node(podCIDRs []string, addresses ...string) corev1.Node {
	n := corev1.Node{Spec: corev1.NodeSpec{PodCIDRs: podCIDRs}}
	for _, address := range addresses {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
	}
	return n
}

// cluster has two nodes in 10.0.1.0/24 and one elsewhere, pods of two families, Services and an API server.
func cluster(options Options) *own {
	o := newOwn(options)
	o.learn(
		[]corev1.Node{
			node([]string{"10.244.0.0/24", "fd00:244::/64"}, "10.0.1.5", "fd00:1::5", "node-1"), node([]string{"10.244.1.0/24"}, "10.0.1.6"),
			node(nil, "203.0.113.7"),
		},
		[]discoveryv1.EndpointSlice{{Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"198.51.100.9"}}}}},
		[]networkingv1.ServiceCIDR{{Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.96.0.0/12", "fd00:96::/112"}}}},
	)
	return o
}

var (
	always  = prefixes("169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128")
	private = prefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
)

func TestAnAddressIsDescribedByItsNetwork(t *testing.T) {
	unset, named := cluster(Options{Private: private, Always: always}), cluster(Options{Private: private, Always: always, Named: prefixes("10.244.0.0/16")})
	const node, pods, services, apiServer = "the address of a node", "an address of pods", "an address of Services", "an address of the API server"
	const privateOne = "an address of a private network, where the cluster's own are"
	for address, want := range map[string][2]string{
		"10.0.1.5": {node, node}, "203.0.113.7": {node, node}, "fd00:1::5": {node, node}, "10.244.1.9": {pods, pods},
		"fd00:244::9": {pods, pods}, "10.244.200.9": {privateOne, "an address of the cluster's networks"}, "10.96.0.1": {services, services},
		"198.51.100.9": {apiServer, apiServer}, "10.9.9.9": {privateOne, ""}, "192.168.1.1": {privateOne, ""}, "fd12::1": {privateOne, ""},
		"203.0.113.8": {"", ""}, "169.254.1.1": {"an address that no pod may reach", "an address that no pod may reach"}, "2001:db8::1": {"", ""},
	} {
		for i, o := range []*own{unset, named} {
			if got := o.what(netip.MustParseAddr(address)); got != want[i] {
				t.Errorf("%s is %q, want %q (networks named: %t)", address, got, want[i], i == 1)
			}
		}
	}
}

func TestExceptCutsTheClustersNetworksOutOfARange(t *testing.T) {
	named := Options{Private: private, Always: always, Named: prefixes("10.244.0.0/16", "10.0.1.0/24")}
	unset := Options{Private: private, Always: always}
	for name, c := range map[string]struct {
		options Options
		within  string
		want    []netip.Prefix
		all     bool
	}{
		"everything": {unset, "0.0.0.0/0", prefixes(
			"10.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "198.51.100.9/32", "203.0.113.0/24"), false},
		"everything, networks named": {named, "0.0.0.0/0", prefixes(
			"10.0.1.0/24", "10.96.0.0/12", "10.244.0.0/16", "169.254.0.0/16", "198.51.100.9/32", "203.0.113.0/24"), false},
		"everything of IPv6":               {unset, "::/0", prefixes("fc00::/7", "fe80::/10"), false},
		"everything of IPv6, named":        {named, "::/0", prefixes("fd00:1::/64", "fd00:96::/112", "fd00:244::/56", "fd00:ec2::254/128", "fe80::/10"), false},
		"a private network":                {unset, "10.0.0.0/8", prefixes("10.0.1.0/24", "10.96.0.0/12", "10.244.0.0/16"), false},
		"part of one":                      {unset, "10.9.0.0/16", nil, false},
		"a neighbour of nodes":             {unset, "10.0.1.9/32", nil, false},
		"the network of nodes":             {unset, "10.0.1.0/24", prefixes("10.0.1.5/32", "10.0.1.6/32"), false},
		"the network of nodes, named":      {named, "10.0.1.0/24", nil, true},
		"a node":                           {unset, "10.0.1.5/32", nil, true},
		"part of the pods":                 {unset, "10.244.0.0/25", nil, true},
		"a part of what the pods may have": {unset, "10.244.0.0/20", prefixes("10.244.0.0/24", "10.244.1.0/24"), false},
		"Services":                         {unset, "10.100.0.0/16", nil, true},
		"metadata":                         {named, "169.254.169.254/32", nil, true},
		"somewhere else":                   {unset, "198.51.100.0/29", nil, false},
		"with bits of a host":              {unset, "198.51.100.77/24", prefixes("198.51.100.9/32"), false},
	} {
		t.Run(name, func(t *testing.T) {
			got, all := cluster(c.options).except(netip.MustParsePrefix(c.within).Masked())
			if !slices.Equal(got, c.want) || all != c.all {
				t.Errorf("of %s %v are left out, all: %t; want %v, %t", c.within, got, all, c.want, c.all)
			}
		})
	}
}

// TestExceptStaysTheSameWhenNodesJoin: the exceptions of a large range do not change when nodes join a network of other nodes.
func TestExceptStaysTheSameWhenNodesJoin(t *testing.T) {
	options := Options{Always: always, Named: prefixes("10.96.0.0/12")}
	one, many := newOwn(options), newOwn(options)
	one.learn([]corev1.Node{node([]string{"10.244.7.0/24"}, "203.0.113.1")}, nil, nil)
	var nodes []corev1.Node
	for i := range 200 {
		nodes = append(nodes, node([]string{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(i), 0}), 24).String()},
			netip.AddrFrom4([4]byte{203, 0, 113, byte(i)}).String()))
	}
	many.learn(nodes, nil, nil)
	before, _ := one.except(netip.MustParsePrefix("0.0.0.0/0"))
	after, _ := many.except(netip.MustParsePrefix("0.0.0.0/0"))
	if !slices.Equal(before, after) {
		t.Errorf("of one node %v are left out, of 200 %v", before, after)
	}
}
