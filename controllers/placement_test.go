package controllers

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// placed returns an object of a kind whose pods have a field.
func placed(kind, field string) string {
	pod := "{" + field + ", restartPolicy: Never, " + podSpec + "}"
	switch kind {
	case "CronJob":
		return "{apiVersion: batch/v1, kind: CronJob, metadata: {name: x}, spec: {schedule: '* * * * *', jobTemplate: {spec: {template: {spec: " + pod + "}}}}}"
	case "Job":
		return "{apiVersion: batch/v1, kind: Job, metadata: {name: x}, spec: {template: {spec: " + pod + "}}}"
	}
	return "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: " + pod + "}"
}

// TestPodsRunWhereTheirTenantMay: the API server judges what people and accounts of a tenant write without kubeop by the rules for apps.
func TestPodsRunWhereTheirTenantMay(t *testing.T) {
	n, bot := limited(t, "placed")
	deployer := n.as("system:serviceaccount:" + n.namespace() + ":kubeop-deployer")
	try := func(by client.Client, object string) func() error {
		return func() error { return by.Create(t.Context(), n.object(n.namespace(), object), client.DryRunAll) }
	}
	const near = "affinity: {%s: {%s: [%s]}}"
	const required, preferred = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
	for _, kind := range []string{"Pod", "Job", "CronJob"} {
		for _, by := range []client.Client{bot, deployer} {
			for field, want := range map[string]string{
				"tolerations: [{operator: Exists}]":                                             "Toleration: " + kind + "/x tolerates every taint",
				"tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists}]": "Toleration: " + kind + "/x tolerates the taint node-role.kubernetes.io/control-plane",
				"nodeName: a": "NodeName: " + kind + "/x has nodeName a",
				fmt.Sprintf(near, "podAntiAffinity", required, "{topologyKey: zone, namespaceSelector: {}}"):                                "ForeignAffinity: " + kind + "/x has affinity with pods of other namespaces",
				fmt.Sprintf(near, "podAffinity", preferred, "{weight: 1, podAffinityTerm: {topologyKey: zone, namespaces: [kube-system]}}"): "ForeignAffinity: " + kind + "/x",
			} {
				n.denied(try(by, placed(kind, field)), want)
			}
		}
		n.passes(try(bot, placed(kind, "tolerations: [{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 9}]")))
		n.passes(try(bot, placed(kind, fmt.Sprintf(near, "podAntiAffinity", required, "{topologyKey: zone, namespaces: ["+n.namespace()+"]}"))))
	}
	const gpu = "tolerations: [{key: gpu, operator: Exists}]"
	n.denied(try(bot, placed("Pod", gpu)), "tolerates the taint gpu", "spec.taints of the Tenant")
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Taints = []string{"arm", "gpu"} })
	n.passes(try(bot, placed("Pod", gpu)))

	// An older object may be changed in other fields, but not get more.
	old := n.object(n.namespace(), placed("CronJob", "tolerations: [{key: old, operator: Exists}]"))
	if err := n.masterful(operatorAccount).Create(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	patch := func(text string) func() error {
		return func() error {
			return bot.Patch(t.Context(), old.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(text)), client.DryRunAll)
		}
	}
	n.passes(patch(`{"spec":{"suspend":true}}`))
	n.denied(patch(`{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"tolerations":[{"key":"old","operator":"Exists"},{"key":"new","operator":"Exists"}]}}}}}}`), "tolerates the taint new")
}

// TestIngressesStayInsideTheirApp: the same for annotations of Ingresses.
func TestIngressesStayInsideTheirApp(t *testing.T) {
	n, bot := limited(t, "annotated")
	n.reserve("x.annotated.example")
	try := func(key, value string) func() error {
		object := fmt.Sprintf("{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: x, annotations: {%s: '%s'}}, spec: {rules: [{host: x.annotated.example}]}}", key, value)
		return func() error { return bot.Create(t.Context(), n.object(n.namespace(), object), client.DryRunAll) }
	}
	const nginx = "nginx.ingress.kubernetes.io/"
	for key, want := range map[string]string{
		nginx + "configuration-snippet":            "writes configuration of the Ingress controller",
		"haproxy-ingress.github.io/config-backend": "writes configuration of the Ingress controller",
		nginx + "auth-url":                         "leads the Ingress controller to what is not the app's",
		"alb.ingress.kubernetes.io/group.name":     "leads the Ingress controller to what is not the app's",
		"nginx.ingress.kubernetes.io/Server-Alias": "names a host that is not in the rules of the Ingress",
		"cert-manager.io/common-name":              "names a host that is not in the rules of the Ingress",
		nginx + "auth-tls-secret":                  "names an object of another namespace",
	} {
		n.denied(try(key, "other/x"), "IngressAnnotation: Ingress/x has the annotation "+key+", which "+want)
	}
	n.passes(try(nginx+"auth-tls-secret", n.namespace()+"/x"))
	n.passes(try(nginx+"proxy-body-size", "8m"))
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.IngressAnnotations = []string{nginx + "auth-url"} })
	n.passes(try(nginx+"auth-url", "http://oauth2"))
	n.denied(try(nginx+"server-snippet", "x"), "server-snippet")
}
