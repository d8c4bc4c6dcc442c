// Package network chooses the addresses of one cluster.
package network

import (
	"errors"
	"net/netip"
)

// Plan is the address space of one cluster, which is part of one /16 block.
type Plan struct {
	// Pods and Services are the ranges of pod addresses and Service cluster IPs.
	Pods, Services netip.Prefix
	// Host and Node are the addresses of the link between the host and a real node. LinkBits is its prefix length.
	Host, Node netip.Addr
	LinkBits   int
}

// ErrNoBlock means that every block overlaps a route or an address of the host.
var ErrNoBlock = errors.New("no free address block: every candidate overlaps a route or an address of this host")

// Ranges contain all blocks, in the format of NO_PROXY.
const Ranges = "10.0.0.0/8,172.16.0.0/12,198.18.0.0/15"

// blocks returns the first addresses of the candidate /16 blocks: private ranges without the defaults of common tools (10.42, 10.96 and 10.244
// of other Kubernetes clusters, 172.17 of Docker), then the benchmarking range of RFC 2544.
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

// Default returns the plan of a cluster without routes on the host. Several clusters may use it.
func Default() Plan { return planOf(blocks()[0]) }

// Choose returns the plan of the first block that overlaps none of the used prefixes and that claim accepts. claim prevents that two clusters
// that start at the same time choose the same block.
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

// API returns the cluster IP of the kubernetes Service, which is always the first of the range.
func (p Plan) API() netip.Addr { return p.Services.Addr().Next() }

// DNS returns the cluster IP of the DNS Service, by convention the tenth of the range.
func (p Plan) DNS() netip.Addr {
	b := p.Services.Addr().As4()
	b[3] = 10
	return netip.AddrFrom4(b)
}

// Gateway returns the address of the pods' gateway.
func (p Plan) Gateway() netip.Addr { return p.Pods.Addr().Next() }
