package isolation

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Allowed returns what NetworkPolicies of apps may open in a namespace: what Policy opens with these rules.
func Allowed(namespace string, policies v1alpha1.NetworkPolicies, rules Rules) *v1alpha1.AllowedNetwork {
	named := func(namespaces ...string) (all []map[string]string) {
		for _, name := range namespaces {
			all = append(all, map[string]string{nameLabel: name})
		}
		return all
	}
	allowed := &v1alpha1.AllowedNetwork{
		Policies: policies, From: slices.Concat(named(namespace), rules.Admitted, named(rules.From...)),
		To: []v1alpha1.AllowedPeers{
			{Namespaces: named(append([]string{namespace}, rules.To...)...)},
			{Namespaces: named(dnsNamespace), Ports: []v1alpha1.AllowedPorts{{Protocol: "UDP", Port: dnsPort, EndPort: dnsPort}, {Protocol: "TCP", Port: dnsPort, EndPort: dnsPort}}},
		},
	}
	if len(rules.Egress) == 0 {
		return allowed
	}
	outside := v1alpha1.AllowedPeers{}
	for _, r := range rules.Egress {
		outside.Ranges = append(outside.Ranges, v1alpha1.AllowedRange{CIDR: r.CIDR, Except: r.Except})
	}
	for _, p := range rules.Ports {
		outside.Ports = append(outside.Ports, v1alpha1.AllowedPorts{Protocol: string(p.Protocol), Port: p.First, EndPort: p.Last})
	}
	allowed.To = append(allowed.To, outside)
	return allowed
}

// Excess is something that a NetworkPolicy opens and may not.
type Excess struct {
	// Why says what it opens, in words that follow the policy's name.
	Why string
	// Allowed is what may be opened in its place; nothing if that is not to be listed.
	Allowed []string
}

// Narrow takes out of the spec of a NetworkPolicy what it opens beyond what is allowed, and returns that. It completes the exceptions of an ipBlock, and
// removes other peers, and rules of which no peer is left: a rule without peers would open everything. NetworkPolicies add up, so what is left opens
// nothing that the others do not.
//
// It allows what is provably allowed. Selectors of namespaces have to require the labels, or list names of namespaces.
func Narrow(spec *networkingv1.NetworkPolicySpec, allowed *v1alpha1.AllowedNetwork) []Excess {
	n := narrowing{allowed: allowed}
	var ingress []networkingv1.NetworkPolicyIngressRule
	for i, rule := range spec.Ingress {
		n.at = fmt.Sprintf("spec.ingress[%d]", i)
		if len(rule.From) == 0 {
			n.found = append(n.found, Excess{Why: "lets everybody connect, because " + n.at + " has no from"})
		}
		if rule.From = n.peers(rule.From, n.from); len(rule.From) > 0 {
			ingress = append(ingress, rule)
		}
	}
	var egress []networkingv1.NetworkPolicyEgressRule
	for i, rule := range spec.Egress {
		n.at = fmt.Sprintf("spec.egress[%d]", i)
		if len(rule.To) == 0 {
			n.found = append(n.found, Excess{Why: "lets pods connect to everything, because " + n.at + " has no to"})
		}
		to := func(peer *networkingv1.NetworkPolicyPeer) (*networkingv1.NetworkPolicyPeer, *Excess) {
			return n.to(peer, rule.Ports)
		}
		if rule.To = n.peers(rule.To, to); len(rule.To) > 0 {
			egress = append(egress, rule)
		}
	}
	spec.Ingress, spec.Egress = ingress, egress
	return n.found
}

// narrowing is one call of Narrow.
type narrowing struct {
	allowed *v1alpha1.AllowedNetwork
	// at is the rule that is looked at, such as "spec.egress[0]".
	at    string
	found []Excess
}

// peers returns what may stay of the peers of a rule. one returns what may stay of a peer, nil for nothing, and what was too much.
func (n *narrowing) peers(peers []networkingv1.NetworkPolicyPeer, one func(*networkingv1.NetworkPolicyPeer) (*networkingv1.NetworkPolicyPeer, *Excess)) (kept []networkingv1.NetworkPolicyPeer) {
	for i := range peers {
		if peers[i].IPBlock == nil && peers[i].NamespaceSelector == nil {
			kept = append(kept, peers[i]) // Pods of the same namespace.
			continue
		}
		peer, excess := one(&peers[i])
		if excess != nil {
			n.found = append(n.found, *excess)
		}
		if peer != nil {
			kept = append(kept, *peer)
		}
	}
	return kept
}

// from judges a peer that may connect to pods.
func (n *narrowing) from(peer *networkingv1.NetworkPolicyPeer) (*networkingv1.NetworkPolicyPeer, *Excess) {
	if peer.IPBlock != nil {
		return nil, &Excess{Why: "lets addresses connect in " + n.at + ", where only pods and namespaces are allowed: take ipBlock out in Git"}
	}
	if selectsOnly(peer.NamespaceSelector, n.allowed.From) {
		return peer, nil
	}
	return nil, &Excess{"lets pods of other namespaces connect in " + n.at + " than the namespaceSelector may select", described(n.allowed.From)}
}

// to judges a peer to which pods may connect at ports.
func (n *narrowing) to(peer *networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort) (*networkingv1.NetworkPolicyPeer, *Excess) {
	if peer.IPBlock != nil {
		return n.block(peer, ports)
	}
	var may []string
	for _, to := range n.allowed.To {
		if selectsOnly(peer.NamespaceSelector, to.Namespaces) && allPorts(ports, to.Ports) {
			return peer, nil
		}
		for _, one := range described(to.Namespaces) {
			may = append(may, one+atPorts(to.Ports))
		}
	}
	return nil, &Excess{"lets pods connect in " + n.at + " to other namespaces, or at other ports, than the namespaceSelector may select", may}
}

