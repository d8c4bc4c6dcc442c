package policy

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/delivery/kube"
)

const namespace = "kubeop-acme-web"

var errOffline = errors.New("connection refused")

// scope is what the API server of these tests would say.
func scope(kind schema.GroupVersionKind) (bool, error) {
	switch kind.Kind {
	case "ClusterRole", "ClusterRoleBinding", "Namespace", "CustomResourceDefinition", "Tenant":
		return false, nil
	case "Unheard":
		return false, &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
	case "service":
		return false, &kube.MisspelledKindError{NoKindMatchError: &meta.NoKindMatchError{GroupKind: kind.GroupKind()}, Meant: "Service"}
	case "LocalSubjectAccessReview":
		return false, &kube.UnkeptKindError{Kind: kind, Lacks: []string{"get", "delete"}}
	case "Offline":
		return false, errOffline
	}
	return true, nil
}

const (
	clusterRole      = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: admin}}`
	refusedRole      = `ClusterRole/admin is cluster-scoped; an app may only hold namespaced objects: use a Role and a RoleBinding, or ask an administrator of the cluster to deliver it from platform/ of the platform repository`
	refusedNamespace = `Namespace/a is cluster-scoped; an app may only hold namespaced objects: take it out, and ask an administrator of the cluster to deliver it from platform/ of the platform repository`
)

// Each object breaks at most one rule, so a rule that is lost fails its own case.
func TestCheckRefusesEachObjectByItsRule(t *testing.T) {
	tests := map[string]struct {
		object     string
		rule, want string // no rule: allowed
	}{
		"cluster-scoped":                  {clusterRole, "ClusterScoped", refusedRole},
		"cluster-scoped in a List":        {`{apiVersion: v1, kind: List, items: [` + clusterRole + `]}`, "ClusterScoped", refusedRole},
		"cluster-scoped in a nested List": {`{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: List, items: [` + clusterRole + `]}]}`, "ClusterScoped", refusedRole},
		"cluster-scoped in a typed List": {
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleList, items: [{metadata: {name: admin}}]}`, "ClusterScoped", refusedRole},
		"namespace": {`{apiVersion: v1, kind: Namespace, metadata: {name: a}}`, "ClusterScoped",
			refusedNamespace},
		"List of no objects":            {`{apiVersion: v1, kind: List, metadata: {name: a}, items: [7]}`, "Malformed", "List/a is malformed: items[0]: not an object"},
		"List of no objects and others": {`{apiVersion: v1, kind: List, metadata: {name: a}, items: [` + clusterRole + `, 7]}`, "Malformed", "List/a is malformed: items[1]: not an object"},
		"empty List":                    {`{apiVersion: v1, kind: List, items: []}`, "", ""},
		"unknown kind": {`{apiVersion: example.com/v1, kind: Unheard, metadata: {name: a}}`, "UnknownKind",
			"Unheard/a is of a kind the cluster does not know: example.com/v1 Unheard; check both, or ask an administrator of the cluster to install the CustomResourceDefinition"},
		"misspelled kind": {`{apiVersion: v1, kind: service, metadata: {name: a}}`, "MisspelledKind",
			"service/a is of a kind the cluster does not know: v1 service; did you mean Service?"},
		"a kind that is not kept": {`{apiVersion: authorization.k8s.io/v1, kind: LocalSubjectAccessReview, metadata: {name: a}}`, "UnkeptKind",
			"LocalSubjectAccessReview/a is nothing that an app can hold, so take it out: the API server cannot get, delete objects of the kind authorization.k8s.io/v1 LocalSubjectAccessReview"},
		"protected":     {`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {paas.kubeop.io/prune: confirm}}}`, "", ""},
		"never deleted": {`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {paas.kubeop.io/prune: disabled}}}`, "", ""},
		"a wrong protection": {`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {paas.kubeop.io/prune: never}}}`, "ForgedMark",
			`ConfigMap/a carries the annotation paas.kubeop.io/prune with the value "never"; it may be "confirm" or "disabled"`},
		"a mark beside a protection": {`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {paas.kubeop.io/prune: confirm, paas.kubeop.io/x: z}}}`,
			"ForgedMark", "ConfigMap/a carries paas.kubeop.io/x; only kubeop sets labels, annotations and finalizers of paas.kubeop.io"},
		"a protection as a label": {`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {paas.kubeop.io/prune: confirm}}}`,
			"ForgedMark", "ConfigMap/a carries paas.kubeop.io/prune; only kubeop sets labels, annotations and finalizers of paas.kubeop.io"},
		"a protection in a template": {`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {template: {metadata: {annotations: {paas.kubeop.io/prune: confirm}}}}}`,
			"ForgedMark", "Pod/a carries paas.kubeop.io/prune; only kubeop sets labels, annotations and finalizers of paas.kubeop.io"},
		"foreign namespace": {`{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: kube-system}}`, "ForeignNamespace",
			"Secret/a is for namespace kube-system; this app's is kubeop-acme-web: leave metadata.namespace out, or set spec.targetNamespace of the App to kubeop-acme-web"},
		"a namespace that extends the app's": {`{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: kubeop-acme-web2}}`, "ForeignNamespace",
			"Secret/a is for namespace kubeop-acme-web2; this app's is kubeop-acme-web: leave metadata.namespace out, or set spec.targetNamespace of the App to kubeop-acme-web"},
		"a namespace that is a number": {`{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: 7}}`, "ForeignNamespace",
			"Secret/a has a namespace that is no text"},
		"own namespace":   {`{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: kubeop-acme-web}}`, "", ""},
		"empty namespace": {`{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: ""}}`, "", ""},
		"own API group": {`{apiVersion: paas.kubeop.io/v1alpha1, kind: App, metadata: {name: a}}`, "OwnAPIGroup",
			"App/a is of API group paas.kubeop.io; kubeop's own objects belong in the tenant's repository, not in an app"},
		"API group below ours": {`{apiVersion: x.paas.kubeop.io/v1, kind: Thing, metadata: {name: a}}`, "OwnAPIGroup",
			"Thing/a is of API group x.paas.kubeop.io; kubeop's own objects belong in the tenant's repository, not in an app"},
		"API group that ends like ours": {`{apiVersion: otherpaas.kubeop.io/v1, kind: Thing, metadata: {name: a}}`, "", ""},
		"resource quota": {`{apiVersion: v1, kind: ResourceQuota, metadata: {name: a}}`, "Guardrail",
			"ResourceQuota/a is refused: the quota and limits of a project are set in its project.yaml"},
		"limit range": {`{apiVersion: v1, kind: LimitRange, metadata: {name: a}}`, "Guardrail",
			"LimitRange/a is refused: the quota and limits of a project are set in its project.yaml"},
		"network policy": {`{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a}}`, "Guardrail",
			"NetworkPolicy/a is refused: the platform sets the network policies of a project, so leave it out; many charts have a value for that, such as networkPolicy.enabled: false. " +
				"With spec.network.policies: Own in project.yaml they open what the project may have"},
		"Calico's network policy": {`{apiVersion: crd.projectcalico.org/v1, kind: NetworkPolicy, metadata: {name: a}}`, "Guardrail",
			"NetworkPolicy/a is refused: the platform sets the network policies of a project, so leave it out; many charts have a value for that, such as networkPolicy.enabled: false"},
		"Cilium's network policy": {`{apiVersion: cilium.io/v2, kind: CiliumNetworkPolicy, metadata: {name: a}}`, "Guardrail",
			"CiliumNetworkPolicy/a is refused: the platform sets the network policies of a project, so leave it out; many charts have a value for that, such as networkPolicy.enabled: false"},
		"endpoints": {`{apiVersion: v1, kind: Endpoints, metadata: {name: a}}`, "Endpoints",
			"Endpoints/a is refused: a Service finds its pods by a selector, not by addresses written by hand"},
		"endpoint slice": {`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: a}}`, "Endpoints",
			"EndpointSlice/a is refused: a Service finds its pods by a selector, not by addresses written by hand"},
		"endpoints of another group":            {`{apiVersion: example.com/v1, kind: Endpoints, metadata: {name: a}}`, "", ""},
		"endpoint slice of another group":       {`{apiVersion: example.com/v1, kind: EndpointSlice, metadata: {name: a}}`, "", ""},
		"another kind beside endpoint slices":   {`{apiVersion: discovery.k8s.io/v1, kind: Other, metadata: {name: a}}`, "", ""},
		"resource quota of another group":       {`{apiVersion: example.com/v1, kind: ResourceQuota, metadata: {name: a}}`, "", ""},
		"reserved account of another group":     {`{apiVersion: example.com/v1, kind: ServiceAccount, metadata: {name: kubeop-deployer}}`, "", ""},
		"reserved role of another group":        {`{apiVersion: example.com/v1, kind: Role, metadata: {name: kubeop-x}}`, "", ""},
		"reserved name of another kind of RBAC": {`{apiVersion: rbac.authorization.k8s.io/v1, kind: Other, metadata: {name: kubeop-x}}`, "", ""},
		"event":                                 {`{apiVersion: v1, kind: Event, metadata: {name: a}}`, "Event", "Event/a is refused: Events report what happened and expire, so take it out"},
		"event of the newer group": {`{apiVersion: events.k8s.io/v1, kind: Event, metadata: {name: a}}`, "Event",
			"Event/a is refused: Events report what happened and expire, so take it out"},
		"event of another group": {`{apiVersion: example.com/v1, kind: Event, metadata: {name: a}}`, "", ""},
		"reserved account": {`{apiVersion: v1, kind: ServiceAccount, metadata: {name: kubeop-deployer}}`, "ReservedName",
			"ServiceAccount/kubeop-deployer is refused: the platform's own ServiceAccounts start with kubeop-; choose another name in Git"},
		"reserved role": {`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: kubeop-x}}`, "ReservedName",
			"Role/kubeop-x is refused: the platform's own Roles start with kubeop-; choose another name in Git"},
		"reserved binding": {`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: kubeop-x}}`, "ReservedName",
			"RoleBinding/kubeop-x is refused: the platform's own RoleBindings start with kubeop-; choose another name in Git"},
		"reserved name of a kind that gives no rights": {`{apiVersion: v1, kind: ConfigMap, metadata: {name: kubeop-x}}`, "", ""},
		"ExternalName": {`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: ExternalName}}`, "ExternalService",
			"Service/a is of type ExternalName, which leads out of the project; connect to the name itself, or ask an administrator of the cluster to list its domain in services.externalNames of a Policy"},
		"external name without the type": {`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {externalName: b.c}}`, "ExternalService",
			"Service/a is of type ExternalName, which leads out of the project; connect to the name itself, or ask an administrator of the cluster to list its domain in services.externalNames of a Policy"},
		"external addresses": {`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {externalIPs: [192.0.2.1]}}`, "ExternalService",
			"Service/a has spec.externalIPs, which can catch traffic meant for others; take them out, or ask an administrator of the cluster to list them in services.externalIPs of a Policy"},
		"no external addresses":      {`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {externalIPs: [], externalName: ""}}`, "", ""},
		"a Service of another group": {`{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: a}, spec: {type: ExternalName}}`, "", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			expect(t, tc.object, tc.rule, tc.want)
		})
	}
}

