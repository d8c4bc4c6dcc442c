// Package network chooses the addresses of one cluster.
package network

import (
	"errors"
	"net/netip"
)

// Plan is the address space of one cluster, cut out of one /16 block.
type Plan struct {
	// Pods and Services are the ranges of pod addresses and Service cluster IPs.
	Pods, Services netip.Prefix
	// Host and Node are the two ends of the link between the host and a real node, LinkBits its prefix length.
	Host, Node netip.Addr
	LinkBits   int
}

// ErrNoBlock says that every block overlaps something the host already routes.
var ErrNoBlock = errors.New("no free address block: every candidate overlaps a route or an address of this host")

// Ranges are what all blocks are cut from, in the notation of NO_PROXY.
const Ranges = "10.0.0.0/8,172.16.0.0/12,198.18.0.0/15"

// blocks lists the first addresses of the candidate /16 blocks: the private ranges away from the defaults of the usual
// tools (10.42, 10.96 and 10.244 of other Kubernetes, 172.17 of Docker), then the benchmarking range of RFC 2544.
func blocks() []netip.Addr {
	var list []netip.Addr
	for second := 128; second < 224; second++ {
		list = append(list, netip.AddrFrom4([4]byte{10, byte(second)}))
	}
	for second := 20; second < 32; second++ {
		list = append(list, netip.AddrFrom4([4]byte{172, byte(second)}))
	}
	return append(list, netip.AddrFrom4([4]byte{198, 18}), netip.AddrFrom4([4]byte{198, 19}))
}

// Default is the plan of a cluster whose addresses the host never routes, so that several may share it.
func Default() Plan { return planOf(blocks()[0]) }

// Choose returns the plan of the first block that overlaps none of the used prefixes and that claim accepts. claim
// settles races between clusters starting at once.
func Choose(used []netip.Prefix, claim func(block netip.Addr) bool) (Plan, error) {
	for _, block := range blocks() {
		if !overlapsAny(netip.PrefixFrom(block, 16), used) && claim(block) {
			return planOf(block), nil
		}
	}
	return Plan{}, ErrNoBlock
}

func overlapsAny(block netip.Prefix, used []netip.Prefix) bool {
	for _, prefix := range used {
		if prefix.Bits() > 0 && prefix.Overlaps(block) {
			return true
		}
	}
	return false
}

func planOf(block netip.Addr) Plan {
	b := block.As4()
	at := func(third, fourth byte) netip.Addr { return netip.AddrFrom4([4]byte{b[0], b[1], third, fourth}) }
	return Plan{
		Pods:     netip.PrefixFrom(at(0, 0), 18),
		Services: netip.PrefixFrom(at(128, 0), 18),
		Host:     at(255, 1),
		Node:     at(255, 2),
		LinkBits: 30,
	}
}

// API is the cluster IP of the kubernetes Service: by definition the first of the range.
func (p Plan) API() netip.Addr { return p.Services.Addr().Next() }

// DNS is the cluster IP of the DNS Service, the tenth of the range by custom.
func (p Plan) DNS() netip.Addr {
	b := p.Services.Addr().As4()
	b[3] = 10
	return netip.AddrFrom4(b)
}

// Gateway is the address pods have as their next hop.
func (p Plan) Gateway() netip.Addr { return p.Pods.Addr().Next() }
