package controllers

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// The metrics of the API server about admission policies. The first is about all policies together, for each request, with the search for those that match. The
// second is about single validations, and only about those that refuse, warn or audit: what is allowed does not appear there.
const (
	admissionSeconds = `apiserver_admission_controller_admission_duration_seconds_%s{name="ValidatingAdmissionPolicy",operation="CREATE",rejected="%t",type="validate"}`
	checkSeconds     = "apiserver_validating_admission_policy_check_duration_seconds_"
)

// TestAdmissionTakesLittleTime measures how long the API server evaluates all admission policies for an object of a tenant with rules of every family. The
// buckets of its histogram begin at 5 ms, so it reads the sum before and after each request, and leaves out requests beside which there was another
// one. ADMISSION_REQUESTS is the number of requests for each row. Without it the test is skipped: beside other tests no request is alone.
func TestAdmissionTakesLittleTime(t *testing.T) {
	requests, err := strconv.Atoi(os.Getenv("ADMISSION_REQUESTS"))
	if err != nil {
		t.Skip("make bench-admission runs it by itself")
	}
	n, bot := limited(t, "costly")
	n.serveRoutes()
	n.under(everyFamily())
	n.reserve("web.costly.example")
	deployer := n.as("system:serviceaccount:" + n.namespace() + ":kubeop-deployer")
	controller := n.as("system:serviceaccount:kube-system:replicaset-controller")
	const template = "{metadata: {labels: {app: web, team: costly}}, spec: {" + podSpec + "}}"
	meta := func(text string) string {
		return "metadata: {name: x, labels: {app: web, team: costly}}, " + text + "}"
	}
	pod := "{apiVersion: v1, kind: Pod, " + meta("spec: {"+podSpec+"}")
	config := "{apiVersion: v1, kind: ConfigMap, " + meta("data: {greeting: hello}")
	for _, row := range []struct {
		who    string
		by     client.Client
		object string
	}{
		{"the deployer", deployer, pod},
		{"an account of the project", bot, pod},
		{"a controller of Kubernetes", controller, pod},
		{"the deployer", deployer, "{apiVersion: apps/v1, kind: Deployment, " + meta("spec: {selector: {matchLabels: {app: web}}, template: "+template+"}")},
		{"the deployer", deployer, "{apiVersion: v1, kind: Service, " + meta("spec: {selector: {app: web}, ports: [{port: 80}]}")},
		{"the deployer", deployer, "{apiVersion: networking.k8s.io/v1, kind: Ingress, " + meta("spec: {ingressClassName: public, rules: [{host: web.costly.example}], tls: [{hosts: [web.costly.example], secretName: a}]}")},
		{"the deployer", deployer, config},
		{"an account of the project", bot, config},
	} {
		object := n.object(n.namespace(), row.object)
		create := func() error { return row.by.Create(t.Context(), object.DeepCopy(), client.DryRunAll) }
		n.passes(create)
		took := n.admissions(requests, create)
		t.Logf("%-10s by %-26s p50 %6.3f ms, p99 %6.3f ms, mean %6.3f ms of %d", object.GetKind(), row.who, ms(took[len(took)/2]), ms(took[(len(took)-1)*99/100]), mean(took), len(took))
	}
	n.checksTakeLittleTime(bot, requests)
}

const refusedPod = "{apiVersion: v1, kind: Pod, metadata: {name: x, labels: {team: a}}, spec: {"

