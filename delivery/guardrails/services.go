package guardrails

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/few"
)

// services: a Service may be reached from outside of the cluster, and lead there, only as the policy allows.
func services(object *unstructured.Unstructured, rules *v1alpha1.PolicyRules) []found {
	rule, kind := rules.Services, object.GroupVersionKind()
	if rule == nil || kind.Group != "" || kind.Kind != "Service" {
		return nil
	}
	spec, _ := object.Object["spec"].(map[string]any)
	of, _ := spec["type"].(string)
	is := corev1.ServiceType(cmp.Or(of, string(corev1.ServiceTypeClusterIP)))
	broken := externals(spec, is, rule)
	byName := is == corev1.ServiceTypeExternalName && len(rule.ExternalNames) > 0
	if len(rule.Types) > 0 && !byName && !slices.Contains(rule.Types, string(is)) {
		broken = append(broken, found{"services.types", fmt.Sprintf("is of type %s; allowed are: %s", few.Line(string(is), maxQuoted), listed(rule.Types))})
	}
	// The API server judges a missing class: a webhook of the cluster, as that of the AWS Load Balancer Controller, may fill it in.
	if class, _ := spec["loadBalancerClass"].(string); class != "" && len(rule.LoadBalancerClasses) > 0 && !slices.Contains(rule.LoadBalancerClasses, class) {
		broken = append(broken, found{"services.loadBalancerClasses", "has loadBalancerClass " + few.Line(class, maxQuoted) + "; allowed are: " + listed(rule.LoadBalancerClasses)})
	}
	if is == corev1.ServiceTypeLoadBalancer && len(rule.LoadBalancerSourceRanges) > 0 {
		if why := beyond(spec["loadBalancerSourceRanges"], rule.LoadBalancerSourceRanges); why != "" {
			broken = append(broken, found{"services.loadBalancerSourceRanges", why + "; allowed are: " + listed(rule.LoadBalancerSourceRanges)})
		}
	}
	if len(rule.NodePorts) > 0 {
		if why := foreignPort(spec, is, rule.NodePorts); why != "" {
			broken = append(broken, found{"services.nodePorts", why + "; allowed are: " + listed(PortRanges(rule.NodePorts))})
		}
	}
	return broken
}

// externals judges the external name and the external IPs of a Service. Package policy refuses those that no policy lists.
func externals(spec map[string]any, is corev1.ServiceType, rule *v1alpha1.ServiceRules) (broken []found) {
	name, _ := spec["externalName"].(string)
	if (name != "" || is == corev1.ServiceTypeExternalName) && len(rule.ExternalNames) > 0 && !NameListed(rule.ExternalNames, name) {
		broken = append(broken, found{"services.externalNames", "has the external name " + few.Line(name, maxQuoted) + ", which is not below the allowed domains: " + listed(rule.ExternalNames)})
	}
	if len(rule.ExternalIPs) == 0 {
		return broken
	}
	ips, _ := spec["externalIPs"].([]any)
	for _, ip := range ips {
		if text := fmt.Sprint(ip); !AddressListed(rule.ExternalIPs, text) {
			return append(broken, found{"services.externalIPs", "has the external IP " + few.Line(text, maxQuoted) + ", which is in none of the allowed ranges: " + listed(rule.ExternalIPs)})
		}
	}
	return broken
}

// NameListed reports whether an external name is one of the domains or below one.
func NameListed(domains []string, name string) bool {
	return below(domains, strings.TrimSuffix(name, "."))
}

// AddressListed reports whether an address is in one of the ranges.
func AddressListed(ranges []string, address string) bool {
	ip, err := netip.ParseAddr(address)
	return err == nil && slices.ContainsFunc(ranges, func(of string) bool {
		within, err := netip.ParsePrefix(of)
		return err == nil && within.Contains(ip)
	})
}

// ExternalNames returns the domains that some policy lists for external names of Services, and ExternalIPs the ranges for their external IPs, each sorted and without duplicates. What
// none lists is refused, whatever the action of a policy is; what only some list, the others refuse by their own actions. spec is nil if no policy holds.
func ExternalNames(spec *v1alpha1.GuardrailsSpec) []string {
	return ofServices(spec, func(rule *v1alpha1.ServiceRules) []string { return rule.ExternalNames })
}

// ExternalIPs is ExternalNames for external IPs.
func ExternalIPs(spec *v1alpha1.GuardrailsSpec) []string {
	return ofServices(spec, func(rule *v1alpha1.ServiceRules) []string { return rule.ExternalIPs })
}

func ofServices(spec *v1alpha1.GuardrailsSpec, list func(*v1alpha1.ServiceRules) []string) (all []string) {
	if spec == nil {
		return nil
	}
	for _, applied := range slices.Concat(spec.Deny, spec.Warn, spec.Audit) {
		if applied.Services != nil {
			all = append(all, list(applied.Services)...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// foreignPort says which port of the nodes a Service has or gets that is in none of the ranges; "" if there is none. The API server gives any port of the cluster to what names none.
func foreignPort(spec map[string]any, is corev1.ServiceType, ranges []v1alpha1.NodePortRange) string {
	balanced := is == corev1.ServiceTypeLoadBalancer
	if !balanced && is != corev1.ServiceTypeNodePort {
		return ""
	}
	allocated := !balanced || spec["allocateLoadBalancerNodePorts"] != false
	for _, port := range mappings(spec["ports"]) {
		switch n := port["nodePort"]; {
		case unset(n) && allocated:
			return fmt.Sprintf("names no nodePort for port %v, and so gets any of the cluster", few.Line(fmt.Sprint(port["port"]), maxQuoted))
		case !unset(n) && !portListed(ranges, n):
			return "has the node port " + few.Line(fmt.Sprint(n), maxQuoted)
		}
	}
	switch n := spec["healthCheckNodePort"]; {
	case unset(n) && balanced && spec["externalTrafficPolicy"] == string(corev1.ServiceExternalTrafficPolicyLocal):
		return "names no healthCheckNodePort, and so gets any port of the cluster"
	case !unset(n) && !portListed(ranges, n):
		return "has the node port " + few.Line(fmt.Sprint(n), maxQuoted)
	}
	return ""
}

// unset reports whether a number of an object is missing or 0.
func unset(number any) bool { return number == nil || fmt.Sprint(number) == "0" }

func portListed(ranges []v1alpha1.NodePortRange, number any) bool {
	n, err := strconv.ParseInt(fmt.Sprint(number), 10, 32)
	return err == nil && slices.ContainsFunc(ranges, func(r v1alpha1.NodePortRange) bool { return int32(n) >= r.Port && int32(n) <= max(r.Port, r.EndPort) })
}

// PortRanges names ranges of ports of nodes, such as "30000-30009" and "30020".
func PortRanges(ranges []v1alpha1.NodePortRange) (names []string) {
	for _, r := range ranges {
		if r.EndPort > r.Port {
			names = append(names, fmt.Sprintf("%d-%d", r.Port, r.EndPort))
		} else {
			names = append(names, fmt.Sprint(r.Port))
		}
	}
	return names
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
