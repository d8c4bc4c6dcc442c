package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/delivery/command"
)

// gatewayGroups are the groups of Gateways and routes.
var gatewayGroups = []string{"gateway.networking.k8s.io", "gateway.networking.x-k8s.io"}

// written are names of annotations, besides snippets, whose text becomes configuration of an Ingress controller: routes and filters of
// Skipper, mappings of Emissary, conditions of HAProxy's own controller, and a port that HAProxy Ingress opens.
var written = []string{"skipper-filter", "skipper-routes", "route-acl", "tcp-service-port"}

// ledElsewhere are names of annotations with which an Ingress controller, which may reach the pods of every project, calls or serves what
// is not the app's own: auth-url and mirror-target of ingress-nginx and HAProxy Ingress, the addresses of HAProxy's checks, group.name of
// the AWS Load Balancer Controller, auth-uri and svc-namespace of APISIX, mirror-target-service of Higress, where the App Protect of NGINX
// sends its log.
var ledElsewhere = []string{
	"auth-url", "auth-uri", "mirror-target", "mirror-target-service", "group.name", "svc-namespace", "agent-check-addr", "health-check-addr", "app-protect-security-log-destination",
}

// naming are names of annotations with which an object serves host names that are not in its rules, or gets a certificate for one: of
// ingress-nginx, HAProxy Ingress and its successors, Kong, cert-manager and Gardener. HostnameClaims are about rules, listeners and tls
// only.
var naming = []string{
	"server-alias", "server-alias-regex", "host-alias", "host-alias-regex", "host-aliases", "redirect-from", "redirect-from-regex",
	"common-name", "commonname", "alt-names", "ip-sans", "uri-sans", "email-sans", "dnsnames",
}

// referring are names of annotations, besides those that end with -secret and -configmap, with a value "<namespace>/<name>" of an object
// that the controller reads.
var referring = []string{"custom-headers", "auth-proxy-set-headers", "server-ca", "server-crt", "policies", "app-protect-policy", "app-protect-security-log", "cr-backend"}

// addressing are names of annotations with which a Service takes an address of load balancers, or shares the load balancer or the address
// of another Service: of MetalLB, Cilium, kube-vip, AWS, Google, Azure, OpenStack, Alibaba, Tencent and Huawei. They have the place of
// spec.loadBalancerIP, which no app may have.
var addressing = []string{
	"loadbalancerips", "allow-shared-ip", "lb-ipam-ips", "ips", "sharing-key", "lb-ipam-sharing-key", "aws-load-balancer-eip-allocations", "aws-load-balancer-private-ipv4-addresses",
	"aws-load-balancer-ipv6-addresses", "load-balancer-ip-addresses", "azure-load-balancer-ipv4", "azure-load-balancer-ipv6", "azure-pip-name", "azure-pip-name-ipv6", "azure-pip-prefix-id",
	"load-balancer-id", "load-balancer-address", "ingress.global-static-ip-name", "ingress.regional-static-ip-name", "alibaba-cloud-loadbalancer-id", "tke-existed-lbid", "elb.id",
	"vra-load-balancer-address",
}

// traefiks are names of annotations of Traefik with values "<namespace>-<name>@kubernetescrd".
var traefiks = []string{"router.middlewares", "router.tls.options", "service.serverstransport"}

// ingressAnnotation: the Ingress, Service, Gateway or route has an annotation that reaches beyond the app, and the tenant may not have it.
// Snippets are text in the configuration of the Ingress controller, which serves all tenants (CVE-2021-25742). external-dns makes DNS
// records for any name. Controllers read some annotations of Services, too, and cert-manager those of Gateways.
func (b Bounds) ingressAnnotation(object *unstructured.Unstructured, namespace string) string {
	kind := object.GroupVersionKind()
	ingress := kind.Group == networkingv1.GroupName && kind.Kind == "Ingress"
	if !ingress && !slices.Contains(gatewayGroups, kind.Group) && (kind.Group != "" || kind.Kind != "Service") {
		return ""
	}
	metadata, _ := object.Object["metadata"].(map[string]any)
	spec, _ := object.Object["spec"].(map[string]any)
	infrastructure, _ := spec["infrastructure"].(map[string]any) // The controller of a Gateway writes its annotations into the Service that it makes.
	return cmp.Or(b.annotated(metadata["annotations"], namespace), b.annotated(infrastructure["annotations"], namespace))
}

// ingressPath: a path of the Ingress has a character with which Ingress controllers end a text of their configuration: Traefik writes paths
// in backquotes into the rule of a route, in which hosts are, too, NGINX in quotes, and HAProxy before white space.
func ingressPath(object *unstructured.Unstructured, _ string) string {
	if kind := object.GroupVersionKind(); kind.Group != networkingv1.GroupName || kind.Kind != "Ingress" {
		return ""
	}
	rules, _, _ := unstructured.NestedSlice(object.Object, "spec", "rules") // The API server refuses other types.
	for _, rule := range rules {
		fields, _ := rule.(map[string]any)
		paths, _, _ := unstructured.NestedSlice(fields, "http", "paths")
		for _, one := range paths {
			fields, _ := one.(map[string]any)
			if path, _ := fields["path"].(string); strings.ContainsFunc(path, endsText) {
				return fmt.Sprintf("has the path %s, in which quotes, white space or control characters could end it in the configuration of the Ingress controller, which all tenants share; in spec.rules they are written as in a URL, such as %%20", oneLine(path))
			}
		}
	}
	return ""
}

func endsText(r rune) bool {
	return strings.ContainsRune("`'\"", r) || unicode.IsSpace(r) || unicode.IsControl(r)
}