// refusedByEach are objects that an account of the project may not write, by the policy that refuses them. The names of the policies are without "kubeop-".
var refusedByEach = map[string]string{
	"guardrails-deny":    refusedPod + strings.Replace(podSpec, "image: a", "image: evil.org/a", 1) + "}}",
	"control-plane":      "{apiVersion: v1, kind: Endpoints, metadata: {name: x}, subsets: [{addresses: [{ip: 10.9.9.9}], ports: [{port: 80}]}]}",
	"disruption-budget":  "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: x}, spec: {maxUnavailable: 0, selector: {matchLabels: {app: a}}}}",
	"external-service":   "{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {ports: [{port: 80}], externalIPs: [192.0.2.1]}}",
	"foreign-subject":    "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: x}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}, subjects: [{kind: ServiceAccount, namespace: default, name: a}]}",
	"forged-mark":        "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {paas.kubeop.io/tenant: a}}}",
	"grace-period":       refusedPod + "terminationGracePeriodSeconds: 90000, " + podSpec + "}}",
	"ingress-annotation": "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: x, annotations: {nginx.ingress.kubernetes.io/server-snippet: a}}, spec: {ingressClassName: public, rules: [{host: web.costly.example}]}}",
	"object-size":        "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: " + strings.Repeat("a", 40_000) + "}}",
	"placement":          refusedPod + "tolerations: [{operator: Exists}], " + podSpec + "}}",
	"platform-identity":  refusedPod + "serviceAccountName: kubeop-deployer, " + podSpec + "}}",
	"platform-token":     "{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: x, annotations: {kubernetes.io/service-account.name: kubeop-deployer}}}",
	"reserved-name":      "{apiVersion: v1, kind: ServiceAccount, metadata: {name: kubeop-x}}",
	"priority-class":     refusedPod + "priorityClassName: system-cluster-critical, " + podSpec + "}}",
	"ingress-path":       "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: x}, spec: {ingressClassName: public, rules: [{host: web.costly.example, http: {paths: [{path: '/a\"b', pathType: ImplementationSpecific, backend: {service: {name: a, port: {number: 80}}}}]}}]}}",
	"route-match":        "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: x}, spec: {hostnames: [web.costly.example], rules: [{matches: [{path: {value: '/a`b'}}]}]}}",
	"events":             "{apiVersion: v1, kind: Event, metadata: {name: x}, involvedObject: {kind: Pod, name: a, namespace: kubeop-costly-shop}, message: " + strings.Repeat("a", 4_000) + "}",
	"network-policies":   "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: x}, spec: {podSelector: {}, ingress: [{}]}}",
	"platform-object":    "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: kubeop-x}, spec: {podSelector: {}}}",
	"volumes":            refusedPod + "volumes: [{name: v, csi: {driver: nfs.csi.k8s.io}}], " + podSpec + "}}",
}

// unmeasured are the policies for tenants that refuse nothing to an account of a project in this test, and why.
var unmeasured = map[string]string{
	"frozen": "the tenant is not frozen", "stopped": "the tenant is not stopped", "home-finalizer": "an account of a project has no rights in the home of its tenant",
	"job-by-hand": "it is about people", "kubeconfig-secret": "it is about the manager",
}

// TestEveryPolicyForTenantsIsMeasured: make bench-admission has a refusal of each policy for tenants that an account of a project can provoke.
func TestEveryPolicyForTenantsIsMeasured(t *testing.T) {
	for policy := range tenantsPolicies(t) {
		if refusedByEach[policy] == "" && unmeasured[policy] == "" {
			t.Errorf("no object is refused by kubeop-%s", policy)
		}
	}
}

