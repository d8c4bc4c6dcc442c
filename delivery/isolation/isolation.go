// Package isolation builds the network policy of a project, which refuses all connections that no rule allows.
package isolation

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	meta "k8s.io/client-go/applyconfigurations/meta/v1"
	networking "k8s.io/client-go/applyconfigurations/networking/v1"
)

// Rules are the connections that a project's pods may have with peers outside of the project.
type Rules struct {
	// IngressNamespace is the namespace of the ingress controller, which may reach all pods; "" means that no ingress controller may.
	IngressNamespace string
	// Egress are the address ranges pods may connect to, at Ports; at every port if Ports has none.
	Egress []Range
	Ports  []Ports
}

// Range is a range of addresses, except some ranges within it, each as a CIDR.
type Range struct {
	CIDR   string
	Except []string
}

// name of the policy.
const name = "kubeop"

// nameLabel is the label with the namespace's name. The API server sets it, and it cannot be forged.
const nameLabel = "kubernetes.io/metadata.name"

// Policy returns a project's network policy. It selects every pod of the namespace, for both directions, so that only connections that one
// of its rules allows are possible. One policy has all rules, because each of a thousand projects has one, which the API server stores and
// the network plugin evaluates.
func Policy(namespace string, labels map[string]string, rules Rules) *networking.NetworkPolicyApplyConfiguration {
	within := networking.NetworkPolicyPeer().WithPodSelector(meta.LabelSelector())
	spec := networking.NetworkPolicySpec().WithPodSelector(meta.LabelSelector()).
		WithPolicyTypes(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress).
		WithIngress(networking.NetworkPolicyIngressRule().WithFrom(within)).
		WithEgress(networking.NetworkPolicyEgressRule().WithTo(within), dns())
	if rules.IngressNamespace != "" {
		spec.WithIngress(networking.NetworkPolicyIngressRule().WithFrom(inNamespace(rules.IngressNamespace)))
	}
	if len(rules.Egress) > 0 { // A rule without peers would allow everything.
		spec.WithEgress(to(rules.Egress, rules.Ports))
	}
	return networking.NetworkPolicy(name, namespace).WithLabels(labels).WithSpec(spec)
}

// dns lets pods query the cluster's DNS, which runs in kube-system everywhere.
func dns() *networking.NetworkPolicyEgressRuleApplyConfiguration {
	rule := networking.NetworkPolicyEgressRule().WithTo(inNamespace("kube-system"))
	for _, protocol := range []corev1.Protocol{corev1.ProtocolUDP, corev1.ProtocolTCP} {
		rule.WithPorts(networking.NetworkPolicyPort().WithProtocol(protocol).WithPort(intstr.FromInt32(53)))
	}
	return rule
}

func to(ranges []Range, ports []Ports) *networking.NetworkPolicyEgressRuleApplyConfiguration {
	rule := networking.NetworkPolicyEgressRule()
	for _, r := range ranges {
		rule.WithTo(networking.NetworkPolicyPeer().WithIPBlock(networking.IPBlock().WithCIDR(r.CIDR).WithExcept(r.Except...)))
	}
	for _, p := range ports {
		port := networking.NetworkPolicyPort().WithProtocol(p.Protocol).WithPort(intstr.FromInt32(p.First))
		if p.Last > p.First {
			port.WithEndPort(p.Last)
		}
		rule.WithPorts(port)
	}
	return rule
}

func inNamespace(name string) *networking.NetworkPolicyPeerApplyConfiguration {
	return networking.NetworkPolicyPeer().WithNamespaceSelector(meta.LabelSelector().WithMatchLabels(map[string]string{nameLabel: name}))
}
