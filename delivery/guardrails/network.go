package guardrails

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/hostname"
)

// hostnames: an Ingress, a route or a Gateway may serve only names below the domains of the policy.
func hostnames(object *unstructured.Unstructured, rules *v1alpha1.PolicyRules) []found {
	rule := rules.Hostnames
	if rule == nil {
		return nil
	}
	var broken []found
	for _, host := range Hosts(object) {
		name := strings.TrimSuffix(strings.ToLower(host), ".")
		name, wildcard := strings.CutPrefix(name, "*.")
		switch {
		case host == "":
			broken = append(broken, found{"hostnames.suffixes", EveryHost})
		case !below(rule.Suffixes, name):
			broken = append(broken, found{"hostnames.suffixes", fmt.Sprintf("has the host %s, which is not below the allowed domains: %s", few.Line(host, maxQuoted), listed(rule.Suffixes))})
		case wildcard && !rule.Wildcards:
			broken = append(broken, found{"hostnames.wildcards", fmt.Sprintf("has the host %s, and wildcards are not allowed: name each host in Git", few.Line(host, maxQuoted))})
		}
	}
	return broken
}

// EveryHost says that an object serves every host name, in words that follow its name.
const EveryHost = "serves every host name, because it has a default backend, or a rule, route or listener without a host: name the host in Git"

// below reports whether a host name is one of the domains or below one.
func below(domains []string, host string) bool {
	return slices.ContainsFunc(domains, func(domain string) bool { return hostname.Below(domain, host) })
}

// gatewayGroup is the API group of the Gateway API.
const gatewayGroup = "gateway.networking.k8s.io"

// listenerSets are the kinds with listeners of a Gateway that are in an object of their own, by their groups: the later and the earlier one.
var listenerSets = map[string]string{gatewayGroup: "ListenerSet", "gateway.networking.x-k8s.io": "XListenerSet"}

// routes are the kinds of the Gateway API that have host names.
var routes = []string{"HTTPRoute", "GRPCRoute", "TLSRoute"}

// HostKinds are the kinds of objects that serve host names.
var HostKinds = []schema.GroupKind{
	{Group: "networking.k8s.io", Kind: "Ingress"}, {Group: gatewayGroup, Kind: "Gateway"},
	{Group: gatewayGroup, Kind: "ListenerSet"}, {Group: "gateway.networking.x-k8s.io", Kind: "XListenerSet"},
	{Group: gatewayGroup, Kind: routes[0]}, {Group: gatewayGroup, Kind: routes[1]}, {Group: gatewayGroup, Kind: routes[2]},
}

// Hosts returns the host names that an Ingress, a route, a Gateway or a ListenerSet serves; "" stands for every name. Each is returned once.
func Hosts(object *unstructured.Unstructured) []string {
	kind := object.GroupVersionKind()
	spec, _ := object.Object["spec"].(map[string]any)
	var named []any
	switch {
	case kind.Group == "networking.k8s.io" && kind.Kind == "Ingress":
		named = ingressHosts(spec)
	case kind.Group == gatewayGroup && kind.Kind == "Gateway", kind.Kind != "" && kind.Kind == listenerSets[kind.Group]:
		for _, listener := range mappings(spec["listeners"]) {
			if protocol := listener["protocol"]; protocol != "TCP" && protocol != "UDP" {
				named = append(named, listener["hostname"])
			}
		}
	case kind.Group == gatewayGroup && slices.Contains(routes, kind.Kind):
		if named, _ = spec["hostnames"].([]any); len(named) == 0 {
			named = []any{""}
		}
	}
	var hosts []string
	for _, host := range named {
		if name, _ := host.(string); !slices.Contains(hosts, name) {
			hosts = append(hosts, name)
		}
	}
	return hosts
}

// ingressHosts returns the hosts of an Ingress: of its rules, also of those without a host, and of its certificates, which cert-manager makes.
func ingressHosts(spec map[string]any) (hosts []any) {
	if spec["defaultBackend"] != nil {
		hosts = append(hosts, "")
	}
	rules, _ := spec["rules"].([]any)
	for _, one := range rules {
		rule, _ := one.(map[string]any)
		hosts = append(hosts, rule["host"])
	}
	for _, certificate := range mappings(spec["tls"]) {
		names, _ := certificate["hosts"].([]any)
		hosts = append(hosts, names...)
	}
	return hosts
}