// block judges a range of addresses. It completes the exceptions if only they are missing.
func (n *narrowing) block(peer *networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort) (*networkingv1.NetworkPolicyPeer, *Excess) {
	block, err := netip.ParsePrefix(peer.IPBlock.CIDR)
	if err != nil || block.Addr().Is4In6() { // Plugins do not agree on what an IPv4 address in IPv6 means.
		return nil, &Excess{Why: "lets pods connect in " + n.at + " to an ipBlock that is no CIDR, such as 203.0.113.0/24: correct it in Git"}
	}
	var may, missing []string
	for _, to := range n.allowed.To {
		for _, r := range to.Ranges {
			may = append(may, r.CIDR+atPorts(to.Ports))
			lacks, inside := lacking(block, peer.IPBlock.Except, r)
			switch {
			case !inside || !allPorts(ports, to.Ports):
			case len(lacks) == 0:
				return peer, nil
			case missing == nil || len(lacks) < len(missing):
				missing = lacks
			}
		}
	}
	if missing == nil {
		return nil, &Excess{fmt.Sprintf("lets pods connect in %s to %s, or at ports there, which is not allowed", n.at, block), may}
	}
	completed := peer.DeepCopy()
	completed.IPBlock.Except = append(completed.IPBlock.Except, missing...)
	return completed, &Excess{fmt.Sprintf("lets pods connect in %s to %s without all of the exceptions that it needs in except", n.at, block), missing}
}

// lacking returns the exceptions of an allowed range that a block in it lacks. inside: the block is in the range, and not in an exception.
func lacking(block netip.Prefix, except []string, of v1alpha1.AllowedRange) (lacks []string, inside bool) {
	outer, err := netip.ParsePrefix(of.CIDR)
	if err != nil || !covers(outer, block) {
		return nil, false
	}
	for _, text := range of.Except {
		closed, err := netip.ParsePrefix(text)
		switch {
		case err != nil || covers(closed, block):
			return nil, false
		case covers(block, closed) && !slices.ContainsFunc(except, func(e string) bool { return contains(e, closed) }):
			lacks = append(lacks, text)
		}
	}
	return lacks, true
}

func contains(text string, inner netip.Prefix) bool {
	outer, err := netip.ParsePrefix(text)
	return err == nil && covers(outer, inner)
}

// selectsOnly reports whether a selector provably selects only namespaces with one of these sets of labels: it requires all labels of a set, or lists
// values of one label of which each is a set.
func selectsOnly(selector *metav1.LabelSelector, sets []map[string]string) bool {
	requires := func(key string, allowed func(value string) bool) bool {
		if value, ok := selector.MatchLabels[key]; ok && allowed(value) {
			return true
		}
		return slices.ContainsFunc(selector.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool {
			return e.Key == key && e.Operator == metav1.LabelSelectorOpIn && len(e.Values) > 0 && !slices.ContainsFunc(e.Values, func(v string) bool { return !allowed(v) })
		})
	}
	return slices.ContainsFunc(sets, func(set map[string]string) bool {
		for key, value := range set {
			if !requires(key, func(v string) bool { return v == value }) {
				return false
			}
		}
		return len(set) > 0
	}) || requires(nameLabel, func(v string) bool {
		return slices.ContainsFunc(sets, func(set map[string]string) bool { return len(set) == 1 && set[nameLabel] == v && v != "" })
	})
}

// allPorts reports whether all of the ports of a rule are allowed. A rule without ports has all of them, and so has what is allowed.
func allPorts(ports []networkingv1.NetworkPolicyPort, allowed []v1alpha1.AllowedPorts) bool {
	if len(allowed) == 0 {
		return true
	}
	return len(ports) > 0 && !slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool {
		if p.Port == nil || p.Port.Type != intstr.Int { // A name stands for any number in pods.
			return true
		}
		one := Ports{corev1.ProtocolTCP, p.Port.IntVal, p.Port.IntVal}
		if p.Protocol != nil {
			one.Protocol = *p.Protocol
		}
		if p.EndPort != nil {
			one.Last = *p.EndPort
		}
		return !slices.ContainsFunc(allowed, func(a v1alpha1.AllowedPorts) bool {
			return Ports{corev1.Protocol(a.Protocol), a.Port, a.EndPort}.covers(one)
		})
	})
}

// Lines says what NetworkPolicies may open, a line each.
func Lines(network *v1alpha1.AllowedNetwork) (all []string) {
	for _, from := range described(network.From) {
		all = append(all, "from pods of namespaces with "+from)
	}
	for _, to := range network.To {
		for _, namespaces := range described(to.Namespaces) {
			all = append(all, "to pods of namespaces with "+namespaces+atPorts(to.Ports))
		}
		for _, r := range to.Ranges {
			line := "to " + r.CIDR
			if len(r.Except) > 0 {
				line += " except " + strings.Join(r.Except, ", ")
			}
			all = append(all, line+atPorts(to.Ports))
		}
	}
	return all
}

// described returns sets of labels as text, such as "kubernetes.io/metadata.name=kube-system".
func described(sets []map[string]string) (all []string) {
	for _, set := range sets {
		all = append(all, metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: set}))
	}
	return all
}

// atPorts returns ports as text that follows a peer; "" for all.
func atPorts(ports []v1alpha1.AllowedPorts) (text string) {
	for _, p := range ports {
		text += fmt.Sprintf(" %s %d", p.Protocol, p.Port)
		if p.EndPort > p.Port {
			text += fmt.Sprintf("-%d", p.EndPort)
		}
	}
	if text != "" {
		text = " at" + text
	}
	return text
}
