package guardrails

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/distribution/reference"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func named(name string, isDefault bool, rules v1alpha1.PolicyRules) v1alpha1.Policy {
	return v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.PolicySpec{Default: isDefault, PolicyRules: rules}}
}

func TestATenantIsUnderWhatItNamesOrTheDefaults(t *testing.T) {
	all := []v1alpha1.Policy{named("c", true, v1alpha1.PolicyRules{}), named("b", false, v1alpha1.PolicyRules{}), named("a", true, v1alpha1.PolicyRules{})}
	for name, c := range map[string]struct{ names, selected, missing string }{
		"names none":        {"", "a c", ""},
		"names one":         {"b", "b", ""},
		"names a default":   {"c b", "b c", ""},
		"names no policy":   {"z b y", "b", "y z"},
		"names only others": {"z", "", "z"},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := &v1alpha1.Tenant{Spec: v1alpha1.TenantSpec{Policies: strings.Fields(c.names)}}
			selected, missing := Select(tenant, all)
			var got []string
			for _, p := range selected {
				got = append(got, p.Name)
			}
			if strings.Join(got, " ") != c.selected || strings.Join(missing, " ") != c.missing {
				t.Errorf("got %v, without %v; want %q, without %q", got, missing, c.selected, c.missing)
			}
		})
	}
}

