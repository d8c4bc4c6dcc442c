package isolation

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ClusterPolicyKind is the kind of the policies that no NetworkPolicy can override, in the version that ClusterPolicy writes
// (https://network-policy-api.sigs.k8s.io).
var ClusterPolicyKind = schema.GroupVersionKind{Group: "policy.networking.k8s.io", Version: "v1alpha2", Kind: "ClusterNetworkPolicy"}

// ErrTooManyRules means that connections need more rules than a ClusterNetworkPolicy may have.
var ErrTooManyRules = errors.New("a ClusterNetworkPolicy may have 25 rules about connections to others")

const (
	// priority of kubeop's policies in the Admin tier, from 0 to 1000, where 0 comes first. It is the last that OVN-Kubernetes knows, because what they pass to
	// NetworkPolicies is passed by all later policies of the tier: those of administrators have to come before. All of kubeop's have the same: each is about
	// the pods of one namespace, so never do two of them decide about the same side of a connection.
	priority = 99
	// most are how many rules, peers, networks of a peer and protocols the API allows.
	most = 25
)

// Actions: pass leaves a connection to the NetworkPolicies, deny refuses it whatever they say.
const (
	pass = "Pass"
	deny = "Deny"
)

// NewClusterPolicy returns a project's ClusterNetworkPolicy without its spec. It has the name of the project's namespace.
func NewClusterPolicy(namespace string, labels map[string]string) *unstructured.Unstructured {
	policy := &unstructured.Unstructured{}
	policy.SetGroupVersionKind(ClusterPolicyKind)
	policy.SetName(namespace)
	policy.SetLabels(labels)
	return policy
}

// ClusterPolicy returns a project's ClusterNetworkPolicy: it leaves to NetworkPolicies what Policy opens with these rules, and refuses all other
// connections with pods, and to addresses, so that no NetworkPolicy can open more. Connections from addresses it cannot refuse: the API has no such peer.
//
// Each project has one, because no rule of the API can say "the same namespace". An exception of a range has to be one of the ranges around it, too.
func ClusterPolicy(namespace string, labels map[string]string, rules Rules) (*unstructured.Unstructured, error) {
	outside, err := toAddresses(rules.Egress, protocolsOf(rules.Ports))
	if err != nil {
		return nil, err
	}
	from := append([]ClusterPeer{namespacesOf(append([]string{namespace}, rules.From...)...)}, labelledPeers(rules.Admitted)...)
	egress := []ClusterRule{
		{Name: "connected-projects", Action: pass, To: []ClusterPeer{namespacesOf(append([]string{namespace}, rules.To...)...)}},
		{Name: "dns", Action: pass, To: []ClusterPeer{namespacesOf(dnsNamespace)}, Protocols: protocolsOf([]Ports{
			{corev1.ProtocolUDP, dnsPort, dnsPort}, {corev1.ProtocolTCP, dnsPort, dnsPort},
		})},
		{Name: "other-pods", Action: deny, To: allPods()},
	}
	egress = append(append(egress, outside...), toNetworks("other-addresses", deny, []string{"0.0.0.0/0", "::/0"}, nil)...)
	if len(egress) > most {
		return nil, fmt.Errorf("%w, and these need %d", ErrTooManyRules, len(egress))
	}
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&ClusterPolicySpec{
		Tier: "Admin", Priority: priority, Subject: labelledPeers([]map[string]string{{nameLabel: namespace}})[0], Egress: egress,
		Ingress: []ClusterRule{{Name: "connected-projects", Action: pass, From: from}, {Name: "other-pods", Action: deny, From: allPods()}},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the ClusterNetworkPolicy of namespace %s: %w", namespace, err)
	}
	policy := NewClusterPolicy(namespace, labels)
	policy.Object["spec"] = spec
	return policy, nil
}

// toAddresses returns the rules about ranges of addresses. NetworkPolicies open what any range opens, but of these rules the first one counts. So those
// about ranges inside of others come first; of ranges that have no address in common, the exceptions come first.
func toAddresses(ranges []Range, protocols []ClusterProtocol) (all []ClusterRule, err error) {
	within := map[string]netip.Prefix{}
	for _, r := range ranges {
		if within[r.CIDR], err = netip.ParsePrefix(r.CIDR); err != nil {
			return nil, fmt.Errorf("reading the range %q: %w", r.CIDR, err)
		}
	}
	for left := ranges; len(left) > 0; {
		around := func(r Range) bool { // It has another range inside.
			return slices.ContainsFunc(left, func(other Range) bool {
				return within[other.CIDR] != within[r.CIDR] && covers(within[r.CIDR], within[other.CIDR])
			})
		}
		var outer []Range
		var closed, open []string
		for _, r := range left {
			if around(r) {
				outer = append(outer, r)
				continue
			}
			closed, open = append(closed, r.Except...), append(open, r.CIDR)
		}
		all = append(append(all, toNetworks("closed-addresses", deny, closed, nil)...), toNetworks("open-addresses", pass, open, protocols)...)
		left = outer
	}
	return all, nil
}

// toNetworks returns rules about connections to networks, at all ports without protocols.
func toNetworks(name, action string, networks []string, protocols []ClusterProtocol) (all []ClusterRule) {
	var peers []ClusterPeer
	for some := range slices.Chunk(distinct(networks), most) {
		peers = append(peers, ClusterPeer{Networks: some})
	}
	at := slices.Collect(slices.Chunk(protocols, most))
	if len(at) == 0 {
		at = [][]ClusterProtocol{nil}
	}
	for to := range slices.Chunk(peers, most) {
		for _, some := range at {
			all = append(all, ClusterRule{Name: name, Action: action, To: to, Protocols: some})
		}
	}
	return all
}

func protocolsOf(ports []Ports) (all []ClusterProtocol) {
	for _, p := range ports {
		at := &ClusterPorts{&ClusterPort{Number: p.First}}
		if p.Last > p.First {
			at = &ClusterPorts{&ClusterPort{Range: &ClusterPortRange{p.First, p.Last}}}
		}
		switch p.Protocol {
		case corev1.ProtocolUDP:
			all = append(all, ClusterProtocol{UDP: at})
		case corev1.ProtocolSCTP:
			all = append(all, ClusterProtocol{SCTP: at})
		default:
			all = append(all, ClusterProtocol{TCP: at})
		}
	}
	return all
}

// allPods are all pods of the cluster that have an address of their own.
func allPods() []ClusterPeer { return []ClusterPeer{{Namespaces: &metav1.LabelSelector{}}} }

// namespacesOf returns the pods of namespaces with these names.
func namespacesOf(names ...string) ClusterPeer {
	return ClusterPeer{Namespaces: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: nameLabel, Operator: metav1.LabelSelectorOpIn, Values: names},
	}}}
}

// labelledPeers returns the pods of namespaces with these labels.
func labelledPeers(namespaces []map[string]string) (all []ClusterPeer) {
	for _, marks := range namespaces {
		all = append(all, ClusterPeer{Namespaces: &metav1.LabelSelector{MatchLabels: marks}})
	}
	return all
}
