package isolation

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Reach is what pods may connect to: each of the ranges, at each of the ports.
type Reach struct {
	Ranges []netip.Prefix
	// Ports has no entry if every port is allowed.
	Ports []Ports
}

// Ports is a range of ports of a protocol, the last one included.
type Ports struct {
	Protocol    corev1.Protocol
	First, Last int32
}

// Strictest returns what all of the rules allow; nothing without rules. A range inside of another one stays: of a large range more is left out later, such
// as private networks, than of a small one that somebody named.
func Strictest(rules ...v1alpha1.EgressRules) (Reach, error) {
	var all Reach
	for i, rule := range rules {
		one, err := reachOf(rule)
		if err != nil {
			return Reach{}, err
		}
		if i == 0 {
			all = one
			continue
		}
		all.Ranges = distinct(shared(all.Ranges, one.Ranges, narrower))
		switch {
		case len(all.Ports) == 0:
			all.Ports = one.Ports
		case len(one.Ports) > 0:
			if all.Ports = shared(all.Ports, one.Ports, overlap); len(all.Ports) == 0 {
				return Reach{}, nil // No ports in a Reach would be every port.
			}
		}
	}
	return Reach{distinct(all.Ranges), outermost(all.Ports)}, nil
}

func reachOf(rule v1alpha1.EgressRules) (Reach, error) {
	var one Reach
	for _, text := range rule.CIDRs {
		within, err := netip.ParsePrefix(text)
		if err != nil {
			return Reach{}, fmt.Errorf("reading egress %q: %w", text, err)
		}
		one.Ranges = append(one.Ranges, within.Masked())
	}
	for _, p := range rule.Ports {
		one.Ports = append(one.Ports, Ports{corev1.Protocol(cmp.Or(p.Protocol, string(corev1.ProtocolTCP))), p.Port, max(p.Port, p.EndPort)})
	}
	return one, nil
}

// shared returns what two lists have in common.
func shared[T any](a, b []T, common func(T, T) (T, bool)) []T {
	var all []T
	for _, one := range a {
		for _, other := range b {
			if both, ok := common(one, other); ok {
				all = append(all, both)
			}
		}
	}
	return all
}

// narrower returns the smaller of two ranges that overlap: one of them is then inside of the other.
func narrower(a, b netip.Prefix) (netip.Prefix, bool) {
	if covers(a, b) {
		return b, true
	}
	return a, covers(b, a)
}

func overlap(a, b Ports) (Ports, bool) {
	both := Ports{a.Protocol, max(a.First, b.First), min(a.Last, b.Last)}
	return both, a.Protocol == b.Protocol && both.First <= both.Last
}

func covers(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}

func (p Ports) covers(inner Ports) bool {
	return p.Protocol == inner.Protocol && p.First <= inner.First && inner.Last <= p.Last
}

// outermost leaves out ports that another entry covers.
func outermost(list []Ports) []Ports {
	list = distinct(list)
	return slices.DeleteFunc(slices.Clone(list), func(p Ports) bool {
		return slices.ContainsFunc(list, func(other Ports) bool { return other != p && other.covers(p) })
	})
}

// distinct keeps the first of equal entries.
func distinct[T comparable](list []T) []T {
	var kept []T
	for _, one := range list {
		if !slices.Contains(kept, one) {
			kept = append(kept, one)
		}
	}
	return kept
}
