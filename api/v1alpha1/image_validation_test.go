package v1alpha1_test

import (
	"fmt"
	"testing"
)

// TestTheAPIServerJudgesPodsOfImages creates Image apps with fields of their pods and of their Ingress, and
// Tenants that say what these may be.
func TestTheAPIServerJudgesPodsOfImages(t *testing.T) {
	c := install(t)
	const of = "{apiVersion: paas.kubeop.io/v1alpha1, kind: App, metadata: {name: web, namespace: default}, spec: {type: Image, image: {reference: web, %s}}}"
	const served = "{apiVersion: paas.kubeop.io/v1alpha1, kind: App, metadata: {name: web, namespace: default}, " +
		"spec: {type: Image, host: a.example, ingress: %s, image: {reference: web, ports: [{name: http, port: 80}]}}}"
	const tenant = "{apiVersion: paas.kubeop.io/v1alpha1, kind: Tenant, metadata: {name: a}, spec: {%s}}"
	for name, each := range map[string]struct{ app, want string }{
		"taints of a tenant":                {fmt.Sprintf(tenant, "taints: [gpu, example.com/tenant]"), ""},
		"a taint with a value":              {fmt.Sprintf(tenant, "taints: [\"tenant=a\"]"), "spec.taints[0]"},
		"annotations of a tenant":           {fmt.Sprintf(tenant, "ingressAnnotations: [nginx.ingress.kubernetes.io/auth-url]"), ""},
		"all annotations of a tenant":       {fmt.Sprintf(tenant, "ingressAnnotations: [\"*\"]"), "spec.ingressAnnotations[0]"},
		"a service account":                 {fmt.Sprintf(of, "serviceAccountName: reader, automountServiceAccountToken: true"), ""},
		"a service account of the platform": {fmt.Sprintf(of, "serviceAccountName: kubeop-deployer"), "service accounts that start with kubeop- are the platform's"},
		"a service account with a slash":    {fmt.Sprintf(of, "serviceAccountName: a/b"), "spec.image.serviceAccountName"},
		"an init container":                 {fmt.Sprintf(of, "initContainers: [{name: a, args: [migrate]}]"), ""},
		"a sidecar with probes":             {fmt.Sprintf(of, "initContainers: [{name: a, image: proxy, restartPolicy: Always, probes: {startup: {tcp: true, port: 80}, liveness: {command: [x]}}}]"), ""},
		"two containers of one name":        {fmt.Sprintf(of, "initContainers: [{name: a}, {name: a}]"), "Duplicate value"},
		"an init container that restarts":   {fmt.Sprintf(of, "initContainers: [{name: a, restartPolicy: OnFailure}]"), "restartPolicy"},
		"probes of an init container":       {fmt.Sprintf(of, "initContainers: [{name: a, probes: {readiness: {command: [x]}}}]"), "probes need restartPolicy: Always"},
		"a sidecar's probe without port":    {fmt.Sprintf(of, "initContainers: [{name: a, restartPolicy: Always, probes: {readiness: {path: /}}}]"), "a probe of an init container by path or tcp needs a port"},
		"a mount out of the volume":         {fmt.Sprintf(of, "initContainers: [{name: a, volumeMounts: [{name: b, mountPath: /b, subPath: ../c}]}]"), "subPath must stay inside the volume"},
		"a container that runs as root":     {fmt.Sprintf(of, "initContainers: [{name: a, security: {runAsUser: 0}}]"), "runAsUser"},
		"a toleration":                      {fmt.Sprintf(of, "tolerations: [{key: gpu, operator: Exists}, {key: a, value: b, effect: NoExecute, tolerationSeconds: 5}]"), ""},
		"a toleration of everything":        {fmt.Sprintf(of, "tolerations: [{operator: Exists}]"), "a toleration needs a key: without one it tolerates every taint"},
		"a toleration of an empty key":      {fmt.Sprintf(of, "tolerations: [{key: \"\", operator: Exists}]"), "a toleration needs a key"},
		"a toleration of a value that is":   {fmt.Sprintf(of, "tolerations: [{key: a, operator: Exists, value: b}]"), "operator is Equal, or Exists without a value"},
		"a toleration by another operator":  {fmt.Sprintf(of, "tolerations: [{key: a, operator: Gt, value: \"5\"}]"), "operator is Equal, or Exists without a value"},
		"seconds of another effect":         {fmt.Sprintf(of, "tolerations: [{key: a, operator: Exists, tolerationSeconds: 5}]"), "tolerationSeconds needs effect: NoExecute"},
		"an affinity":                       {fmt.Sprintf(of, "affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: zone}}]}}"), ""},
		"a spread":                          {fmt.Sprintf(of, "topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]"), ""},
		"an Ingress":                        {fmt.Sprintf(served, "{ingressClassName: nginx, annotations: {cert-manager.io/issuer: ca}}"), ""},
		"an Ingress of no host":             {"{apiVersion: paas.kubeop.io/v1alpha1, kind: App, metadata: {name: web, namespace: default}, spec: {type: Image, ingress: {ingressClassName: nginx}, image: {reference: web}}}", "ingress needs host or hosts"},
		"a class by annotation":             {fmt.Sprintf(served, "{annotations: {kubernetes.io/ingress.class: nginx}}"), "set ingressClassName in place of the annotation"},
		"two issuers":                       {fmt.Sprintf(served, "{annotations: {cert-manager.io/issuer: a, cert-manager.io/cluster-issuer: b}}"), "set one of the annotations"},
	} {
		t.Run(name, func(t *testing.T) { judged(t, c, each.app, "", each.want) })
	}
}
