package isolation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv/opened"
)

// TestANetworkPolicyIsNarrowedToWhatIsAllowed: what is allowed stays as it is. Of the rest nothing is left but what is allowed.
func TestANetworkPolicyIsNarrowedToWhatIsAllowed(t *testing.T) {
	network, cases := opened.Read(t, "testdata/cases.yaml")
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			spec := c.Policy.Spec.DeepCopy()
			found := Narrow(spec, network)
			var why string
			for _, excess := range found {
				why += excess.Why + "\n"
			}
			if (c.Refused == "") != (len(found) == 0) || !strings.Contains(why, c.Refused) {
				t.Fatalf("found %q, want %q", why, c.Refused)
			}
			if diff := cmp.Diff(c.Policy.Spec, *spec); c.Refused == "" && diff != "" {
				t.Errorf("an allowed policy was changed (-want +got):\n%s", diff)
			}
			if again := Narrow(spec, network); len(again) > 0 {
				t.Errorf("after it was narrowed it has %v", again)
			}
			var except []string
			for _, rule := range spec.Egress {
				for _, peer := range rule.To {
					if peer.IPBlock != nil {
						except = append(except, peer.IPBlock.Except...)
					}
				}
			}
			if diff := cmp.Diff(c.Completed, except); c.Refused != "" && diff != "" {
				t.Errorf("exceptions (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOnlyWhatIsTooMuchGoes: the other peers and rules of a policy stay in force.
func TestOnlyWhatIsTooMuchGoes(t *testing.T) {
	own := networkingv1.NetworkPolicyPeer{PodSelector: selecting("a")}
	block := func(cidr string, except ...string) networkingv1.NetworkPolicyPeer {
		return networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: cidr, Except: except}}
	}
	allowed := Allowed("kubeop-acme-shop", v1alpha1.OwnNetworkPolicies, Rules{Egress: []Range{{"0.0.0.0/0", []string{"10.0.0.0/8", "169.254.0.0/16"}}}})
	spec := &networkingv1.NetworkPolicySpec{
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{own}}, {From: []networkingv1.NetworkPolicyPeer{block("10.0.0.0/8")}}},
		Egress: []networkingv1.NetworkPolicyEgressRule{
			{To: []networkingv1.NetworkPolicyPeer{own, block("10.1.0.0/16"), block("0.0.0.0/0", "10.0.0.0/8")}}, {To: []networkingv1.NetworkPolicyPeer{block("10.2.0.0/16")}},
		},
	}
	found := Narrow(spec, allowed)
	want := &networkingv1.NetworkPolicySpec{
		PolicyTypes: spec.PolicyTypes, Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{own}}},
		Egress: []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{own, block("0.0.0.0/0", "10.0.0.0/8", "169.254.0.0/16")}}},
	}
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	wanted := []Excess{
		{Why: "lets addresses connect in spec.ingress[1], where only pods and namespaces are allowed: take ipBlock out in Git"},
		{"lets pods connect in spec.egress[0] to 10.1.0.0/16, or at ports there, which is not allowed", []string{"0.0.0.0/0"}},
		{"lets pods connect in spec.egress[0] to 0.0.0.0/0 without all of the exceptions that it needs in except", []string{"169.254.0.0/16"}},
		{"lets pods connect in spec.egress[1] to 10.2.0.0/16, or at ports there, which is not allowed", []string{"0.0.0.0/0"}},
	}
	if diff := cmp.Diff(wanted, found); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestLabelsOfNamespacesHaveToBeRequiredTogether, and none of them is not enough.