// checksTakeLittleTime has each of these policies refuse an object as often as there are requests, and wants the 99th percentile of all their checks in the buckets up to 1 ms of
// the metric. The API server records a check of a policy and its binding only if it refuses.
func (n *team) checksTakeLittleTime(by client.Client, requests int) {
	n.t.Helper()
	before := n.metrics()
	for policy, text := range refusedByEach {
		object := n.object(n.namespace(), text)
		for range requests {
			if err := by.Create(n.t.Context(), object.DeepCopy(), client.DryRunAll); err == nil {
				n.t.Fatalf("no policy refuses the object for %s", policy)
			}
		}
	}
	after, all, within := n.metrics(), 0.0, 0.0
	for policy := range refusedByEach {
		name := "kubeop-" + policy
		labels := fmt.Sprintf(`{enforcement_action="deny",error_type="invalid_error",policy=%q,policy_binding=%[1]q`, name)
		grown := func(series string) float64 { return after[checkSeconds+series] - before[checkSeconds+series] }
		checks, soon := grown("count"+labels+"}"), grown("bucket"+labels+`,le="0.001"}`)
		if checks < float64(requests) {
			n.t.Fatalf("%g checks of %s in %scount for %d refusals", checks, name, checkSeconds, requests)
		}
		n.t.Logf("%-28s %6g checks, %5.1f %% within 1 ms, mean %.3f ms", name, checks, 100*soon/checks, 1000*grown("sum"+labels+"}")/checks)
		all, within = all+checks, within+soon
	}
	n.t.Logf("all policies: %g of %g checks within 1 ms", within, all)
	if within < 0.99*all {
		n.t.Errorf("the 99th percentile of the checks of all policies is above 1 ms: only %g of %g take at most that", within, all)
	}
}

// everyFamily has rules of each family, with the action Deny. The objects of the test satisfy them.
func everyFamily() v1alpha1.Policy {
	policy := v1alpha1.Policy{}
	policy.Name = "all"
	policy.Spec.Images = &v1alpha1.ImageRules{Allow: []string{"registry.example.com/*", "docker.io/library"}, Deny: []string{"docker.io/library/old"}}
	policy.Spec.Services = &v1alpha1.ServiceRules{Types: []string{"ClusterIP"}}
	policy.Spec.Hostnames = &v1alpha1.HostnameRules{Suffixes: []string{"costly.example"}}
	policy.Spec.Classes = &v1alpha1.ClassRules{Storage: []string{"fast"}, Ingress: []string{"public"}, Runtime: []string{"gvisor"}}
	policy.Spec.Nodes = &v1alpha1.NodeRules{Tolerations: []v1alpha1.AllowedToleration{{Key: "gpu"}}}
	policy.Spec.Kinds = &v1alpha1.KindRules{Deny: []string{"DaemonSet.apps"}}
	policy.Spec.Metadata = &v1alpha1.MetadataRules{RequiredLabels: []string{"team"}, ForbiddenLabels: []string{"istio.io/*"}, ForbiddenAnnotations: []string{"argocd.argoproj.io/*"}}
	return policy
}

// admissions returns how long the policies took for each of some requests, sorted.
func (n *team) admissions(requests int, create func() error) (took []time.Duration) {
	n.t.Helper()
	sum, count := fmt.Sprintf(admissionSeconds, "sum", false), fmt.Sprintf(admissionSeconds, "count", false)
	before := n.metrics()
	for tried := 0; len(took) < requests; tried++ {
		if err := create(); err != nil {
			n.t.Fatal(err)
		}
		after := n.metrics()
		if after[count]-before[count] == 1 {
			took = append(took, time.Duration((after[sum]-before[sum])*float64(time.Second)))
		}
		before = after
		if tried > 20*requests+100 {
			n.t.Fatalf("only %d of %d requests were alone", len(took), tried)
		}
	}
	slices.Sort(took)
	return took
}

// metrics returns what the API server counts about admission policies, by name and labels.
func (n *team) metrics() map[string]float64 {
	n.t.Helper()
	set, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		n.t.Fatal(err)
	}
	text, err := set.RESTClient().Get().AbsPath("/metrics").DoRaw(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	values := map[string]float64{}
	for lines := bufio.NewScanner(strings.NewReader(string(text))); lines.Scan(); {
		line := lines.Text()
		if space := strings.LastIndexByte(line, ' '); space > 0 && (strings.HasPrefix(line, "apiserver_admission_controller_admission_duration_seconds_") || strings.HasPrefix(line, checkSeconds)) {
			values[line[:space]], _ = strconv.ParseFloat(line[space+1:], 64)
		}
	}
	return values
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func mean(all []time.Duration) float64 {
	var sum time.Duration
	for _, d := range all {
		sum += d
	}
	return ms(sum) / float64(len(all))
}
