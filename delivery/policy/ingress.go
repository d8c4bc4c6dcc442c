package policy

import (
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/delivery/command"
)

// ledElsewhere are names of annotations with which an Ingress controller, which may reach the pods of every project, calls or serves what is
// not the app's own: auth-url and mirror-target of ingress-nginx, group.name of the AWS Load Balancer Controller.
var ledElsewhere = []string{"auth-url", "mirror-target", "group.name"}

// naming are names of annotations with which an Ingress serves host names that are not in its rules, or gets a certificate for one: server-alias of
// ingress-nginx and HAProxy, server-alias-regex of HAProxy, common-name of cert-manager. HostnameClaims are about rules and tls only.
var naming = []string{"server-alias", "server-alias-regex", "common-name"}

// ingressAnnotation: the Ingress, Service, Gateway or route has an annotation that reaches beyond the app, and the tenant may not have it. Snippets are
// text in the configuration of the Ingress controller, which serves all tenants (CVE-2021-25742). external-dns makes DNS records for any name.
func (b Bounds) ingressAnnotation(object *unstructured.Unstructured, namespace string) string {
	kind := object.GroupVersionKind()
	ingress := kind.Group == networkingv1.GroupName && kind.Kind == "Ingress"
	if !ingress && kind.Group != "gateway.networking.k8s.io" && (kind.Group != "" || kind.Kind != "Service") {
		return ""
	}
	metadata, _ := object.Object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	for _, key := range sortedKeys(annotations) {
		value, _ := annotations[key].(string)
		why := namesDNS(key)
		if ingress && why == "" {
			why = reachesBeyond(key, value, namespace)
		}
		if why == "" || slices.Contains(b.IngressAnnotations, key) {
			continue
		}
		return fmt.Sprintf("has the annotation %s, which %s: take it out, or ask an administrator of the cluster to list it in %s",
			oneLine(key), why, command.OfTenant("spec.ingressAnnotations"))
	}
	return ""
}

// namesDNS returns how an annotation of external-dns reaches beyond its app; "" if it does not. HostnameClaims are about hosts in objects, not in annotations.
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

// reachesBeyond returns how an annotation of an Ingress reaches beyond its app; "" if it does not.
func reachesBeyond(key, value, namespace string) string {
	name := strings.ToLower(key[strings.LastIndex(key, "/")+1:])
	other, _, names := strings.Cut(value, "/")
	refers := strings.HasSuffix(name, "-secret") || strings.HasSuffix(name, "-configmap") || name == "custom-headers"
	switch {
	case strings.Contains(name, "snippet"), strings.HasPrefix(name, "config-"):
		return "writes configuration of the Ingress controller, which all tenants share"
	case slices.Contains(ledElsewhere, name):
		return "leads the Ingress controller to what is not the app's"
	case slices.Contains(naming, name):
		return "names a host that is not in the rules of the Ingress, which kubeop checks"
	case refers && names && other != namespace:
		return "names an object of namespace " + oneLine(other)
	}
	return ""
}