func expect(t *testing.T, manifest, rule, want string) {
	t.Helper()
	err := Check([]*unstructured.Unstructured{object(t, manifest)}, Bounds{Namespace: namespace}, scope)
	if rule == "" {
		if err != nil {
			t.Fatalf("refused: %v", err)
		}
		return
	}
	var violation *Violation
	if !errors.As(err, &violation) {
		t.Fatalf("got %v, want a Violation", err)
	}
	if violation.Rule != rule {
		t.Errorf("broken rule %s, want %s", violation.Rule, rule)
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
}

func TestCheckReportsAllSorted(t *testing.T) {
	objects := []*unstructured.Unstructured{
		object(t, `{apiVersion: v1, kind: Secret, metadata: {name: z, namespace: other, labels: {paas.kubeop.io/app: b}}}`),
		object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: fine}}`),
		object(t, clusterRole),
	}
	err := Check(objects, Bounds{Namespace: namespace}, scope)
	if err == nil {
		t.Fatal("nothing refused")
	}
	want := []string{
		refusedRole,
		"Secret/z carries paas.kubeop.io/app; only kubeop sets labels, annotations and finalizers of paas.kubeop.io",
		"Secret/z is for namespace other; this app's is kubeop-acme-web: leave metadata.namespace out, or set spec.targetNamespace of the App to kubeop-acme-web",
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
}

// TestAdviceForSeveralObjectsIsGivenOnce, with the objects that it is about.
func TestAdviceForSeveralObjectsIsGivenOnce(t *testing.T) {
	for about, manifests := range map[string][2]string{
		"cluster-scoped objects":               {definitionOf("example.com", "Cluster"), definitionOf("example.org", "Cluster")},
		"kinds that the cluster does not know": {`{apiVersion: example.com/v1, kind: Unheard, metadata: {name: a}}`, `{apiVersion: example.com/v1, kind: Unheard, metadata: {name: b}}`},
	} {
		err := Check([]*unstructured.Unstructured{object(t, manifests[0]), object(t, manifests[1])}, Bounds{Namespace: namespace}, scope)
		if lines := strings.Split(text(err), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[2], "for "+about+": ") {
			t.Errorf("got %v, want a line for %s", err, about)
		}
	}
}

func TestCheckChangesNoObject(t *testing.T) {
	checked := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {paas.kubeop.io/prune: confirm, x: z}}}`)
	before := checked.DeepCopy()
	if err := Check([]*unstructured.Unstructured{checked}, Bounds{Namespace: namespace}, scope); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, checked); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
}

