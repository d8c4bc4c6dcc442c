package reach

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mattfenwick/cyclonus/pkg/matcher"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/delivery/isolation"
)

// served answers a list of ClusterNetworkPolicies.
type served struct {
	client.Reader
	t *testing.T
	// policies are the specs by name.
	policies map[string]string
	err      error
}

func (r served) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(r.policies))) { // The order of an API server says nothing.
		text := r.policies[name]
		policy, spec := isolation.NewClusterPolicy(name, nil), map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
			r.t.Fatalf("%v in %s", err, text)
		}
		policy.Object["spec"] = spec
		list.(*unstructured.UnstructuredList).Items = append(list.(*unstructured.UnstructuredList).Items, *policy)
	}
	return r.err
}

func TestATierThatCannotBeReadIsNotLeftOutSilently(t *testing.T) {
	kind := schema.GroupResource{Group: isolation.ClusterPolicyKind.Group, Resource: "clusternetworkpolicies"}
	for name, c := range map[string]struct {
		err     error
		leftOut string
		fails   bool
	}{
		"the API server is away":   {errors.New("away"), "", true},
		"they may not be read":     {apierrors.NewForbidden(kind, "", nil), "ClusterNetworkPolicies, which you may not read and which decide before NetworkPolicies", false},
		"the kind is not served":   {&meta.NoKindMatchError{}, "", false},
		"it is not served anymore": {apierrors.NewNotFound(kind, ""), "", false},
	} {
		admin, err := readTier(t.Context(), served{t: t, err: c.err})
		if (err != nil) != c.fails {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && admin.leftOut() != c.leftOut {
			t.Errorf("%s: it leaves out %q, want %q", name, admin.leftOut(), c.leftOut)
		}
	}
	if _, err := readTier(t.Context(), served{t: t, policies: map[string]string{"broken": "{tier: Admin, priority: first}"}}); err == nil {
		t.Error("a policy that cannot be read was left out")
	}
}

// about is a spec about all pods of the namespace shop.
func about(priority int, rules string) string {
	return fmt.Sprintf("{tier: Admin, priority: %d, subject: {namespaces: {matchLabels: {name: shop}}}, %s}", priority, rules)
}

// TestTheFirstRuleOfTheTierDecidesBeforeNetworkPolicies do: Deny and Accept are final, and Pass leaves it to them.
func TestTheFirstRuleOfTheTierDecidesBeforeNetworkPolicies(t *testing.T) {
	pod := func(namespace, ip string) *matcher.TrafficPeer {
		return &matcher.TrafficPeer{IP: ip, Internal: &matcher.InternalPeer{Namespace: namespace, NamespaceLabels: map[string]string{"name": namespace}, PodLabels: map[string]string{"app": "web"}}}
	}
	shop, billing, planned, outside := pod("shop", "10.1.0.1"), pod("billing", "10.1.0.2"), pod("billing", ""), &matcher.TrafficPeer{IP: "203.0.113.1"}
	https := port{number: 443, name: "https", protocol: corev1.ProtocolTCP}
	const closed = "egress: [{action: Deny, to: [{namespaces: {}}]}]"
	for name, c := range map[string]struct {
		policies map[string]string
		to       *matcher.TrafficPeer
		at       port
		want     string
	}{
		"none":                               {nil, billing, https, "true NetworkPolicies"},
		"another tier":                       {map[string]string{"a": "{tier: Baseline, priority: 1, subject: {namespaces: {}}, " + closed + "}"}, billing, https, "true NetworkPolicies"},
		"about others":                       {map[string]string{"a": "{tier: Admin, priority: 1, subject: {namespaces: {matchLabels: {name: other}}}, " + closed + "}"}, billing, https, "true NetworkPolicies"},
		"another direction":                  {map[string]string{"a": about(1, "ingress: [{action: Deny, from: [{namespaces: {}}]}]")}, billing, https, "true NetworkPolicies"},
		"to pods, of an address outside":     {map[string]string{"a": about(1, closed)}, outside, https, "true NetworkPolicies"},
		"denied":                             {map[string]string{"a": about(1, closed)}, billing, https, "false ClusterNetworkPolicy a: spec.egress[0] denies it"},
		"accepted":                           {map[string]string{"a": about(1, "egress: [{action: Accept, to: [{pods: {namespaceSelector: {}, podSelector: {matchLabels: {app: web}}}}]}]")}, billing, https, "true ClusterNetworkPolicy a: spec.egress[0] accepts it"},
		"pods with other labels":             {map[string]string{"a": about(1, "egress: [{action: Deny, to: [{pods: {namespaceSelector: {}, podSelector: {matchLabels: {app: db}}}}]}]")}, billing, https, "true NetworkPolicies"},
		"passed before it is denied":         {map[string]string{"a": about(1, "egress: [{action: Pass, to: [{namespaces: {matchLabels: {name: billing}}}]}, {action: Deny, to: [{namespaces: {}}]}]")}, billing, https, "true NetworkPolicies"},
		"the priority comes before the name": {map[string]string{"a": about(50, closed), "b": about(40, "egress: [{action: Pass, to: [{namespaces: {}}]}]")}, billing, https, "true NetworkPolicies"},
		"the first of two priorities":        {map[string]string{"a": about(40, "egress: [{action: Pass, to: [{namespaces: {}}]}]"), "b": about(50, closed)}, billing, https, "true NetworkPolicies"},
		"the first of two names":             {map[string]string{"a": about(40, closed), "b": about(40, closed)}, billing, https, "false ClusterNetworkPolicy a: spec.egress[0] denies it"},
		"an address of another network":      {map[string]string{"a": about(1, "egress: [{action: Deny, to: [{networks: [203.0.114.0/24]}]}]")}, outside, https, "true NetworkPolicies"},
		"pods of another namespace":          {map[string]string{"a": about(1, "egress: [{action: Deny, to: [{pods: {namespaceSelector: {matchLabels: {name: other}}, podSelector: {}}}]}]")}, billing, https, "true NetworkPolicies"},
		"all pods, of an address outside":    {map[string]string{"a": about(1, "egress: [{action: Deny, to: [{pods: {namespaceSelector: {}, podSelector: {}}}]}]")}, outside, https, "true NetworkPolicies"},
		"the name of another port":           {map[string]string{"a": about(1, "egress: [{action: Deny, to: [{namespaces: {}}], protocols: [{destinationNamedPort: http}]}]")}, billing, https, "true NetworkPolicies"},
		"a range that begins with its port":  {map[string]string{"a": about(1, "egress: [{action: Deny, to: [{namespaces: {}}], protocols: [{tcp: {destinationPort: {range: {start: 443, end: 500}}}}]}]")}, billing, https, "false ClusterNetworkPolicy a: spec.egress[0] denies it"},
		"a range after its port":             {map[string]string{"a": about(1, "egress: [{action: Deny, to: [{namespaces: {}}], protocols: [{tcp: {destinationPort: {range: {start: 444, end: 500}}}}]}]")}, billing, https, "true NetworkPolicies"},
		"nodes, or others that it is not": {map[string]string{"a": about(1, "egress: [{action: Deny, to: [{nodes: {}}, {namespaces: {matchLabels: {name: other}}}]}]")}, billing, https,
			"true NetworkPolicies, without spec.egress[0] of ClusterNetworkPolicy a, which is about nodes, names of hosts or something newer"},
		"a newer kind of selector": {map[string]string{"a": about(1, "egress: [{action: Deny, to: [{namespaces: {matchExpressions: [{key: a, operator: Near}]}}]}]")}, billing, https,
			"true NetworkPolicies, without spec.egress[0] of ClusterNetworkPolicy a, which is about nodes, names of hosts or something newer"},
		"an address":                   {map[string]string{"a": about(1, `egress: [{action: Deny, to: [{networks: [203.0.113.0/24, "::/0"]}]}]`)}, outside, https, "false ClusterNetworkPolicy a: spec.egress[0] denies it"},
		"the address of a pod":         {map[string]string{"a": about(1, "egress: [{action: Deny, to: [{networks: [0.0.0.0/0]}]}]")}, billing, https, "false ClusterNetworkPolicy a: spec.egress[0] denies it"},
		"a pod without an address yet": {map[string]string{"a": about(1, "egress: [{action: Deny, to: [{networks: [0.0.0.0/0]}]}]")}, planned, https, "true NetworkPolicies"},
		"another port":                 {map[string]string{"a": about(1, "egress: [{action: Deny, to: [{namespaces: {}}], protocols: [{tcp: {destinationPort: {number: 80}}}, {udp: {destinationPort: {number: 443}}}]}]")}, billing, https, "true NetworkPolicies"},
		"its port":                     {map[string]string{"a": about(1, "egress: [{action: Deny, to: [{namespaces: {}}], protocols: [{tcp: {destinationPort: {number: 443}}}]}]")}, billing, https, "false ClusterNetworkPolicy a: spec.egress[0] denies it"},
		"a range of ports":             {map[string]string{"a": about(1, "egress: [{action: Deny, to: [{namespaces: {}}], protocols: [{tcp: {destinationPort: {range: {start: 1, end: 443}}}}]}]")}, billing, https, "false ClusterNetworkPolicy a: spec.egress[0] denies it"},
		"beyond a range of ports":      {map[string]string{"a": about(1, "egress: [{action: Deny, to: [{namespaces: {}}], protocols: [{tcp: {destinationPort: {range: {start: 1, end: 442}}}}]}]")}, billing, https, "true NetworkPolicies"},
		"the name of its port":         {map[string]string{"a": about(1, "egress: [{action: Deny, to: [{namespaces: {}}], protocols: [{destinationNamedPort: https}]}]")}, billing, https, "false ClusterNetworkPolicy a: spec.egress[0] denies it"},
		"every port of a protocol":     {map[string]string{"a": about(1, "egress: [{action: Deny, to: [{namespaces: {}}], protocols: [{sctp: {}}]}]")}, billing, port{number: 9, protocol: corev1.ProtocolSCTP}, "false ClusterNetworkPolicy a: spec.egress[0] denies it"},
		"nodes, which are not known": {map[string]string{"a": about(1, "egress: [{action: Deny, to: [{nodes: {}}]}]")}, outside, https,
			"true NetworkPolicies, without spec.egress[0] of ClusterNetworkPolicy a, which is about nodes, names of hosts or something newer"},
		"nodes, after it was denied": {map[string]string{"a": about(1, "egress: [{action: Deny, to: [{networks: [0.0.0.0/0]}]}, {action: Accept, to: [{nodes: {}}]}]")}, outside, https, "false ClusterNetworkPolicy a: spec.egress[0] denies it"},
		"two of one priority": {map[string]string{"a": about(1, closed), "b": about(1, "egress: [{action: Accept, to: [{namespaces: {}}]}]")}, billing, https,
			"false ClusterNetworkPolicy a: spec.egress[0] denies it, without that ClusterNetworkPolicies a and b decide differently at the same priority"},
		"two of one priority that agree": {map[string]string{"a": about(1, closed), "b": about(1, closed)}, billing, https, "false ClusterNetworkPolicy a: spec.egress[0] denies it"},
	} {
		t.Run(name, func(t *testing.T) {
			admin, err := readTier(t.Context(), served{t: t, policies: c.policies})
			if err != nil {
				t.Fatal(err)
			}
			said := admin.egress(shop, c.to, c.at, verdict{true, "NetworkPolicies"})
			got := fmt.Sprint(said.allowed, " ", said.why)
			if left := admin.leftOut(); left != "" {
				got += ", without " + left
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestARuleThatIsLeftOutIsReportedOnce(t *testing.T) {
	shop := &matcher.TrafficPeer{Internal: &matcher.InternalPeer{NamespaceLabels: map[string]string{"name": "shop"}}}
	admin, err := readTier(t.Context(), served{t: t, policies: map[string]string{"a": about(1, "egress: [{action: Deny, to: [{nodes: {}}]}]")}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		admin.egress(shop, &matcher.TrafficPeer{IP: "203.0.113.1"}, port{}, outside)
	}
	if strings.Count(admin.leftOut(), "spec.egress[0]") != 1 {
		t.Errorf("it leaves out %q", admin.leftOut())
	}
}

// TestTheTierDecidesOnBothSides, and not about what is no pod with an address of its own.
func TestTheTierDecidesOnBothSides(t *testing.T) {
	shop := &matcher.TrafficPeer{Internal: &matcher.InternalPeer{NamespaceLabels: map[string]string{"name": "shop"}}}
	admin, err := readTier(t.Context(), served{t: t, policies: map[string]string{"a": about(1, "ingress: [{action: Deny, from: [{namespaces: {}}]}]")}})
	if err != nil {
		t.Fatal(err)
	}
	if said := admin.ingress(shop, shop, port{}, outside); said.allowed || !strings.Contains(said.why, "a: spec.ingress[0]") {
		t.Errorf("a pod: %+v", said)
	}
	if said := admin.ingress(shop, &matcher.TrafficPeer{IP: "203.0.113.1"}, port{}, outside); said != outside {
		t.Errorf("an address: %+v", said)
	}
}