// TestEachRuleIsListedUnderItsAction: a policy with rules of two actions is in both lists, with the rules of that action only.
func TestEachRuleIsListedUnderItsAction(t *testing.T) {
	images := &v1alpha1.ImageRules{RequireDigest: true}
	services := &v1alpha1.ServiceRules{Action: v1alpha1.WarnAction, Types: []string{"ClusterIP"}}
	hostnames := &v1alpha1.HostnameRules{Action: v1alpha1.AuditAction, Suffixes: []string{"example.com"}}
	classes := &v1alpha1.ClassRules{Action: v1alpha1.DenyAction, Storage: []string{"fast"}}
	nodes := selecting("pool", "tenants")
	kinds := &v1alpha1.KindRules{Action: v1alpha1.WarnAction, Deny: []string{"Secret"}}
	metadata := &v1alpha1.MetadataRules{Action: v1alpha1.AuditAction, RequiredLabels: []string{"team"}}
	from := &v1alpha1.SourceRules{Git: &v1alpha1.URLPatterns{Deny: []string{"example.com"}}}
	got := Of([]v1alpha1.Policy{
		named("all", false, v1alpha1.PolicyRules{
			Images: images, Services: services, Hostnames: hostnames, Classes: classes, Nodes: nodes, Kinds: kinds, Metadata: metadata, Sources: from,
		}),
		named("empty", false, v1alpha1.PolicyRules{}),
		named("one", false, v1alpha1.PolicyRules{Services: services}),
	})
	want := v1alpha1.GuardrailsSpec{
		Deny: []v1alpha1.AppliedPolicy{{Policy: "all", PolicyRules: v1alpha1.PolicyRules{Images: images, Classes: classes, Nodes: nodes, Sources: from}}},
		Warn: []v1alpha1.AppliedPolicy{
			{Policy: "all", PolicyRules: v1alpha1.PolicyRules{Services: services, Kinds: kinds}}, {Policy: "one", PolicyRules: v1alpha1.PolicyRules{Services: services}},
		},
		Audit: []v1alpha1.AppliedPolicy{{Policy: "all", PolicyRules: v1alpha1.PolicyRules{Hostnames: hostnames, Metadata: metadata}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestATenantsHostsAreBelowItsDomains, besides what its policies allow. A tenant without domains has no such rule.
func TestATenantsHostsAreBelowItsDomains(t *testing.T) {
	tenant := &v1alpha1.Tenant{Spec: v1alpha1.TenantSpec{Domains: []string{"acme.example", "shop.example.org"}}}
	rules := For(tenant, []v1alpha1.Policy{named("p", false, v1alpha1.PolicyRules{Hostnames: &v1alpha1.HostnameRules{Suffixes: []string{"acme.example", "free.example"}, Wildcards: true}})})
	for host, want := range map[string]string{
		"web.acme.example": "", "*.acme.example": "", "acme.example": "",
		"a.shop.example.org": "p", "a.free.example": TenantFile, "evilacme.example": "p " + TenantFile, "": "p " + TenantFile,
	} {
		var broken []string
		for _, v := range Check(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "spec": map[string]any{"rules": []any{map[string]any{"host": host}}},
		}}, &rules) {
			broken = append(broken, v.Policy)
			if where := v.Where(); v.Policy == TenantFile && where != "spec.domains of the tenant's tenant.yaml in the platform repository" {
				t.Errorf("the rule is at %s", where)
			}
		}
		if got := strings.Join(broken, " "); got != want {
			t.Errorf("%q breaks %q, want %q", host, got, want)
		}
	}
	if diff := cmp.Diff(Of(nil), For(&v1alpha1.Tenant{}, nil)); diff != "" {
		t.Errorf("without domains (-want +got):\n%s", diff)
	}
}

func TestAViolationSaysWhatIsWrongAndWhereTheRuleIs(t *testing.T) {
	allowed := strings.Fields("a.example b.example c.example d.example e.example f.example g.example h.example i.example j.example")
	rules := Of([]v1alpha1.Policy{
		named("quiet", false, v1alpha1.PolicyRules{Images: &v1alpha1.ImageRules{Action: v1alpha1.AuditAction, RequireDigest: true}}),
		named("strict", false, v1alpha1.PolicyRules{Images: &v1alpha1.ImageRules{Allow: allowed}}),
	})
	long := "evil.org/" + strings.Repeat("x", 300) + "\nReady: True"
	pod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"spec": map[string]any{"containers": []any{map[string]any{"image": long}, map[string]any{"image": long}}},
	}}
	got := Check(pod, &rules)
	quoted := long[:252] + "…"
	want := []Violation{
		{Images, "strict", v1alpha1.DenyAction, "images.allow", "has the image " + quoted + ", which is not among the allowed ones: " + strings.Join(allowed[:8], ", ") + ", and 2 more", ""},
		{Images, "quiet", v1alpha1.AuditAction, "images.requireDigest", "has the image " + quoted + " without a digest: write it in Git as " + quoted + "@sha256:<digest>", ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if where := got[0].Where(); where != "spec.images.allow of policies/strict.yaml in the platform repository" {
		t.Errorf("the rule is at %s", where)
	}
}

// TestEachRuleSaysWhatTheObjectHasAndWhatIsAllowed, whole: people read nothing else.
func TestEachRuleSaysWhatTheObjectHasAndWhatIsAllowed(t *testing.T) {
	const pod, service = "{apiVersion: v1, kind: Pod, spec: {", "{apiVersion: v1, kind: Service, spec: {"
	for object, c := range map[string]struct {
		rules v1alpha1.PolicyRules
		want  []found
	}{
		pod + "containers: [{image: a.example/x}]}}": {
			v1alpha1.PolicyRules{Images: &v1alpha1.ImageRules{Deny: []string{"a.example", "b.example"}}},
			[]found{{"images.deny", "has the image a.example/x, which is among the refused ones: a.example, b.example"}},
		},
		pod + "containers: [{image: 'x:1'}, {image: z, imagePullPolicy: Never}]}}": {
			v1alpha1.PolicyRules{Images: &v1alpha1.ImageRules{PullPolicies: []string{"Always"}}},
			[]found{
				{"images.pullPolicies", "has the image x:1 with imagePullPolicy IfNotPresent; allowed are: Always"},
				{"images.pullPolicies", "has the image z with imagePullPolicy Never; allowed are: Always"},
			},
		},
		pod + "priorityClassName: high}}": {
			v1alpha1.PolicyRules{Classes: &v1alpha1.ClassRules{Priority: []string{"batch", "low"}}},
			[]found{{"classes.priority", "has priorityClassName high; allowed are: batch, low"}},
		},
		pod + "hostUsers: true}}": {
			v1alpha1.PolicyRules{Nodes: &v1alpha1.NodeRules{UserNamespaces: true}},
			[]found{{"nodes.userNamespaces", "has pods whose users are users of their node: they need hostUsers: false"}},
		},
		service + "type: LoadBalancer, loadBalancerClass: z, loadBalancerSourceRanges: [192.0.2.0/24]}}": {
			v1alpha1.PolicyRules{Services: &v1alpha1.ServiceRules{Types: []string{"ClusterIP"}, LoadBalancerClasses: []string{"a", "b"}, LoadBalancerSourceRanges: []string{"10.0.0.0/8", "192.0.2.0/25"}}},
			[]found{
				{"services.types", "is of type LoadBalancer; allowed are: ClusterIP"},
				{"services.loadBalancerClasses", "has loadBalancerClass z; allowed are: a, b"},
				{"services.loadBalancerSourceRanges", "lets 192.0.2.0/24 connect with loadBalancerSourceRanges; allowed are: 10.0.0.0/8, 192.0.2.0/25"},
			},
		},
		service + "type: LoadBalancer}}": {
			v1alpha1.PolicyRules{Services: &v1alpha1.ServiceRules{LoadBalancerSourceRanges: []string{"10.0.0.0/8"}}},
			[]found{{"services.loadBalancerSourceRanges", "has no loadBalancerSourceRanges, so that everybody could connect; allowed are: 10.0.0.0/8"}},
		},
		service + "loadBalancerSourceRanges: [10.1.0.0/16]}}": {
			v1alpha1.PolicyRules{Services: &v1alpha1.ServiceRules{Types: []string{"NodePort"}, LoadBalancerSourceRanges: []string{"192.0.2.0/24"}}},
			[]found{{"services.types", "is of type ClusterIP; allowed are: NodePort"}},
		},
		service + "type: ExternalName, externalName: b.example, externalIPs: [192.0.2.1, 10.0.0.1]}}": {
			v1alpha1.PolicyRules{Services: &v1alpha1.ServiceRules{Types: []string{"ClusterIP"}, ExternalNames: []string{"a.example"}, ExternalIPs: []string{"192.0.2.0/24"}}},
			[]found{
				{"services.externalNames", "has the external name b.example, which is not below the allowed domains: a.example"},
				{"services.externalIPs", "has the external IP 10.0.0.1, which is in none of the allowed ranges: 192.0.2.0/24"},
			},
		},
		service + "type: ExternalName, externalName: a.example}}": {
			v1alpha1.PolicyRules{Services: &v1alpha1.ServiceRules{Types: []string{"ClusterIP"}}},
			[]found{{"services.types", "is of type ExternalName; allowed are: ClusterIP"}},
		},
		service + "type: NodePort, ports: [{port: 80, nodePort: 30001}, {port: 81}]}}": {
			v1alpha1.PolicyRules{Services: &v1alpha1.ServiceRules{NodePorts: []v1alpha1.NodePortRange{{Port: 30000, EndPort: 30009}, {Port: 30020}}}},
			[]found{{"services.nodePorts", "names no nodePort for port 81, and so gets any of the cluster; allowed are: 30000-30009, 30020"}},
		},
		service + "type: LoadBalancer, ports: [{port: 80, nodePort: 30010}]}}": {
			v1alpha1.PolicyRules{Services: &v1alpha1.ServiceRules{NodePorts: []v1alpha1.NodePortRange{{Port: 30000, EndPort: 30009}}}},
			[]found{{"services.nodePorts", "has the node port 30010; allowed are: 30000-30009"}},
		},
		service + "type: LoadBalancer, allocateLoadBalancerNodePorts: false, externalTrafficPolicy: Local, ports: [{port: 80}]}}": {
			v1alpha1.PolicyRules{Services: &v1alpha1.ServiceRules{NodePorts: []v1alpha1.NodePortRange{{Port: 30000}}}},
			[]found{{"services.nodePorts", "names no healthCheckNodePort, and so gets any port of the cluster; allowed are: 30000"}},
		},
		service + "type: LoadBalancer, allocateLoadBalancerNodePorts: false, healthCheckNodePort: 30002}}": {
			v1alpha1.PolicyRules{Services: &v1alpha1.ServiceRules{NodePorts: []v1alpha1.NodePortRange{{Port: 30000}}}},
			[]found{{"services.nodePorts", "has the node port 30002; allowed are: 30000"}},
		},
		"{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {ingressClassName: z, defaultBackend: {}, rules: [{host: A.evil.org.}, {host: '*.a.example'}]}}": {
			v1alpha1.PolicyRules{Hostnames: &v1alpha1.HostnameRules{Suffixes: []string{"a.example"}}, Classes: &v1alpha1.ClassRules{Ingress: []string{"nginx"}}},
			[]found{
				{"hostnames.suffixes", EveryHost},
				{"hostnames.suffixes", "has the host A.evil.org., which is not below the allowed domains: a.example"},
				{"hostnames.wildcards", "has the host *.a.example, and wildcards are not allowed: name each host in Git"},
				{"classes.ingress", "has ingressClassName z; allowed are: nginx"},
			},
		},
		"{apiVersion: v1, kind: PersistentVolumeClaim, spec: {storageClassName: slow}}": {
			v1alpha1.PolicyRules{Classes: &v1alpha1.ClassRules{Storage: []string{"fast"}}, Kinds: &v1alpha1.KindRules{Allow: []string{"Pod", "*.apps"}}},
			[]found{
				{"classes.storage", "has storageClassName slow; allowed are: fast"},
				{"kinds.allow", "is of kind PersistentVolumeClaim, which is not among the allowed ones: Pod, *.apps"},
			},
		},
		"{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, spec: {gatewayClassName: z}}": {
			v1alpha1.PolicyRules{Classes: &v1alpha1.ClassRules{Gateway: []string{"shared"}}, Kinds: &v1alpha1.KindRules{Deny: []string{"*.gateway.networking.k8s.io"}}},
			[]found{
				{"classes.gateway", "has gatewayClassName z; allowed are: shared"},
				{"kinds.deny", "is of kind Gateway.gateway.networking.k8s.io, which is among the refused ones: *.gateway.networking.k8s.io"},
			},
		},
		"{apiVersion: v1, kind: Pod, metadata: {labels: {a/x: '', b: ''}, annotations: {c: ''}}, spec: {runtimeClassName: z}}": {
			v1alpha1.PolicyRules{Classes: &v1alpha1.ClassRules{Runtime: []string{"gvisor"}}, Metadata: &v1alpha1.MetadataRules{
				RequiredLabels: []string{"team", "b"}, ForbiddenLabels: []string{"a/*"}, ForbiddenAnnotations: []string{"c", "d"},
			}},
			[]found{
				{"classes.runtime", "has runtimeClassName z; allowed are: gvisor"},
				{"metadata.requiredLabels", "lacks the label team"},
				{"metadata.forbiddenLabels", "has the label a/x, which is among the forbidden ones: a/*"},
				{"metadata.forbiddenAnnotations", "has the annotation c, which is among the forbidden ones: c, d"},
			},
		},
	} {
		rules := Of([]v1alpha1.Policy{named("p", false, c.rules)})
		var got []found
		for _, v := range Check(parsed(t, object), &rules) {
			got = append(got, found{v.Field, v.Why})
		}
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(found{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", object, diff)
		}
	}
}

// TestEveryRouteServesItsHostNames, and one that names none serves all; listeners of bare connections have none.
func TestEveryRouteServesItsHostNames(t *testing.T) {
	const gateway = "{apiVersion: gateway.networking.k8s.io/v1, kind: "
	for object, want := range map[string][]string{
		gateway + "HTTPRoute, spec: {hostnames: [a.example, b.example, a.example]}}":                                         {"a.example", "b.example"},
		gateway + "GRPCRoute, spec: {hostnames: [a.example]}}":                                                               {"a.example"},
		gateway + "TLSRoute, spec: {hostnames: [a.example]}}":                                                                {"a.example"},
		gateway + "TLSRoute, spec: {}}":                                                                                      {""},
		gateway + "TCPRoute, spec: {}}":                                                                                      nil,
		"{apiVersion: example.com/v1, kind: HTTPRoute, spec: {hostnames: [a.example]}}":                                      nil,
		gateway + "Gateway, spec: {listeners: [{hostname: a.example, protocol: HTTPS}, {protocol: TCP}, {protocol: UDP}]}}":  {"a.example"},
		gateway + "ListenerSet, spec: {listeners: [{hostname: a.example, protocol: HTTPS}, {protocol: HTTP}]}}":              {"a.example", ""},
		"{apiVersion: gateway.networking.x-k8s.io/v1alpha1, kind: XListenerSet, spec: {listeners: [{hostname: a.example}]}}": {"a.example"},
		"{apiVersion: example.com/v1, kind: ListenerSet, spec: {listeners: [{hostname: a.example}]}}":                        nil,
		gateway + "Gateway, spec: {listeners: [{protocol: HTTP}]}}":                                                          {""},
		"{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {defaultBackend: {}, rules: [{host: a.example}, {}]}}":      {"", "a.example"},
	} {
		if diff := cmp.Diff(want, Hosts(parsed(t, object))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", object, diff)
		}
	}
	var kinds []string
	for _, kind := range HostKinds {
		kinds = append(kinds, kind.String())
	}
	const routes = "HTTPRoute.gateway.networking.k8s.io GRPCRoute.gateway.networking.k8s.io TLSRoute.gateway.networking.k8s.io"
	const sets = "ListenerSet.gateway.networking.k8s.io XListenerSet.gateway.networking.x-k8s.io "
	if want := "Ingress.networking.k8s.io Gateway.gateway.networking.k8s.io " + sets + routes; strings.Join(kinds, " ") != want {
		t.Errorf("the kinds with host names are %v, want %s", kinds, want)
	}
}

// TestTheOtherPlacesOfImagesAndClassesCount: volumes of images, the older annotation of an Ingress, and other names of Docker's registry.
func TestTheOtherPlacesOfImagesAndClassesCount(t *testing.T) {
	const volume = "{image: {reference: 'a.example/x:1', pullPolicy: Never}}"
	pod := parsed(t, "{apiVersion: v1, kind: Pod, spec: {volumes: ["+volume+", "+volume+", {emptyDir: {}}], initContainers: [{image: b}]}}")
	if diff := cmp.Diff([]pulled{{"b", "Always"}, {"a.example/x:1", "Never"}}, imagesOf(pod), cmp.AllowUnexported(pulled{})); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	ingress := parsed(t, "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {annotations: {kubernetes.io/ingress.class: old}}, spec: {ingressClassName: new}}")
	if diff := cmp.Diff([]string{"new", "old"}, ingressClasses(ingress)); diff != "" {
		t.Errorf("classes of an Ingress (-want +got):\n%s", diff)
	}
	for image, want := range map[string]string{
		"index.docker.io/nginx": "docker.io/library/nginx", "registry-1.docker.io/a/b": "docker.io/a/b", "registry.hub.docker.com/nginx:1": "docker.io/library/nginx",
		"a.example:443/x": "a.example/x", "a.example:5000/x": "a.example:5000/x", "localhost/x": "localhost/x", "A/x": "a/x",
	} {
		if got := fullName(image); got != want {
			t.Errorf("%s is %s, want %s", image, got, want)
		}
	}
	for image, want := range map[string]string{
		"a": "Always", "a:latest": "Always", "a:1": "IfNotPresent", "a@sha256:0": "IfNotPresent", "a:latest@sha256:0": "Always", "a.example:5000/b": "Always",
	} {
		if got := pullPolicy(image); got != want {
			t.Errorf("%s is pulled %s, want %s", image, got, want)
		}
	}
}

// TestARuleIsAboutItsKindsOnly: another kind may have a field of the same name, and what no list is about is not limited.
func TestARuleIsAboutItsKindsOnly(t *testing.T) {
	rules := Of([]v1alpha1.Policy{named("p", false, v1alpha1.PolicyRules{
		Services: &v1alpha1.ServiceRules{Types: []string{"ClusterIP"}}, Hostnames: &v1alpha1.HostnameRules{Suffixes: []string{"a.example"}},
		Classes: &v1alpha1.ClassRules{Storage: []string{"a"}, Ingress: []string{"a"}, Gateway: []string{"a"}},
	})})
	const claims = "spec: {volumeClaimTemplates: [{spec: {storageClassName: z}}, {spec: {storageClassName: z}}]}}"
	for object, want := range map[string]int{
		"{apiVersion: v1, kind: PersistentVolumeClaim, spec: {storageClassName: z}}":                       1,
		"{apiVersion: example.com/v1, kind: PersistentVolumeClaim, spec: {storageClassName: z}}":           0,
		"{apiVersion: v1, kind: ConfigMap, spec: {storageClassName: z}}":                                   0,
		"{apiVersion: apps/v1, kind: StatefulSet, " + claims:                                               1,
		"{apiVersion: example.com/v1, kind: StatefulSet, " + claims:                                        0,
		"{apiVersion: apps/v1, kind: Deployment, " + claims:                                                0,
		"{apiVersion: example.com/v1, kind: Ingress, spec: {ingressClassName: z, rules: [{host: z}]}}":     0,
		"{apiVersion: networking.k8s.io/v1, kind: Route, spec: {ingressClassName: z, rules: [{host: z}]}}": 0,
		"{apiVersion: example.com/v1, kind: Gateway, spec: {gatewayClassName: z, listeners: [{}]}}":        0,
		"{apiVersion: gateway.networking.k8s.io/v1, kind: Route, spec: {gatewayClassName: z}}":             0,
		"{apiVersion: example.com/v1, spec: {listeners: [{}]}}":                                            0,
		"{apiVersion: example.com/v1, kind: Service, spec: {type: NodePort}}":                              0,
		"{apiVersion: v1, kind: Thing, spec: {type: NodePort}}":                                            0,
		"{apiVersion: v1, kind: Service, spec: {loadBalancerClass: z}}":                                    0,
		"{apiVersion: v1, kind: Pod, spec: {priorityClassName: z, runtimeClassName: z}}":                   0,
	} {
		if got := Check(parsed(t, object), &rules); len(got) != want {
			t.Errorf("%s: got %+v, want %d", object, got, want)
		}
	}
}

// TestAnActionThatIsUnknownDenies, because a rule that nobody applies would be worse.
func TestAnActionThatIsUnknownDenies(t *testing.T) {
	rules := Of([]v1alpha1.Policy{named("p", false, v1alpha1.PolicyRules{Kinds: &v1alpha1.KindRules{Action: "Ask", Deny: []string{"Pod"}}})})
	if got := Check(parsed(t, "{apiVersion: v1, kind: Pod}"), &rules); len(got) != 1 || got[0].Action != v1alpha1.DenyAction {
		t.Errorf("got %+v", got)
	}
}

// TestObjectsWithoutSenseBreakNothing: the API server refuses them for other reasons.
func TestObjectsWithoutSenseBreakNothing(t *testing.T) {
	rules := Of([]v1alpha1.Policy{named("p", false, v1alpha1.PolicyRules{
		Images: &v1alpha1.ImageRules{Allow: []string{"a.example"}}, Services: &v1alpha1.ServiceRules{LoadBalancerClasses: []string{"a"}},
		Hostnames: &v1alpha1.HostnameRules{Suffixes: []string{"a.example"}}, Classes: &v1alpha1.ClassRules{Storage: []string{"a"}, Ingress: []string{"a"}, Runtime: []string{"a"}},
		Nodes: selecting("a", "b"), Kinds: &v1alpha1.KindRules{Deny: []string{"Secret"}}, Metadata: &v1alpha1.MetadataRules{ForbiddenLabels: []string{"*"}},
	})})
	for name, object := range map[string]map[string]any{
		"nothing":                   {},
		"no spec":                   {"apiVersion": "v1", "kind": "Pod"},
		"a text as spec":            {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "spec": "x"},
		"containers that are texts": {"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{"containers": []any{"x"}, "volumes": []any{"y", nil}}},
		"an image that is a number": {"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{"containers": []any{map[string]any{"image": int64(1)}}}},
		"claims that are texts":     {"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": map[string]any{"volumeClaimTemplates": []any{"x"}}},
		"of another group":          {"apiVersion": "example.com/v1", "kind": "Ingress", "spec": map[string]any{"defaultBackend": map[string]any{}}},
	} {
		t.Run(name, func(t *testing.T) {
			if broken := Check(&unstructured.Unstructured{Object: object}, &rules); len(broken) > 0 {
				t.Errorf("%+v", broken)
			}
		})
	}
}

// FuzzFullName compares names with those that container runtimes read, for every image that they accept.
func FuzzFullName(f *testing.F) {
	for _, image := range []string{"nginx", "a/b:c", "localhost:5000/a@sha256:" + strings.Repeat("0", 64), "index.docker.io/x", "docker.io/a", "A/b", "a.b/c", "a:5/b:6"} {
		f.Add(image)
	}
	f.Fuzz(func(t *testing.T, image string) {
		parsed, err := reference.ParseNormalizedNamed(image)
		if err != nil || strings.HasSuffix(reference.Domain(parsed), ":443") || slices.Contains(hubAliases, strings.ToLower(reference.Domain(parsed))) {
			return // No pod starts with it, or kubeop reads a name of the same registry.
		}
		want := strings.ToLower(parsed.Name())
		if path, inHub := strings.CutPrefix(want, hub+"/"); inHub && !strings.Contains(path, "/") {
			want = library + path // "DOCKER.IO/nginx" is another spelling of the registry.
		}
		if got := fullName(image); got != want {
			t.Errorf("%q is %q, want %q", image, got, want)
		}
	})
}

func TestLabelsNameTheFamiliesWithRules(t *testing.T) {
	spec := Of([]v1alpha1.Policy{
		{Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{
			Images: &v1alpha1.ImageRules{Deny: []string{"a"}}, Services: &v1alpha1.ServiceRules{Action: v1alpha1.WarnAction, Types: []string{"ClusterIP"}},
		}}},
		{Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{
			Images: &v1alpha1.ImageRules{Action: v1alpha1.AuditAction, Deny: []string{"b"}}, Kinds: &v1alpha1.KindRules{Deny: []string{"Job.batch"}},
		}}},
	})
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"paas.kubeop.io/deny": "true", "paas.kubeop.io/deny-images": "true", "paas.kubeop.io/deny-kinds": "true",
		"paas.kubeop.io/warn": "true", "paas.kubeop.io/warn-services": "true", "paas.kubeop.io/audit": "true", "paas.kubeop.io/audit-images": "true",
	}
	if got := Labels(content); !maps.Equal(got, want) {
		t.Errorf("the labels are %v, want %v", got, want)
	}
	if got := Labels(map[string]any{"hostnames": map[string]any{}}); got["paas.kubeop.io/deny-hostnames"] != "true" || len(got) != 1 {
		t.Errorf("host names that have to be claimed have the labels %v", got)
	}
	apart := map[string]any{"deny": []any{map[string]any{"policy": "a", "signatures": "b", "sources": map[string]any{}}}}
	if got := Labels(apart); !maps.Equal(got, map[string]string{"paas.kubeop.io/deny-sources": "true"}) {
		t.Errorf("rules that the API server does not judge have the labels %v", got)
	}
	if got := Labels(map[string]any{}); len(got) > 0 {
		t.Errorf("the labels without rules are %v", got)
	}
}
