package guardrails

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/hostname"
)

// services: a Service may be reached from outside of the cluster only as the policy allows.
func services(object *unstructured.Unstructured, rules *v1alpha1.PolicyRules) []found {
	rule, kind := rules.Services, object.GroupVersionKind()
	if rule == nil || kind.Group != "" || kind.Kind != "Service" {
		return nil
	}
	var broken []found
	spec, _ := object.Object["spec"].(map[string]any)
	is, _ := spec["type"].(string)
	if is == "" {
		is = string(corev1.ServiceTypeClusterIP)
	}
	if len(rule.Types) > 0 && !slices.Contains(rule.Types, is) {
		broken = append(broken, found{"services.types", fmt.Sprintf("is of type %s; allowed are: %s", few.Line(is, maxQuoted), listed(rule.Types))})
	}
	// The API server judges a missing class: a webhook of the cluster, as that of the AWS Load Balancer Controller, may fill it in.
	if class, _ := spec["loadBalancerClass"].(string); class != "" && len(rule.LoadBalancerClasses) > 0 && !slices.Contains(rule.LoadBalancerClasses, class) {
		broken = append(broken, found{"services.loadBalancerClasses", "has loadBalancerClass " + few.Line(class, maxQuoted) + "; allowed are: " + listed(rule.LoadBalancerClasses)})
	}
	if is == string(corev1.ServiceTypeLoadBalancer) && len(rule.LoadBalancerSourceRanges) > 0 {
		if why := beyond(spec["loadBalancerSourceRanges"], rule.LoadBalancerSourceRanges); why != "" {
			broken = append(broken, found{"services.loadBalancerSourceRanges", why + "; allowed are: " + listed(rule.LoadBalancerSourceRanges)})
		}
	}
	return broken
}

// beyond says why the address ranges that may connect to a load balancer are not inside the allowed ones; "" if they are.
func beyond(ranges any, allowed []string) string {
	list, _ := ranges.([]any)
	if len(list) == 0 {
		return "has no loadBalancerSourceRanges, so that everybody could connect"
	}
	for _, one := range list {
		text := strings.TrimSpace(fmt.Sprint(one))
		prefix, err := netip.ParsePrefix(text)
		if err != nil || !slices.ContainsFunc(allowed, func(of string) bool { return inside(prefix, of) }) {
			return "lets " + few.Line(text, maxQuoted) + " connect with loadBalancerSourceRanges"
		}
	}
	return ""
}

// inside reports whether a range is inside another one.
func inside(prefix netip.Prefix, of string) bool {
	outer, err := netip.ParsePrefix(of)
	return err == nil && outer.Bits() <= prefix.Bits() && outer.Contains(prefix.Addr())
}

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
