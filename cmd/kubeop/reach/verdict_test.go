package reach

import (
	"testing"

	"github.com/mattfenwick/cyclonus/pkg/matcher"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// policyOf returns a policy of namespace kubeop-acme-shop with a spec.
func policyOf(t *testing.T, name, spec string) networkingv1.NetworkPolicy {
	t.Helper()
	policy := networkingv1.NetworkPolicy{}
	policy.Name, policy.Namespace = name, "kubeop-acme-shop"
	if err := yaml.UnmarshalStrict([]byte(spec), &policy.Spec); err != nil {
		t.Fatal(err)
	}
	return policy
}

func pod(namespace, app, address string) *matcher.TrafficPeer {
	return &matcher.TrafficPeer{IP: address, Internal: &matcher.InternalPeer{
		Namespace: namespace, NamespaceLabels: map[string]string{corev1.LabelMetadataName: namespace}, PodLabels: map[string]string{"app": app},
	}}
}

// isolated is what kubeop writes, in short.
const isolated = `{podSelector: {}, policyTypes: [Ingress, Egress],
  ingress: [{from: [{podSelector: {}}]}, {from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ingress}}}]}],
  egress: [{to: [{podSelector: {}}]}, {to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}}], ports: [{protocol: UDP, port: 53}]},
    {to: [{ipBlock: {cidr: 203.0.113.0/24, except: [203.0.113.128/25]}}], ports: [{protocol: TCP, port: 8000, endPort: 8999}]}]}`

// closed is what kubeop writes for a project with network policies of its own, and opening is one of these.
const (
	closed = `{podSelector: {}, policyTypes: [Ingress, Egress],
  egress: [{to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}}], ports: [{protocol: UDP, port: 53}]}]}`
	opening = `{podSelector: {matchLabels: {app: web}}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: 203.0.113.0/24}}], ports: [{port: 8080}]}]}`
)

func TestTheRulesOfThePolicyThatSelectsThePodDecide(t *testing.T) {
	const own = "NetworkPolicy kubeop-acme-shop/kubeop"
	web := pod("kubeop-acme-shop", "web", "10.1.0.1")
	http := port{number: 8080, name: "http", protocol: corev1.ProtocolTCP}
	for name, c := range map[string]struct {
		specs   map[string]string
		egress  bool
		other   *matcher.TrafficPeer
		at      port
		allowed bool
		why     string
	}{
		"from another project":      {map[string]string{"kubeop": isolated}, false, pod("kubeop-acme-billing", "api", "10.1.0.2"), http, false, "no rule allows it of " + own},
		"from an address":           {map[string]string{"kubeop": isolated}, false, &matcher.TrafficPeer{IP: "203.0.113.1"}, http, false, "no rule allows it of " + own},
		"to another project":        {map[string]string{"kubeop": isolated}, true, pod("kubeop-acme-billing", "api", "10.1.0.2"), http, false, "no rule allows it of " + own},
		"to an excepted address":    {map[string]string{"kubeop": isolated}, true, &matcher.TrafficPeer{IP: "203.0.113.200"}, http, false, "no rule allows it of " + own},
		"to a port below":           {map[string]string{"kubeop": isolated}, true, &matcher.TrafficPeer{IP: "203.0.113.1"}, port{number: 443, protocol: "TCP"}, false, "no rule allows it of " + own},
		"by another protocol":       {map[string]string{"kubeop": isolated}, true, pod("kube-system", "dns", "10.1.0.3"), port{number: 53, protocol: "TCP"}, false, "no rule allows it of " + own},
		"to IPv6":                   {map[string]string{"kubeop": isolated}, true, &matcher.TrafficPeer{IP: "2001:db8::1"}, http, false, "no rule allows it of " + own},
		"to a pod without address":  {map[string]string{"kubeop": isolated}, true, pod("kubeop-acme-billing", "api", ""), http, false, "no rule allows it of " + own},
		"only of the other side":    {map[string]string{"kubeop": `{podSelector: {}, policyTypes: [Ingress]}`}, true, &matcher.TrafficPeer{IP: "203.0.113.1"}, http, true, "no NetworkPolicy selects the pod"},
		"of other pods":             {map[string]string{"kubeop": `{podSelector: {matchLabels: {app: api}}, policyTypes: [Ingress, Egress]}`}, false, &matcher.TrafficPeer{IP: "203.0.113.1"}, http, true, "no NetworkPolicy selects the pod"},
		"none":                      {nil, false, &matcher.TrafficPeer{IP: "203.0.113.1"}, http, true, "no NetworkPolicy selects the pod"},
		"from the same project":     {map[string]string{"kubeop": isolated}, false, pod("kubeop-acme-shop", "api", "10.1.0.2"), http, true, own + ": spec.ingress[0]"},
		"from the ingress":          {map[string]string{"kubeop": isolated}, false, pod("ingress", "nginx", "10.1.0.2"), http, true, own + ": spec.ingress[1]"},
		"to DNS":                    {map[string]string{"kubeop": isolated}, true, pod("kube-system", "dns", "10.1.0.3"), port{number: 53, protocol: "UDP"}, true, own + ": spec.egress[1]"},
		"to an address":             {map[string]string{"kubeop": isolated}, true, &matcher.TrafficPeer{IP: "203.0.113.1"}, http, true, own + ": spec.egress[2]"},
		"two policies, one refuses": {map[string]string{"kubeop": isolated, "own": `{podSelector: {}, policyTypes: [Ingress], ingress: [{from: [{namespaceSelector: {}}], ports: [{port: http}]}]}`}, false, pod("kubeop-acme-billing", "api", ""), http, true, "NetworkPolicy kubeop-acme-shop/own: spec.ingress[0]"},
		"closed, and opened by the project's own": {map[string]string{"kubeop": closed, "own": opening}, true, &matcher.TrafficPeer{IP: "203.0.113.1"}, http, true,
			"NetworkPolicy kubeop-acme-shop/own: spec.egress[0]"},
		"closed, and the project's own opens other ports": {map[string]string{"kubeop": closed, "own": opening}, true, &matcher.TrafficPeer{IP: "203.0.113.1"},
			port{number: 443, protocol: corev1.ProtocolTCP}, false, "no rule allows it of NetworkPolicy kubeop-acme-shop/kubeop, NetworkPolicy kubeop-acme-shop/own"},
		"closed, within the project": {map[string]string{"kubeop": closed, "own": opening}, false, pod("kubeop-acme-shop", "api", "10.1.0.2"), http, false, "no rule allows it of " + own},
		"two rules":                  {map[string]string{"kubeop": `{podSelector: {}, policyTypes: [Ingress], ingress: [{}, {ports: [{port: 80}]}, {ports: [{port: 8080}]}]}`}, false, &matcher.TrafficPeer{IP: "203.0.113.1"}, http, true, own + ": spec.ingress[0], spec.ingress[2]"},
		"a port's other name":        {map[string]string{"kubeop": `{podSelector: {}, policyTypes: [Ingress], ingress: [{ports: [{port: metrics}]}]}`}, false, &matcher.TrafficPeer{IP: "203.0.113.1"}, http, false, "no rule allows it of " + own},
	} {
		t.Run(name, func(t *testing.T) {
			var policies []networkingv1.NetworkPolicy
			for _, name := range []string{"kubeop", "own"} {
				if spec := c.specs[name]; spec != "" {
					policies = append(policies, policyOf(t, name, spec))
				}
			}
			got := ingressOf(policies, c.other, web, c.at)
			if c.egress {
				got = egressOf(policies, web, c.other, c.at)
			}
			if want := (verdict{c.allowed, c.why}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
	if got := ingressOf([]networkingv1.NetworkPolicy{policyOf(t, "kubeop", isolated)}, web, &matcher.TrafficPeer{IP: "203.0.113.1"}, http); got != outside {
		t.Errorf("of an address outside: %+v", got)
	}
}
