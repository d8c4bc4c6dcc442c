// Package isolation writes the network policies of a project: nothing goes in or out but what a rule lets through.
package isolation

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	meta "k8s.io/client-go/applyconfigurations/meta/v1"
	networking "k8s.io/client-go/applyconfigurations/networking/v1"
)

// Rules are what a project's pods may exchange with the world outside.
type Rules struct {
	// IngressNamespace holds the ingress controller, which may reach all pods; "" lets none in.
	IngressNamespace string
	// Egress are the address ranges pods may connect to.
	Egress []Range
}

// Range is a range of addresses but for some within it, each as a CIDR.
type Range struct {
	CIDR   string
	Except []string
}

type policy = networking.NetworkPolicyApplyConfiguration

// nameLabel is set by the API server on every namespace to its name, and cannot be forged.
const nameLabel = "kubernetes.io/metadata.name"

// Policies returns a project's policies. Their set is always the same; a rule that lets nothing through stays there,
// empty, so that what is allowed can be read from one place.
func Policies(namespace string, labels map[string]string, rules Rules) []*policy {
	return []*policy{
		named(namespace, labels, "kubeop-default-deny").WithSpec(forAll(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress)),
		named(namespace, labels, "kubeop-same-project").WithSpec(sameProject()),
		named(namespace, labels, "kubeop-dns").WithSpec(dns()),
		named(namespace, labels, "kubeop-ingress").WithSpec(fromIngress(rules.IngressNamespace)),
		named(namespace, labels, "kubeop-egress").WithSpec(toRanges(rules.Egress)),
	}
}

func named(namespace string, labels map[string]string, name string) *policy {
	return networking.NetworkPolicy(name, namespace).WithLabels(labels)
}

// forAll selects every pod of the namespace.
func forAll(types ...networkingv1.PolicyType) *networking.NetworkPolicySpecApplyConfiguration {
	return networking.NetworkPolicySpec().WithPodSelector(meta.LabelSelector()).WithPolicyTypes(types...)
}

func sameProject() *networking.NetworkPolicySpecApplyConfiguration {
	pods := networking.NetworkPolicyPeer().WithPodSelector(meta.LabelSelector())
	return forAll(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress).
		WithIngress(networking.NetworkPolicyIngressRule().WithFrom(pods)).
		WithEgress(networking.NetworkPolicyEgressRule().WithTo(pods))
}

// dns lets pods ask the cluster's DNS, which runs in kube-system everywhere.
func dns() *networking.NetworkPolicySpecApplyConfiguration {
	rule := networking.NetworkPolicyEgressRule().WithTo(inNamespace("kube-system"))
	for _, protocol := range []corev1.Protocol{corev1.ProtocolUDP, corev1.ProtocolTCP} {
		rule.WithPorts(networking.NetworkPolicyPort().WithProtocol(protocol).WithPort(intstr.FromInt32(53)))
	}
	return forAll(networkingv1.PolicyTypeEgress).WithEgress(rule)
}

func fromIngress(namespace string) *networking.NetworkPolicySpecApplyConfiguration {
	spec := forAll(networkingv1.PolicyTypeIngress)
	if namespace == "" {
		return spec
	}
	return spec.WithIngress(networking.NetworkPolicyIngressRule().WithFrom(inNamespace(namespace)))
}

func toRanges(ranges []Range) *networking.NetworkPolicySpecApplyConfiguration {
	spec := forAll(networkingv1.PolicyTypeEgress)
	if len(ranges) == 0 {
		return spec
	}
	rule := networking.NetworkPolicyEgressRule()
	for _, r := range ranges {
		rule.WithTo(networking.NetworkPolicyPeer().WithIPBlock(networking.IPBlock().WithCIDR(r.CIDR).WithExcept(r.Except...)))
	}
	return spec.WithEgress(rule)
}

func inNamespace(name string) *networking.NetworkPolicyPeerApplyConfiguration {
	return networking.NetworkPolicyPeer().WithNamespaceSelector(meta.LabelSelector().WithMatchLabels(map[string]string{nameLabel: name}))
}
