// Package isolation builds the network policy of a project, which refuses all connections that no rule allows.
package isolation

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	meta "k8s.io/client-go/applyconfigurations/meta/v1"
	networking "k8s.io/client-go/applyconfigurations/networking/v1"
)

// Rules are the connections that a project's pods may have with peers outside of the project.
type Rules struct {
	// Admitted are labels of namespaces whose pods may reach all pods, such as those of the ingress controller and of monitoring.
	Admitted []map[string]string
	// From and To are the namespaces of other projects of the tenant whose pods may connect to the project's pods, and to which these may connect.
	From, To []string
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

// OfPlatform reports whether a network policy of this name is the platform's. Tenants cannot make such: the admission policy kubeop-platform-object refuses it.
func OfPlatform(policy string) bool { return policy == name || strings.HasPrefix(policy, name+"-") }

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
	// A rule without peers would allow everything.
	if from := append(labelled(rules.Admitted...), named(rules.From)...); len(from) > 0 {
		spec.WithIngress(networking.NetworkPolicyIngressRule().WithFrom(from...))
	}
	if len(rules.To) > 0 {
		spec.WithEgress(networking.NetworkPolicyEgressRule().WithTo(named(rules.To)...))
	}
	if len(rules.Egress) > 0 {
		spec.WithEgress(to(rules.Egress, rules.Ports))
	}
	return networking.NetworkPolicy(name, namespace).WithLabels(labels).WithSpec(spec)
}

// Closed returns the network policy of a project whose connections its own NetworkPolicies open: the pods can only query the cluster's DNS.
func Closed(namespace string, labels map[string]string) *networking.NetworkPolicyApplyConfiguration {
	return networking.NetworkPolicy(name, namespace).WithLabels(labels).WithSpec(networking.NetworkPolicySpec().WithPodSelector(meta.LabelSelector()).
		WithPolicyTypes(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress).WithEgress(dns()))
}

// The cluster's DNS runs in this namespace everywhere, at this port.
const (
	dnsNamespace = "kube-system"
	dnsPort      = 53
)

// dns lets pods query the cluster's DNS.
func dns() *networking.NetworkPolicyEgressRuleApplyConfiguration {
	rule := networking.NetworkPolicyEgressRule().WithTo(named([]string{dnsNamespace})...)
	for _, protocol := range []corev1.Protocol{corev1.ProtocolUDP, corev1.ProtocolTCP} {
		rule.WithPorts(networking.NetworkPolicyPort().WithProtocol(protocol).WithPort(intstr.FromInt32(dnsPort)))
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

// named returns the pods of namespaces with these names.
func named(namespaces []string) (all []*networking.NetworkPolicyPeerApplyConfiguration) {
	for _, namespace := range namespaces {
		all = append(all, labelled(map[string]string{nameLabel: namespace})...)
	}
	return all
}

// labelled returns the pods of namespaces with these labels.
func labelled(namespaces ...map[string]string) (all []*networking.NetworkPolicyPeerApplyConfiguration) {
	for _, marks := range namespaces {
		all = append(all, networking.NetworkPolicyPeer().WithNamespaceSelector(meta.LabelSelector().WithMatchLabels(marks)))
	}
	return all
}

// Namespaces reads which namespaces a setting means: the name of one, or labels such as "monitoring=true,team=a"; "" means none.
func Namespaces(setting string) ([]map[string]string, error) {
	setting = strings.TrimSpace(setting)
	switch {
	case setting == "":
		return nil, nil
	case !strings.Contains(setting, "="):
		setting = nameLabel + "=" + setting
	}
	marks, err := labels.ConvertSelectorToLabelsMap(setting)
	if err != nil {
		return nil, fmt.Errorf("%q is neither the name of a namespace nor labels such as monitoring=true: %w", setting, err)
	}
	return []map[string]string{marks}, nil
}
