package reach

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/mattfenwick/cyclonus/pkg/matcher"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/isolation"
)

// tier are the ClusterNetworkPolicies of the tier Admin, which decide before NetworkPolicies do, by their priority and name.
type tier struct {
	policies []clusterPolicy
	// unknown is what the verdicts leave out, distinct.
	unknown []string
}

// clusterPolicy is the part of a ClusterNetworkPolicy that verdicts depend on.
type clusterPolicy struct {
	Metadata metav1.ObjectMeta           `json:"metadata"`
	Spec     isolation.ClusterPolicySpec `json:"spec"`
}

// readTier reads the ClusterNetworkPolicies of the cluster; none if it does not have the kind.
func readTier(ctx context.Context, reader client.Reader) (*tier, error) {
	kind := isolation.ClusterPolicyKind
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := reader.List(ctx, list)
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return &tier{}, nil
	case apierrors.IsForbidden(err):
		return &tier{unknown: []string{"ClusterNetworkPolicies, which you may not read and which decide before NetworkPolicies"}}, nil
	case err != nil:
		return nil, fmt.Errorf("listing the ClusterNetworkPolicies: %w", err)
	}
	t := &tier{}
	for i := range list.Items {
		var policy clusterPolicy
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &policy); err != nil {
			return nil, fmt.Errorf("reading ClusterNetworkPolicy %s: %w", list.Items[i].GetName(), err)
		}
		if policy.Spec.Tier == "Admin" {
			t.policies = append(t.policies, policy)
		}
	}
	slices.SortFunc(t.policies, func(a, b clusterPolicy) int {
		return cmp.Or(cmp.Compare(a.Spec.Priority, b.Spec.Priority), cmp.Compare(a.Metadata.Name, b.Metadata.Name))
	})
	return t, nil
}

// leftOut says what the verdicts so far leave out; "" for nothing.
func (t *tier) leftOut() string { return strings.Join(few.Of(t.unknown, 4), "; ") }

func (t *tier) leaveOut(format string, args ...any) {
	if what := fmt.Sprintf(format, args...); !slices.Contains(t.unknown, what) {
		t.unknown = append(t.unknown, what)
	}
}

// ingress returns what the tier says about a connection to a pod, and egress about one from a pod; otherwise what NetworkPolicies say.
func (t *tier) ingress(from, to *matcher.TrafficPeer, at port, otherwise verdict) verdict {
	return t.judge("spec.ingress", to, from, at, otherwise)
}

func (t *tier) egress(from, to *matcher.TrafficPeer, at port, otherwise verdict) verdict {
	return t.judge("spec.egress", from, to, at, otherwise)
}

// judge finds the first policy about the pod that has a rule about the connection. Where several policies of the same priority have one, the API does not
// say which of them counts.
func (t *tier) judge(direction string, pod, other *matcher.TrafficPeer, at port, otherwise verdict) verdict {
	var first *clusterPolicy
	var action string
	for i := range t.policies {
		policy := &t.policies[i]
		if first != nil && policy.Spec.Priority != first.Spec.Priority {
			break
		}
		found, where := t.rule(policy, direction, pod, other, at)
		switch {
		case found == nil:
		case first == nil:
			first, action = policy, found.Action
			otherwise = verdictOf(action, "ClusterNetworkPolicy "+policy.Metadata.Name+": "+where, otherwise)
		case found.Action != action:
			t.leaveOut("that ClusterNetworkPolicies %s and %s decide differently at the same priority", first.Metadata.Name, policy.Metadata.Name)
		}
	}
	return otherwise
}

// verdictOf is what a rule with an action says; Pass leaves it to NetworkPolicies.
func verdictOf(action, where string, otherwise verdict) verdict {
	switch action {
	case "Deny":
		return verdict{false, where + " denies it"}
	case "Accept":
		return verdict{true, where + " accepts it"}
	}
	return otherwise
}

// rule returns the first rule of a policy about a connection, and which it is; nil if it has none. Rules about nodes and names of hosts are left out.
func (t *tier) rule(policy *clusterPolicy, direction string, pod, other *matcher.TrafficPeer, at port) (*isolation.ClusterRule, string) {
	if is, _ := peerMatches(&policy.Spec.Subject, pod); !is {
		return nil, ""
	}
	rules := policy.Spec.Ingress
	if direction == "spec.egress" {
		rules = policy.Spec.Egress
	}
	for i := range rules {
		rule, where := &rules[i], fmt.Sprintf("%s[%d]", direction, i)
		if len(rule.Protocols) > 0 && !slices.ContainsFunc(rule.Protocols, func(p isolation.ClusterProtocol) bool { return protocolMatches(&p, at) }) {
			continue
		}
		allKnown := true
		for _, peer := range append(rule.From, rule.To...) {
			is, known := peerMatches(&peer, other)
			if is {
				return rule, where
			}
			allKnown = allKnown && known
		}
		if !allKnown {
			t.leaveOut("%s of ClusterNetworkPolicy %s, which is about nodes, names of hosts or something newer", where, policy.Metadata.Name)
		}
	}
	return nil, ""
}

// peerMatches reports whether a peer has the other side of a connection. known is false if this program cannot decide it.
func peerMatches(p *isolation.ClusterPeer, other *matcher.TrafficPeer) (is, known bool) {
	selects := func(by *metav1.LabelSelector, of map[string]string) bool {
		selector, err := metav1.LabelSelectorAsSelector(by)
		known = err == nil
		return err == nil && selector.Matches(labels.Set(of))
	}
	known = true
	switch {
	case p.Namespaces != nil:
		is = other.Internal != nil && selects(p.Namespaces, other.Internal.NamespaceLabels)
	case p.Pods != nil:
		is = other.Internal != nil && selects(&p.Pods.NamespaceSelector, other.Internal.NamespaceLabels) && selects(&p.Pods.PodSelector, other.Internal.PodLabels)
	case len(p.Networks) > 0:
		address, _ := netip.ParseAddr(other.IP) // No network contains what is no address.
		is = slices.ContainsFunc(p.Networks, func(text string) bool {
			network, _ := netip.ParsePrefix(text)
			return network.Contains(address)
		})
	default:
		known = false
	}
	return is, known
}

// protocolMatches reports whether a connection to a port is one of a protocol of a rule.
func protocolMatches(p *isolation.ClusterProtocol, at port) bool {
	ports := map[corev1.Protocol]*isolation.ClusterPorts{corev1.ProtocolTCP: p.TCP, corev1.ProtocolUDP: p.UDP, corev1.ProtocolSCTP: p.SCTP}[at.protocol]
	switch {
	case p.Named != "":
		return p.Named == at.name
	case ports == nil:
		return false
	case ports.Destination == nil:
		return true
	case ports.Destination.Range != nil:
		return int(ports.Destination.Range.Start) <= at.number && at.number <= int(ports.Destination.Range.End)
	}
	return int(ports.Destination.Number) == at.number
}
