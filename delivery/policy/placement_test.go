package policy

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// judge checks an object of an app whose tenant may tolerate gpu, and may have one of the annotations that are refused by default. want is
// the rule and the beginning of the message; "" if the object is allowed.
func judge(t *testing.T, manifest, want string) {
	t.Helper()
	bounds := Bounds{Namespace: namespace, Taints: []string{"gpu"}, IngressAnnotations: []string{"nginx.ingress.kubernetes.io/server-snippet"}, CSIDrivers: []string{"secrets-store.csi.k8s.io"}}
	err := Check([]*unstructured.Unstructured{object(t, manifest)}, bounds, scope)
	if want == "" {
		if err != nil {
			t.Errorf("got %v, want no violation", err)
		}
		return
	}
	if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want %q", err, want)
	}
}

const (
	podOf        = `{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: web, image: web}], %s}}`
	deploymentOf = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {containers: [{name: web, image: web}], %s}}}}`
	cronJobOf    = `{apiVersion: batch/v1, kind: CronJob, metadata: {name: web}, spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: web, image: web}], %s}}}}}}`
	customOf     = `{apiVersion: example.com/v1, kind: Database, metadata: {name: web}, spec: {pods: {%s}}}`
)

func TestPodsMayTolerateOnlyWhatTheirTenantMay(t *testing.T) {
	const refused = "/web tolerates the taint %s, and nodes with it are not for this tenant: take it out, or ask an administrator of the cluster to list %s in spec.taints of the Tenant"
	for name, c := range map[string]struct{ field, want string }{
		"none":                    {"tolerations: []", ""},
		"lost nodes":              {"tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists}, {key: node.kubernetes.io/unreachable, effect: NoExecute, operator: Exists, tolerationSeconds: 1}]", ""},
		"one that is allowed":     {"tolerations: [{key: gpu, value: a100, effect: NoSchedule}]", ""},
		"everything":              {"tolerations: [{operator: Exists}]", "/web tolerates every taint, because a toleration has no key"},
		"everything, after one":   {"tolerations: [{key: gpu}, {key: \"\", operator: Exists}]", "/web tolerates every taint"},
		"control planes":          {"tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists}]", fmt.Sprintf(refused, "node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/control-plane")},
		"nodes that are drained":  {"tolerations: [{key: node.kubernetes.io/unschedulable, operator: Exists}]", fmt.Sprintf(refused, "node.kubernetes.io/unschedulable", "node.kubernetes.io/unschedulable")},
		"nodes of another tenant": {"tolerations: [{key: gpu}, {key: tenant, value: beta}]", fmt.Sprintf(refused, "tenant", "tenant")},
	} {
		for kind, of := range map[string]string{"Pod": podOf, "Deployment": deploymentOf, "CronJob": cronJobOf, "Database": customOf} {
			t.Run(name+" of a "+kind, func(t *testing.T) {
				want := c.want
				if want != "" {
					want = kind + want
				}
				judge(t, fmt.Sprintf(of, c.field), want)
			})
		}
	}
}

func TestADefinitionOfTolerationsIsNone(t *testing.T) {
	judge(t, `{apiVersion: example.com/v1, kind: Schema, metadata: {name: web}, properties: {tolerations: {type: array}, podAntiAffinity: {properties: {}}, spec: {nodeName: a}}}`, "")
}

func TestPodsStayNearPodsOfTheirNamespace(t *testing.T) {
	const refused = "/web has %s with pods of other namespaces; leave namespaces and namespaceSelector out in Git, so that it is with pods of namespace kubeop-acme-web"
	for name, c := range map[string]struct{ field, want string }{
		"its own pods":              {"affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {}, namespaces: [kubeop-acme-web]}]}}", ""},
		"nodes":                     {"affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}", ""},
		"terms of another field":    {"peers: {requiredDuringSchedulingIgnoredDuringExecution: [{namespaces: [beta]}]}", ""},
		"another namespace":         {"affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, namespaces: [kubeop-acme-web, beta]}]}}", fmt.Sprintf(refused, "podAffinity")},
		"all namespaces":            {"affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone}, {topologyKey: zone, namespaceSelector: {}}]}}", fmt.Sprintf(refused, "podAntiAffinity")},
		"all namespaces, preferred": {"affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: zone, namespaceSelector: {}}}]}}", fmt.Sprintf(refused, "podAntiAffinity")},
	} {
		for kind, of := range map[string]string{"Pod": podOf, "Deployment": deploymentOf, "Database": customOf} {
			t.Run(name+" of a "+kind, func(t *testing.T) {
				want := c.want
				if want != "" {
					want = kind + want
				}
				judge(t, fmt.Sprintf(of, c.field), want)
			})
		}
	}
}

func TestPodsAreScheduled(t *testing.T) {
	judge(t, fmt.Sprintf(podOf, "nodeName: a"), "Pod/web has nodeName a, which places pods without the scheduler; use nodeSelector or affinity in Git")
	judge(t, fmt.Sprintf(cronJobOf, "nodeName: a"), "CronJob/web has nodeName a")
	judge(t, fmt.Sprintf(podOf, `nodeName: ""`), "")
	judge(t, `{apiVersion: example.com/v1, kind: Record, metadata: {name: web}, lastRun: {containers: [], nodeName: a}}`, "")
}

func TestAnnotationsOfAnIngressStayInsideItsApp(t *testing.T) {
	const of = `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web, annotations: {%s: "%s"}}}`
	const writes, leads = "writes configuration of the Ingress controller, which all tenants share", "leads the Ingress controller to what is not the app's"
	const names = "names a host that is not in the rules of the Ingress, which kubeop checks"
	for name, c := range map[string]struct{ key, value, want string }{
		"a size":                        {"nginx.ingress.kubernetes.io/proxy-body-size", "8m", ""},
		"an issuer":                     {"cert-manager.io/cluster-issuer", "letsencrypt", ""},
		"a snippet":                     {"nginx.ingress.kubernetes.io/configuration-snippet", "x", writes},
		"a snippet of another class":    {"nginx.example.com/AUTH-SNIPPET", "x", writes},
		"a snippet of HAProxy":          {"haproxy.org/backend-config-snippet", "x", writes},
		"configuration of HAProxy":      {"haproxy-ingress.github.io/config-backend", "x", writes},
		"a snippet that is allowed":     {"nginx.ingress.kubernetes.io/server-snippet", "x", ""},
		"another URL":                   {"nginx.ingress.kubernetes.io/auth-url", "http://a.beta.svc", leads},
		"a mirror":                      {"nginx.ingress.kubernetes.io/mirror-target", "http://a.beta.svc", leads},
		"a shared balancer":             {"alb.ingress.kubernetes.io/group.name", "all", leads},
		"another host name":             {"nginx.ingress.kubernetes.io/server-alias", "www.beta.example", names},
		"another one in a certificate":  {"cert-manager.io/Common-Name", "www.beta.example", names},
		"a Secret":                      {"nginx.ingress.kubernetes.io/auth-secret", "users", ""},
		"a Secret of its namespace":     {"nginx.ingress.kubernetes.io/auth-tls-secret", "kubeop-acme-web/ca", ""},
		"a Secret of another namespace": {"nginx.ingress.kubernetes.io/auth-tls-secret", "beta/ca", "names an object of namespace beta"},
		"settings of another namespace": {"nginx.ingress.kubernetes.io/proxy-headers-configmap", "beta/headers", "names an object of namespace beta"},
		"a path with a slash":           {"nginx.ingress.kubernetes.io/app-root", "beta/ca", ""},
		"headers of another namespace":  {"nginx.ingress.kubernetes.io/custom-headers", "beta/headers", "names an object of namespace beta"},
		"a rewrite":                     {"nginx.ingress.kubernetes.io/rewrite-target", "/api/$1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			want := c.want
			if want != "" {
				want = "Ingress/web has the annotation " + c.key + ", which " + c.want + ": take it out, or ask an administrator of the cluster to list it in spec.ingressAnnotations of the Tenant"
			}
			judge(t, fmt.Sprintf(of, c.key, c.value), want)
		})
	}
	for _, other := range []string{"apiVersion: v1, kind: ConfigMap", "apiVersion: example.com/v1, kind: Ingress", "apiVersion: networking.k8s.io/v1, kind: IngressClass"} {
		judge(t, `{`+other+`, metadata: {name: web, annotations: {example.com/server-snippet: x}}}`, "")
	}
}