func TestCheckKeepsMessagesOnOneLine(t *testing.T) {
	o := object(t, clusterRole)
	o.SetName("a\nb\u2028c" + strings.Repeat("d", 1000))
	err := Check([]*unstructured.Unstructured{o}, Bounds{Namespace: namespace}, scope)
	if err == nil {
		t.Fatal("nothing refused")
	}
	if strings.ContainsAny(err.Error(), "\n\u2028") || len(err.Error()) > 470 {
		t.Errorf("message is not one short line: %q", err.Error())
	}
}

func TestCheckPassesOnThatScopeIsUnknownNow(t *testing.T) {
	err := Check([]*unstructured.Unstructured{
		object(t, clusterRole),
		object(t, `{apiVersion: v1, kind: Offline, metadata: {name: a}}`),
	}, Bounds{Namespace: namespace}, scope)
	if !errors.Is(err, errOffline) {
		t.Fatalf("got %v, want %v", err, errOffline)
	}
	var violation *Violation
	if errors.As(err, &violation) {
		t.Errorf("got the violation %v from a question that has no answer yet", violation)
	}
}

func TestOnlyUnknownKindsIsFalseBesideOtherFaults(t *testing.T) {
	unheard := `{apiVersion: example.com/v1, kind: Unheard, metadata: {name: a}}`
	tests := map[string]struct {
		objects []string
		want    bool
	}{
		"none":              {nil, false},
		"one":               {[]string{unheard}, true},
		"two":               {[]string{unheard, unheard}, true},
		"and another":       {[]string{unheard, clusterRole}, false},
		"only another":      {[]string{clusterRole}, false},
		"scope not known":   {[]string{`{apiVersion: v1, kind: Offline, metadata: {name: a}}`}, false},
		"only misspelled":   {[]string{`{apiVersion: v1, kind: service, metadata: {name: a}}`}, false},
		"unknown, and also": {[]string{`{apiVersion: example.com/v1, kind: Unheard, metadata: {name: a, namespace: b}}`}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var objects []*unstructured.Unstructured
			for _, manifest := range tc.objects {
				objects = append(objects, object(t, manifest))
			}
			if got := OnlyUnknownKinds(Check(objects, Bounds{Namespace: namespace}, scope)); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func object(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestOneRefusalSaysWhatBothChecksFound(t *testing.T) {
	unknown := join([]*Violation{{Object: "Thing/a", Rule: UnknownKind, Why: "is of a kind the cluster does not know"}})
	pods := join([]*Violation{{Object: "Pod/b", Rule: "PodSecurity", Why: "is privileged"}})
	tests := map[string]struct {
		refused, also error
		want          string
		onlyUnknown   bool
	}{
		"neither": {nil, nil, "", false},
		"one":     {unknown, nil, "Thing/a is of a kind the cluster does not know", true},
		"other":   {nil, pods, "Pod/b is privileged", false},
		"both":    {unknown, pods, "Thing/a is of a kind the cluster does not know\nPod/b is privileged", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := Join(tc.refused, tc.also)
			if got := text(err); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if got := OnlyUnknownKinds(err); got != tc.onlyUnknown {
				t.Errorf("only unknown kinds: %t, want %t", got, tc.onlyUnknown)
			}
		})
	}
}

func TestJoinedRefusalsAreInOrderAndOneAloneStaysItself(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	for name, c := range map[string]struct{ refused, also, want error }{
		"none":       {nil, nil, nil},
		"the first":  {first, nil, first},
		"the second": {nil, second, second},
	} {
		if got := Join(c.refused, c.also); got != c.want { //nolint:errorlint // the very error is wanted
			t.Errorf("%s: got %v", name, got)
		}
	}
	if got := Join(first, second); got == nil || got.Error() != "first\nsecond" || !errors.Is(got, first) || !errors.Is(got, second) {
		t.Errorf("both: got %v", got)
	}
}

// TestAppsHaveNetworkPoliciesWhereTheProjectSaysSo, those of Kubernetes alone: nobody says what others may open.
func TestAppsHaveNetworkPoliciesWhereTheProjectSaysSo(t *testing.T) {
	bounds := Bounds{Namespace: namespace, NetworkPolicies: true}
	for manifest, allowed := range map[string]bool{
		`{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a}}`:        true,
		`{apiVersion: crd.projectcalico.org/v1, kind: NetworkPolicy, metadata: {name: a}}`:    false,
		`{apiVersion: cilium.io/v2, kind: CiliumNetworkPolicy, metadata: {name: a}}`:          false,
		`{apiVersion: v1, kind: ResourceQuota, metadata: {name: a}}`:                          false,
		`{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {namespace: any}}`: false,
	} {
		if err := Check([]*unstructured.Unstructured{object(t, manifest)}, bounds, scope); (err == nil) != allowed {
			t.Errorf("%s: %v", manifest, err)
		}
	}
}