func TestLabelsOfNamespacesHaveToBeRequiredTogether(t *testing.T) {
	sets := []map[string]string{{"use": "monitoring", "team": ""}, {nameLabel: "a"}, {nameLabel: "b"}, {nameLabel: "c", "team": "x"}, {nameLabel: "d", "team": "x"}, {"use": "other"}, {}}
	for name, c := range map[string]struct {
		labels, in string
		operator   metav1.LabelSelectorOperator
		want       bool
	}{
		"both":                         {labels: "use=monitoring team=", want: true},
		"both and more":                {labels: "use=monitoring team= x=y", want: true},
		"one":                          {labels: "use=monitoring"},
		"another value":                {labels: "use=monitoring team=a"},
		"one of them by an expression": {labels: "team=", in: "use monitoring", want: true},
		"one of two values":            {labels: "team=", in: "use monitoring other"},
		"none":                         {},
		"a name":                       {in: nameLabel + " a", want: true},
		"names":                        {in: nameLabel + " a b", want: true},
		"names, one of them not":       {in: nameLabel + " a c"},
		"no values":                    {in: nameLabel},
		"an empty name":                {in: nameLabel + ` ""`},
		"a name, but not its label":    {in: nameLabel + " c d", labels: nameLabel + "=d"},
		"names of another label":       {in: "use a b"},
		"any but a name":               {in: nameLabel + " a", operator: metav1.LabelSelectorOpNotIn},
	} {
		selector := selecting(strings.Fields(c.labels)...)
		if key, values, _ := strings.Cut(c.in, " "); key != "" {
			selector.MatchExpressions = expression(key, strings.Fields(strings.ReplaceAll(values, `""`, ""))...)
			if strings.Contains(values, `""`) {
				selector.MatchExpressions = expression(key, "")
			}
			if c.operator != "" {
				selector.MatchExpressions[0].Operator = c.operator
			}
		}
		if got := selectsOnly(selector, sets); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
}

func TestAProjectMayOpenWhatItsPolicyOpens(t *testing.T) {
	rules := Rules{
		Admitted: []map[string]string{{"use": "monitoring"}}, From: []string{"kubeop-acme-web"}, To: []string{"kubeop-acme-billing"},
		Egress: []Range{{"0.0.0.0/0", []string{"10.0.0.0/8"}}}, Ports: []Ports{{corev1.ProtocolUDP, 8000, 8999}},
	}
	got := Allowed("kubeop-acme-shop", v1alpha1.OwnNetworkPolicies, rules)
	text := fmt.Sprintf("%v %v", got.From, got.To)
	const from = "[map[kubernetes.io/metadata.name:kubeop-acme-shop] map[use:monitoring] map[kubernetes.io/metadata.name:kubeop-acme-web]]"
	const to = "[{[map[kubernetes.io/metadata.name:kubeop-acme-shop] map[kubernetes.io/metadata.name:kubeop-acme-billing]] [] []} " +
		"{[map[kubernetes.io/metadata.name:kube-system]] [] [{UDP 53 53} {TCP 53 53}]} {[] [{0.0.0.0/0 [10.0.0.0/8]}] [{UDP 8000 8999}]}]"
	if text != from+" "+to {
		t.Errorf("got %s, want %s %s", text, from, to)
	}
	// Ports without ranges would be allowed at no address, and must not become these ports of everything.
	if got := Allowed("a", v1alpha1.OwnNetworkPolicies, Rules{Ports: rules.Ports}); len(got.To) != 2 {
		t.Errorf("without ranges: %v", got.To)
	}
	for name, want := range map[string]bool{"kubeop": true, "kubeop-x": true, "kubeops": false, "my-kubeop": false, "": false} {
		if OfPlatform(name) != want {
			t.Errorf("%q is of the platform: %t", name, !want)
		}
	}
}

// TestAllowedConnectionsAreListed with their ports and exceptions, so that a tenant reads what to write instead.
func TestAllowedConnectionsAreListed(t *testing.T) {
	network := Allowed("kubeop-acme-shop", v1alpha1.OwnNetworkPolicies, Rules{
		Admitted: []map[string]string{{"use": "monitoring"}}, Egress: []Range{{"0.0.0.0/0", []string{"10.0.0.0/8", "172.16.0.0/12"}}, {"10.1.0.0/16", nil}}, Ports: []Ports{{corev1.ProtocolTCP, 443, 443}, {corev1.ProtocolUDP, 8000, 8999}},
	})
	if network.Policies != v1alpha1.OwnNetworkPolicies {
		t.Errorf("the project's policies are %q", network.Policies)
	}
	const shop, dns = "kubernetes.io/metadata.name=kubeop-acme-shop", "kubernetes.io/metadata.name=kube-system at UDP 53 TCP 53"
	want := []string{
		"from pods of namespaces with " + shop, "from pods of namespaces with use=monitoring", "to pods of namespaces with " + shop, "to pods of namespaces with " + dns,
		"to 0.0.0.0/0 except 10.0.0.0/8, 172.16.0.0/12 at TCP 443 UDP 8000-8999", "to 10.1.0.0/16 at TCP 443 UDP 8000-8999",
	}
	if diff := cmp.Diff(want, Lines(network)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	other := []networkingv1.NetworkPolicyPeer{{NamespaceSelector: selecting("use=other")}}
	found := Narrow(&networkingv1.NetworkPolicySpec{
		Ingress: []networkingv1.NetworkPolicyIngressRule{{From: other}}, Egress: []networkingv1.NetworkPolicyEgressRule{{To: other}},
	}, network)
	wanted := []Excess{
		{"lets pods of other namespaces connect in spec.ingress[0] than the namespaceSelector may select", []string{shop, "use=monitoring"}},
		{"lets pods connect in spec.egress[0] to other namespaces, or at other ports, than the namespaceSelector may select", []string{shop, dns}},
	}
	if diff := cmp.Diff(wanted, found); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestARangeIsAllowedWithTheFewestExceptions, and never because of a range or an exception that cannot be read.
func TestARangeIsAllowedWithTheFewestExceptions(t *testing.T) {
	few, more := Range{"10.0.0.0/8", []string{"10.1.0.0/16"}}, Range{"0.0.0.0/0", []string{"10.1.0.0/16", "10.2.0.0/16"}}
	for name, c := range map[string]struct {
		block  string
		egress []Range
		want   []string
		says   string
	}{
		"the fewest first":      {"10.0.0.0/8", []Range{few, more}, few.Except, "without all of the exceptions"},
		"the fewest last":       {"10.0.0.0/8", []Range{more, few}, few.Except, "without all of the exceptions"},
		"no CIDR":               {"10.0.0.0", []Range{more}, nil, "to an ipBlock that is no CIDR"},
		"IPv4 in IPv6":          {"::ffff:192.0.2.0/120", []Range{{"::/0", nil}}, nil, "to an ipBlock that is no CIDR"},
		"an exception is wrong": {"192.0.2.0/24", []Range{{"0.0.0.0/0", []string{"private"}}}, nil, "which is not allowed"},
		"a range is wrong":      {"192.0.2.0/24", []Range{{"all", nil}}, nil, "which is not allowed"},
	} {
		spec := &networkingv1.NetworkPolicySpec{Egress: []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: c.block}}}}}}
		found := Narrow(spec, Allowed("kubeop-acme-shop", v1alpha1.OwnNetworkPolicies, Rules{Egress: c.egress}))
		if len(found) != 1 || !strings.Contains(found[0].Why, c.says) {
			t.Errorf("%s: found %v, want %q", name, found, c.says)
		}
		var except []string
		for _, rule := range spec.Egress {
			except = rule.To[0].IPBlock.Except
		}
		if diff := cmp.Diff(c.want, except); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// selecting returns a selector of labels such as "a=b".
func selecting(labels ...string) *metav1.LabelSelector {
	selector := &metav1.LabelSelector{}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		metav1.AddLabelToSelector(selector, key, value)
	}
	return selector
}

func expression(key string, values ...string) []metav1.LabelSelectorRequirement {
	return []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpIn, Values: values}}
}
