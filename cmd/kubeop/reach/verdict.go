package reach

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mattfenwick/cyclonus/pkg/matcher"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// port is where a connection goes to. name is the port's name in the pod that is connected to; "" for none.
type port struct {
	number   int
	name     string
	protocol corev1.Protocol
}

func (p port) String() string { return fmt.Sprintf("%s %d", p.protocol, p.number) }

// verdict is what the NetworkPolicies of one side say about a connection.
type verdict struct {
	allowed bool
	// why names the policies and rules that decide.
	why string
}

// outside is the verdict for a side that no NetworkPolicy is about.
var outside = verdict{true, "no NetworkPolicy is about it, because it is no pod with an address of its own"}

// ingressOf returns what the policies in the namespace of the pod that is connected to say.
func ingressOf(policies []networkingv1.NetworkPolicy, from, to *matcher.TrafficPeer, at port) verdict {
	return judge(policies, networkingv1.PolicyTypeIngress, to, func(policy *networkingv1.NetworkPolicy) (rules []string) {
		for i, rule := range policy.Spec.Ingress {
			if allows(policy.Namespace, rule.Ports, rule.From, from, at) {
				rules = append(rules, fmt.Sprintf("spec.ingress[%d]", i))
			}
		}
		return rules
	})
}

// egressOf returns what the policies in the namespace of the pod that connects say.
func egressOf(policies []networkingv1.NetworkPolicy, from, to *matcher.TrafficPeer, at port) verdict {
	return judge(policies, networkingv1.PolicyTypeEgress, from, func(policy *networkingv1.NetworkPolicy) (rules []string) {
		for i, rule := range policy.Spec.Egress {
			if allows(policy.Namespace, rule.Ports, rule.To, to, at) {
				rules = append(rules, fmt.Sprintf("spec.egress[%d]", i))
			}
		}
		return rules
	})
}

// judge returns what policies say about a pod, of which allowing returns the rules that allow the connection. Policies add up: one rule is enough.
func judge(policies []networkingv1.NetworkPolicy, direction networkingv1.PolicyType, pod *matcher.TrafficPeer, allowing func(*networkingv1.NetworkPolicy) []string) verdict {
	if pod.IsExternal() {
		return outside
	}
	var selecting, deciding []string
	for i := range policies {
		policy := &policies[i]
		target := &matcher.Target{Namespace: policy.Namespace, PodSelector: policy.Spec.PodSelector}
		if !slices.Contains(policy.Spec.PolicyTypes, direction) || !target.IsMatch(pod.Internal.Namespace, pod.Internal.PodLabels) {
			continue
		}
		name := "NetworkPolicy " + policy.Namespace + "/" + policy.Name
		selecting = append(selecting, name)
		if rules := allowing(policy); len(rules) > 0 {
			deciding = append(deciding, name+": "+strings.Join(rules, ", "))
		}
	}
	switch {
	case len(selecting) == 0:
		return verdict{true, "no NetworkPolicy selects the pod"}
	case len(deciding) == 0:
		return verdict{false, "no rule allows it of " + strings.Join(selecting, ", ")}
	}
	return verdict{true, strings.Join(deciding, "; ")}
}

// allows reports whether a rule has the other side among its peers, and the port. Of a pod without an address it is not known whether it is in a range of
// addresses; it counts as outside of all.
func allows(namespace string, ports []networkingv1.NetworkPolicyPort, peers []networkingv1.NetworkPolicyPeer, other *matcher.TrafficPeer, at port) bool {
	for _, peer := range matcher.BuildPeerMatcher(namespace, ports, peers) {
		if _, byAddress := peer.(*matcher.IPPeerMatcher); byAddress && other.IP == "" {
			continue
		}
		if peer.Allows(other, at.number, at.name, at.protocol) {
			return true
		}
	}
	return false
}