// routeMatch: a match of the route has a character with which the controller of a Gateway ends a text of its configuration: Traefik writes paths, and names and values of headers and
// query parameters, in backquotes into the rule of a route, in which hosts are, too. Values of headers may have other quotes and white space.
func routeMatch(object *unstructured.Unstructured, _ string) string {
	if group := object.GroupVersionKind().Group; !slices.Contains(gatewayGroups, group) {
		return ""
	}
	rules, _, _ := unstructured.NestedSlice(object.Object, "spec", "rules") // The API server refuses other types.
	for _, rule := range rules {
		fields, _ := rule.(map[string]any)
		matches, _ := fields["matches"].([]any)
		for _, match := range matches {
			fields, _ := match.(map[string]any)
			if text := endedIn(fields["path"], fields["method"], fields["headers"], fields["queryParams"]); text != "" {
				return fmt.Sprintf(`has the match %s in spec.rules, in which a backquote or control character could end it in the configuration of the Gateway's controller, which all tenants share: write it in a regular expression, such as \x60`, oneLine(text))
			}
		}
	}
	return ""
}

// endedIn returns the first text below some values in which a character ends a text of Traefik's; "" if there is none.
func endedIn(values ...any) string {
	for _, value := range values {
		found := ""
		switch v := value.(type) {
		case string:
			if strings.ContainsFunc(v, func(r rune) bool { return r == '`' || unicode.IsControl(r) }) {
				found = v
			}
		case []any:
			found = endedIn(v...)
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				found = cmp.Or(found, endedIn(v[key]))
			}
		}
		if found != "" {
			return found
		}
	}
	return ""
}

// annotated says which of some annotations reaches beyond the app; "" if none does.
func (b Bounds) annotated(some any, namespace string) string {
	annotations, _ := some.(map[string]any)
	for _, key := range sortedKeys(annotations) {
		value, _ := annotations[key].(string)
		why := cmp.Or(namesDNS(key), reachesBeyond(key, value, namespace))
		if why == "" || slices.Contains(b.IngressAnnotations, key) {
			continue
		}
		return fmt.Sprintf("has the annotation %s, which %s: take it out, or ask an administrator of the cluster to list it in %s",
			oneLine(key), why, command.OfTenant("spec.ingressAnnotations"))
	}
	return ""
}

// pathMatchers are what router.pathmatcher of Traefik may be. Traefik writes its text into the rule of the route, in which a host could be, too.
var pathMatchers = []string{"Path", "PathPrefix", "PathRegexp", "PathStrip", "PathStripRegex", "PathPrefixRegexp", "PathPrefixStrip", "PathPrefixStripRegex"}

// servesOthers reports whether an annotation has the object serve host names that are not in its rules, or gets a certificate for one.
func servesOthers(name, value string) bool {
	switch name {
	case "from-to-www-redirect":
		return !strings.EqualFold(value, "false")
	case "router.pathmatcher":
		return !slices.Contains(pathMatchers, value)
	}
	return slices.Contains(naming, name) || strings.HasPrefix(name, "conditions.") || strings.HasPrefix(name, "router.tls.domains.")
}

// namesDNS returns how an annotation of external-dns reaches beyond its app; "" if it does not. HostnameClaims are about hosts in objects,
// not in annotations.
func namesDNS(key string) string {
	domain, name, _ := strings.Cut(strings.ToLower(key), "/")
	switch {
	case !strings.HasPrefix(domain, "external-dns."):
		return ""
	case strings.HasSuffix(name, "hostname"):
		return "has DNS records made for a host name that kubeop does not check"
	case name == "target":
		return "leads the DNS records of its hosts to what is not the app's"
	}
	return ""
}

// reachesBeyond returns how an annotation that Ingress controllers or cert-manager read reaches beyond its app; "" if it does not.
func reachesBeyond(key, value, namespace string) string {
	domain, name := "", strings.ToLower(key)
	if at := strings.LastIndex(name, "/"); at >= 0 {
		domain, name = name[:at], name[at+1:]
	}
	switch {
	case strings.Contains(name, "snippet"), strings.HasPrefix(name, "config-"), slices.Contains(written, name), domain == "getambassador.io" && name == "config":
		return "writes configuration of the Ingress controller, which all tenants share"
	case slices.Contains(ledElsewhere, name), strings.HasPrefix(name, "actions."), domain == "higress.io" && name == "destination":
		return "leads the Ingress controller to what is not the app's"
	case servesOthers(name, value):
		return "names a host that is not in the rules of the Ingress, which kubeop checks"
	}
	if slices.Contains(addressing, name) && (name != "ips" && name != "sharing-key" || domain == "lbipam.cilium.io") && (name != "elb.id" || domain == "kubernetes.io") {
		return "takes an address of load balancers that may be meant for others"
	}
	if other := otherNamespace(name, value, namespace); other != "" {
		return "names an object of " + other
	}
	return ""
}

// otherNamespace returns which other namespace the value of an annotation names, such as that of a Secret; "" for none. The value may be a list.
func otherNamespace(name, value, namespace string) string {
	refers := strings.HasSuffix(name, "-secret") || strings.HasSuffix(name, "-configmap") || slices.Contains(referring, name)
	for _, part := range strings.Split(value, ",") {
		part = strings.TrimSpace(part)
		other, _, names := strings.Cut(part, "/")
		switch {
		case refers && names && other != namespace:
			return "namespace " + oneLine(other)
		// No namespace of another tenant begins with the name of this one and a dash, because names of tenants have none.
		case slices.Contains(traefiks, name) && strings.HasSuffix(part, "@kubernetescrd") && !strings.HasPrefix(part, namespace+"-") && !strings.HasPrefix(part, namespace+"_"):
			return "another namespace: " + oneLine(part)
		}
	}
	return ""
}
