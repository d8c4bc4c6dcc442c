package workload

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Gateway is a Gateway of the Gateway API that serves all hosts of a platform.
type Gateway struct {
	Namespace, Name string
	// Section is the listener to attach to; "" is every one that fits.
	Section string
}

// GatewayOf reads "namespace/name" or "namespace/name/section"; "" is none.
func GatewayOf(setting string) Gateway {
	parts := append(strings.Split(setting, "/"), "", "")
	return Gateway{Namespace: parts[0], Name: parts[1], Section: parts[2]}
}

func (g Gateway) String() string { return g.Namespace + "/" + g.Name }

// hosts returns the hosts of spec.host and spec.hosts, with their defaults.
func (i *image) hosts() []v1alpha1.AppHost {
	hosts := slices.Clone(i.app.Spec.Hosts)
	if i.app.Spec.Host != "" {
		hosts = append(hosts, v1alpha1.AppHost{Host: i.app.Spec.Host})
	}
	for n := range hosts {
		hosts[n].Path = cmp.Or(hosts[n].Path, "/")
		if hosts[n].Port == "" && len(i.Ports) > 0 {
			hosts[n].Port = i.Ports[0].Name
		}
	}
	return hosts
}

func (i *image) service() *corev1.Service {
	ports := make([]corev1.ServicePort, 0, len(i.Ports))
	for _, p := range i.Ports {
		ports = append(ports, corev1.ServicePort{Name: p.Name, Port: servicePort(p), TargetPort: intstr.FromString(p.Name), Protocol: protocolOf(p)})
	}
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: i.meta(""),
		Spec:       corev1.ServiceSpec{Selector: labelsOf(i.app), Ports: ports},
	}
}

func servicePort(p v1alpha1.ImagePort) int32 { return cmp.Or(p.ServicePort, p.Port) }

// routes returns an HTTPRoute for each host (https://gateway-api.sigs.k8s.io/api-types/httproute/), named "<app>.<host>". The rules of an
// HTTPRoute apply to all its hosts, and each host may have paths of its own.
func (i *image) routes() []*unstructured.Unstructured {
	if i.settings.Gateway == (Gateway{}) {
		return nil
	}
	var routes []*unstructured.Unstructured
	rules := map[string][]any{}
	hosts := i.hosts()
	for _, h := range hosts {
		rules[h.Host] = append(rules[h.Host], i.routeRule(h))
	}
	for _, h := range hosts {
		if rules[h.Host] == nil {
			continue
		}
		routes = append(routes, i.route(h.Host, rules[h.Host]))
		delete(rules, h.Host)
	}
	return routes
}

func (i *image) route(host string, rules []any) *unstructured.Unstructured {
	parent := map[string]any{"namespace": i.settings.Gateway.Namespace, "name": i.settings.Gateway.Name}
	if i.settings.Gateway.Section != "" {
		parent["sectionName"] = i.settings.Gateway.Section
	}
	route := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
		"spec": map[string]any{"parentRefs": []any{parent}, "hostnames": []any{host}, "rules": rules},
	}}
	route.SetName(i.app.Name + "." + host)
	route.SetLabels(labelsOf(i.app))
	return route
}

func (i *image) routeRule(h v1alpha1.AppHost) map[string]any {
	n := slices.IndexFunc(i.Ports, func(p v1alpha1.ImagePort) bool { return p.Name == h.Port })
	return map[string]any{
		"matches":     []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": h.Path}}},
		"backendRefs": []any{map[string]any{"name": i.app.Name, "port": int64(servicePort(i.Ports[n]))}},
	}
}
