package isolation

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// specOf returns the spec of a project's ClusterNetworkPolicy.
func specOf(t *testing.T, rules Rules) ClusterPolicySpec {
	t.Helper()
	policy, err := ClusterPolicy("kubeop-acme-shop", nil, rules)
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Spec ClusterPolicySpec `json:"spec"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(policy.Object, &all); err != nil {
		t.Fatal(err)
	}
	return all.Spec
}

// lines returns rules as text, a line each, such as "Pass dns to a,b at UDP 53".
func lines(rules []ClusterRule) (all []string) {
	for _, r := range rules {
		var peers []string
		for _, p := range append(r.From, r.To...) {
			if p.Namespaces != nil {
				peers = append(peers, metav1.FormatLabelSelector(p.Namespaces))
			}
			peers = append(peers, p.Networks...)
		}
		line := fmt.Sprintf("%s %s: %s", r.Action, r.Name, strings.Join(peers, " "))
		if len(r.Protocols) > 0 {
			text, _ := json.Marshal(r.Protocols)
			line += " at " + string(text)
		}
		all = append(all, line)
	}
	return all
}

const (
	ownFrom = "Pass connected-projects: kubernetes.io/metadata.name in (kubeop-acme-shop)"
	others  = "Deny other-pods: <none>"
	queries = `Pass dns: kubernetes.io/metadata.name in (kube-system) at [{"udp":{"destinationPort":{"number":53}}},{"tcp":{"destinationPort":{"number":53}}}]`
	beyond  = "Deny other-addresses: 0.0.0.0/0 ::/0"
)

// TestAClusterPolicyRefusesWhatNoRuleOpens, before any NetworkPolicy is asked.
func TestAClusterPolicyRefusesWhatNoRuleOpens(t *testing.T) {
	for name, c := range map[string]struct {
		rules           Rules
		ingress, egress []string
	}{
		"nothing but the project and DNS": {Rules{}, []string{ownFrom, others}, []string{ownFrom, queries, others, beyond}},
		"ports without ranges":            {Rules{Ports: []Ports{{"TCP", 443, 443}}}, []string{ownFrom, others}, []string{ownFrom, queries, others, beyond}},
		"other projects, and namespaces of the cluster": {
			Rules{Admitted: []map[string]string{{nameLabel: "ingress"}, {"team": "a", "use": "monitoring"}}, From: []string{"kubeop-acme-web"}, To: []string{"kubeop-acme-a", "kubeop-acme-b"}},
			[]string{"Pass connected-projects: kubernetes.io/metadata.name in (kubeop-acme-shop,kubeop-acme-web) kubernetes.io/metadata.name=ingress team=a,use=monitoring", others},
			[]string{"Pass connected-projects: kubernetes.io/metadata.name in (kubeop-acme-a,kubeop-acme-b,kubeop-acme-shop)", queries, others, beyond},
		},
		"a range with exceptions, at ports": {
			Rules{Egress: []Range{{"0.0.0.0/0", []string{"10.0.0.0/8", "169.254.0.0/16"}}}, Ports: []Ports{{"TCP", 443, 443}, {"UDP", 8000, 8999}, {"SCTP", 7, 7}}},
			[]string{ownFrom, others}, []string{
				ownFrom, queries, others, "Deny closed-addresses: 10.0.0.0/8 169.254.0.0/16",
				`Pass open-addresses: 0.0.0.0/0 at [{"tcp":{"destinationPort":{"number":443}}},{"udp":{"destinationPort":{"range":{"start":8000,"end":8999}}}},{"sctp":{"destinationPort":{"number":7}}}]`, beyond,
			},
		},
		// The exceptions of the larger range do not close the smaller one.
		"a range inside of an exception": {
			Rules{Egress: []Range{{"0.0.0.0/0", []string{"10.0.0.0/8"}}, {"203.0.113.0/24", nil}, {"10.1.0.0/16", []string{"10.1.2.0/24"}}, {"::/0", []string{"fe80::/10", "fe80::/10"}}}},
			[]string{ownFrom, others}, []string{
				ownFrom, queries, others, "Deny closed-addresses: 10.1.2.0/24 fe80::/10", "Pass open-addresses: 203.0.113.0/24 10.1.0.0/16 ::/0",
				"Deny closed-addresses: 10.0.0.0/8", "Pass open-addresses: 0.0.0.0/0", beyond,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := specOf(t, c.rules)
			if diff := cmp.Diff(c.ingress, lines(spec.Ingress)); diff != "" {
				t.Errorf("ingress (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.egress, lines(spec.Egress)); diff != "" {
				t.Errorf("egress (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAClusterPolicyIsAboutOneNamespace(t *testing.T) {
	policy, err := ClusterPolicy("kubeop-acme-shop", map[string]string{"a": "b"}, Rules{})
	if err != nil {
		t.Fatal(err)
	}
	delete(policy.Object["spec"].(map[string]any), "ingress")
	delete(policy.Object["spec"].(map[string]any), "egress")
	got, err := policy.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"apiVersion":"policy.networking.k8s.io/v1alpha2","kind":"ClusterNetworkPolicy","metadata":{"labels":{"a":"b"},"name":"kubeop-acme-shop"},` +
		`"spec":{"priority":99,"subject":{"namespaces":{"matchLabels":{"kubernetes.io/metadata.name":"kubeop-acme-shop"}}},"tier":"Admin"}}`
	if diff := cmp.Diff(want, strings.TrimSpace(string(got))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestAClusterPolicyKeepsTheLimitsOfTheAPI: more than 25 of anything go into further peers and rules.
func TestAClusterPolicyKeepsTheLimitsOfTheAPI(t *testing.T) {
	if _, err := ClusterPolicy("a", nil, Rules{Egress: []Range{{CIDR: "everywhere"}}}); err == nil {
		t.Error("a range that is none was accepted")
	}
	var nested []Range
	for bits := 8; bits <= 32; bits++ {
		nested = append(nested, Range{CIDR: netip.PrefixFrom(netip.MustParseAddr("10.0.0.0"), bits).String()})
	}
	if _, err := ClusterPolicy("a", nil, Rules{Egress: nested}); !errors.Is(err, ErrTooManyRules) {
		t.Errorf("25 ranges inside of each other: %v", err)
	}
	large := Rules{Egress: []Range{{CIDR: "0.0.0.0/0"}}}
	for i := range 1300 {
		large.Egress[0].Except = append(large.Egress[0].Except, fmt.Sprintf("10.%d.%d.0/24", i/256, i%256))
	}
	for port := range int32(32) {
		large.Ports = append(large.Ports, Ports{"TCP", 2*port + 1, 2*port + 1})
	}
	spec := specOf(t, large)
	if len(spec.Egress) != 3+3+2+1 || len(spec.Ingress) > most {
		t.Errorf("%d rules", len(spec.Egress))
	}
	closed := 0
	for _, rule := range spec.Egress {
		if len(rule.To) > most || len(rule.Protocols) > most {
			t.Errorf("rule %s has %d peers and %d protocols", rule.Name, len(rule.To), len(rule.Protocols))
		}
		for _, peer := range rule.To {
			if len(peer.Networks) > most {
				t.Errorf("a peer of rule %s has %d networks", rule.Name, len(peer.Networks))
			}
			if rule.Name == "closed-addresses" {
				closed += len(peer.Networks)
			}
		}
	}
	if closed != 1300 {
		t.Errorf("%d of 1300 exceptions", closed)
	}
}

// TestAClusterPolicyLeavesToNetworkPoliciesWhatTheyOpen, and no other address, for ranges inside of others and exceptions at random.
func TestAClusterPolicyLeavesToNetworkPoliciesWhatTheyOpen(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	network := func() netip.Prefix {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(random.IntN(4)), byte(random.IntN(4)), byte(random.IntN(256))}), 8+random.IntN(25)).Masked()
	}
	open := 0
	for round := range 300 {
		var rules Rules
		forbidden := []netip.Prefix{network(), network(), network()}
		for range 1 + random.IntN(5) {
			within := network()
			if slices.ContainsFunc(forbidden, func(f netip.Prefix) bool { return covers(f, within) }) {
				continue
			}
			r := Range{CIDR: within.String()}
			for _, f := range forbidden {
				if covers(within, f) {
					r.Except = append(r.Except, f.String())
				}
			}
			if private := netip.MustParsePrefix("10.1.0.0/16"); within.Bits() < 16 && covers(within, private) { // Only larger ranges leave it out.
				r.Except = append(r.Except, private.String())
			}
			rules.Egress = append(rules.Egress, r)
		}
		spec := specOf(t, rules)
		for range 300 {
			to := netip.AddrFrom4([4]byte{10, byte(random.IntN(4)), byte(random.IntN(4)), byte(random.IntN(256))})
			want := slices.ContainsFunc(rules.Egress, func(r Range) bool {
				return holds(r.CIDR, to) && !slices.ContainsFunc(r.Except, func(e string) bool { return holds(e, to) })
			})
			if got := passes(spec.Egress, to); got != want {
				t.Fatalf("round %d: %s passes: %t, want %t, by %v of %v", round, to, got, want, lines(spec.Egress), rules.Egress)
			}
			if want {
				open++
			}
		}
	}
	if open < 1000 {
		t.Errorf("only %d addresses were open", open)
	}
}

func holds(cidr string, ip netip.Addr) bool { return netip.MustParsePrefix(cidr).Contains(ip) }

// passes reports whether the first rule about an address, which is no pod's, passes it to NetworkPolicies.
func passes(rules []ClusterRule, to netip.Addr) bool {
	for _, rule := range rules {
		for _, peer := range rule.To {
			if slices.ContainsFunc(peer.Networks, func(n string) bool { return holds(n, to) }) {
				return rule.Action == pass
			}
		}
	}
	return true
}
