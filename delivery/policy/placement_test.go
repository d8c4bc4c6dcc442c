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

const podOf = `{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: web, image: web}], %s}}`

// TestFieldsOfPodsAreFoundInOtherKinds, also where they are not in a template. The other cases are in testdata.
func TestFieldsOfPodsAreFoundInOtherKinds(t *testing.T) {
	const custom = `{apiVersion: example.com/v1, kind: Database, metadata: {name: web}, spec: {pods: {%s}}}`
	for field, want := range map[string]string{
		"tolerations: [{operator: Exists}]": "Database/web tolerates every taint, because a toleration has no key",
		"tolerations: [{key: tenant}]":      "Database/web tolerates the taint tenant, and nodes with it are not for this tenant: take it out, or ask an administrator of the cluster to list tenant in spec.taints of the Tenant",
		"affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, namespaces: [beta]}]}}":     "Database/web has podAffinity with pods of other namespaces; leave namespaces and namespaceSelector out in Git, so that it is with pods of namespace kubeop-acme-web",
		"affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, namespaces: [beta]}]}}": "Database/web has podAntiAffinity with pods of other namespaces",
		"tolerations: [{key: first}, {key: second}]":                                               "Database/web tolerates the taint first,",
		"a: {tolerations: [{key: first}]}, b: {tolerations: [{key: second}]}":                      "Database/web tolerates the taint first,",
		"a: {spec: {containers: [], nodeName: node-1}}, b: {spec: {containers: [], nodeName: ''}}": "Database/web has nodeName node-1,",
		"peers: {requiredDuringSchedulingIgnoredDuringExecution: [{namespaces: [beta]}]}":          "",
	} {
		judge(t, fmt.Sprintf(custom, field), want)
	}
}

func TestADefinitionWithTolerationsIsNotRefused(t *testing.T) {
	judge(t, `{apiVersion: example.com/v1, kind: Schema, metadata: {name: web}, properties: {tolerations: {type: array}, podAntiAffinity: {properties: {}}, spec: {nodeName: a}}}`, "")
}

func TestANodeNameOutsideOfASpecIsNotRefused(t *testing.T) {
	judge(t, `{apiVersion: example.com/v1, kind: Record, metadata: {name: web}, lastRun: {containers: [], nodeName: a}}`, "")
	judge(t, `{apiVersion: example.com/v1, kind: Record, metadata: {name: web}, lastRun: {containers: [], volumes: [{name: v, nfs: {}}]}}`, "")
	judge(t, `{apiVersion: example.com/v1, kind: Record, metadata: {name: web}, spec: {nodeName: a, volumes: [{name: v, nfs: {}}]}}`, "")
}

func TestAMessageAboutAnAnnotationSaysWhoAllowsIt(t *testing.T) {
	const of = `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web, annotations: {%s: %s}}}`
	const ask = ": take it out, or ask an administrator of the cluster to list it in spec.ingressAnnotations of the Tenant"
	judge(t, fmt.Sprintf(of, "cert-manager.io/common-name", "www.beta.example"), "Ingress/web has the annotation cert-manager.io/common-name, which names a host that is not in the rules of the Ingress, which kubeop checks"+ask)
	judge(t, fmt.Sprintf(of, "nginx.ingress.kubernetes.io/auth-tls-secret", "beta/ca"), "Ingress/web has the annotation nginx.ingress.kubernetes.io/auth-tls-secret, which names an object of namespace beta"+ask)
}

// TestOtherKindsAreNoIngresses, although they have an annotation of one.
func TestOtherKindsAreNoIngresses(t *testing.T) {
	for _, other := range []string{"apiVersion: v1, kind: ConfigMap", "apiVersion: example.com/v1, kind: Ingress", "apiVersion: networking.k8s.io/v1, kind: IngressClass"} {
		judge(t, `{`+other+`, metadata: {name: web, annotations: {example.com/server-snippet: x}}}`, "")
	}
}
