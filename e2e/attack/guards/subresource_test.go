//go:build e2e

package guards

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// request is something that is refused although its object is not written as a whole: by a subresource, or as a change of what the platform made.
type request struct {
	do func(context.Context, client.Client) error
	// want is what the API server says, by default that the role does not allow it, or with every right that a policy refuses it.
	want string
	// own is a change of what the tenant declares itself, which an account with every right in the namespace may make until kubeop corrects it.
	own bool
}

// merge is a request that changes an object, or its subresource.
func merge(kind, name, patch string, subresource ...string) request {
	return request{do: func(ctx context.Context, c client.Client) error {
		o := ofKind(kind, name)
		change := client.RawPatch("application/merge-patch+json", []byte(patch))
		if len(subresource) > 0 {
			return c.SubResource(subresource[0]).Patch(ctx, o, change)
		}
		return c.Patch(ctx, o, change)
	}}
}

// itsOwn marks a request for what the tenant declares itself.
func itsOwn(r request) request {
	r.own = true
	return r
}

func remove(kind, name string) request {
	return request{do: func(ctx context.Context, c client.Client) error { return c.Delete(ctx, ofKind(kind, name)) }}
}

func sub(name string, of, body client.Object) request {
	return request{do: func(ctx context.Context, c client.Client) error {
		return c.SubResource(name).Create(ctx, of.DeepCopyObject().(client.Object), body.DeepCopyObject().(client.Object))
	}}
}

func ofKind(kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	version, bare, qualified := strings.Cut(kind, " ")
	if !qualified {
		version, bare = "v1", kind
	}
	o.SetAPIVersion(version)
	o.SetKind(bare)
	o.SetName(name)
	if bare != "Namespace" {
		o.SetNamespace(shop)
	}
	return o
}

var (
	pod      = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "running"}}
	account  = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "kubeop-deployer"}}
	longTime = int64(1_000_000)
)

// debugged adds an ephemeral container.
var debugged = request{want: images, do: func(ctx context.Context, c client.Client) error {
	const debug = `{"spec":{"ephemeralContainers":[{"name":"debug","image":"evil.org/debug","securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}]}}`
	return c.SubResource("ephemeralcontainers").Patch(ctx, pod.DeepCopy(), client.RawPatch("application/strategic-merge-patch+json", []byte(debug)))
}}

const (
	ours = "paas.kubeop.io/v1alpha1 "
	stay = `{"metadata":{"finalizers":["mallet.example/stay"]}}`
	// owned has an object deleted with another one that a tenant can delete.
	owned = `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"6a5d0b4e-2f0e-4d4c-9b5e-0d2f7f6f3c1a"}]}}`
)

// requests are refused to every account and person of the tenant.
var requests = map[string]request{
	"an ephemeral container": debugged,
	"an eviction that takes days": {want: "kubeop-grace-period",
		do: sub("eviction", pod, &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: &longTime}}).do},
	"a deletion that takes days": {want: "kubeop-grace-period", do: func(ctx context.Context, c client.Client) error {
		return c.Delete(ctx, pod.DeepCopy(), client.GracePeriodSeconds(longTime))
	}},
	"a deletion of all that takes days": {want: "kubeop-grace-period", do: func(ctx context.Context, c client.Client) error {
		return c.DeleteAllOf(ctx, pod.DeepCopy(), client.InNamespace(shop), client.GracePeriodSeconds(longTime))
	}},
	"a token of the deployer": sub("token", account, &authenticationv1.TokenRequest{}),
	"a binding to a node":     sub("binding", pod, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "node-1"}}),
	"a binding to a node by its kind": {do: func(ctx context.Context, c client.Client) error {
		return c.Create(ctx, &corev1.Binding{ObjectMeta: pod.ObjectMeta, Target: corev1.ObjectReference{Kind: "Node", Name: "node-1"}})
	}},
	"Endpoints": {do: func(ctx context.Context, c client.Client) error {
		return c.Create(ctx, ofKind("Endpoints", "elsewhere"))
	}},
	"an EndpointSlice": {do: func(ctx context.Context, c client.Client) error {
		o := ofKind("discovery.k8s.io/v1 EndpointSlice", "elsewhere")
		o.Object["addressType"], o.Object["endpoints"] = "IPv4", []any{}
		return c.Create(ctx, o)
	}},
	"the address of a pod":        merge("Pod", "running", `{"status":{"podIP":"10.0.0.9","podIPs":[{"ip":"10.0.0.9"}]}}`, "status"),
	"an annotation of an Ingress": merge("networking.k8s.io/v1 Ingress", "web", `{"metadata":{"annotations":{"nginx.ingress.kubernetes.io/server-snippet":"a"}}}`, "status"),
	"the status of a pod":         merge("Pod", "running", `{"metadata":{"labels":{"paas.kubeop.io/tenant":"x"}}}`, "status"),
	"the status of a Service":     merge("Service", "wealth", `{"status":{"loadBalancer":{"ingress":[{"ip":"10.0.0.1"}]}}}`, "status"),
	"the status of an Ingress":    merge("networking.k8s.io/v1 Ingress", "web", `{"status":{"loadBalancer":{"ingress":[{"ip":"10.0.0.1"}]}}}`, "status"),
	"the status of the quota":     merge("ResourceQuota", "kubeop", `{"status":{"used":{"pods":"0"}}}`, "status"),
	"the status of the namespace": merge("Namespace", shop, `{"metadata":{"labels":{"paas.kubeop.io/guardrails":null}}}`, "status"),
	"the end of the namespace": {do: func(ctx context.Context, c client.Client) error {
		return c.SubResource("finalize").Update(ctx, ofKind("Namespace", shop))
	}},
	"the labels of the namespace":       merge("Namespace", shop, `{"metadata":{"labels":{"paas.kubeop.io/tenant":null,"pod-security.kubernetes.io/enforce":"privileged"}}}`),
	"the annotations of the namespace":  merge("Namespace", shop, `{"metadata":{"annotations":{"paas.kubeop.io/taints":"x"}}}`),
	"the owner of the namespace":        merge("Namespace", shop, `{"metadata":{"ownerReferences":[]}}`),
	"the finalizers of the project":     itsOwn(merge(ours+"App", "bot", `{"metadata":{"finalizers":[]}}`)),
	"the labels of the Guardrails":      merge(ours+"Guardrails", "kubeop", `{"metadata":{"labels":{"paas.kubeop.io/deny-kinds":null}}}`),
	"the rules of the Guardrails":       merge(ours+"Guardrails", "kubeop", `{"spec":{"deny":[]}}`),
	"the status of an App":              itsOwn(merge(ours+"App", "bot", `{"status":{"conditions":[]}}`, "status")),
	"the spec of an App":                itsOwn(merge(ours+"App", "bot", `{"spec":{"suspend":true}}`)),
	"the quota":                         merge("ResourceQuota", "kubeop", `{"spec":{"hard":{"pods":"1000"}}}`),
	"the network policy":                merge("networking.k8s.io/v1 NetworkPolicy", "kubeop", `{"spec":{"ingress":[{}]}}`),
	"the deployer's binding":            merge("rbac.authorization.k8s.io/v1 RoleBinding", "kubeop-deployer", `{"subjects":[{"kind":"ServiceAccount","name":"bot","namespace":"`+shop+`"}]}`),
	"a finalizer of the namespace":      merge("Namespace", shop, stay),
	"a finalizer of an App":             itsOwn(merge(ours+"App", "bot", stay)),
	"a finalizer of the Guardrails":     merge(ours+"Guardrails", "kubeop", stay),
	"a finalizer of the quota":          merge("ResourceQuota", "kubeop", stay),
	"a finalizer of the network policy": merge("networking.k8s.io/v1 NetworkPolicy", "kubeop", stay),
	"a finalizer of the deployer":       merge("ServiceAccount", "kubeop-deployer", stay),
	"a finalizer of its binding":        merge("rbac.authorization.k8s.io/v1 RoleBinding", "kubeop-deployer", stay),
	"an owner of an App":                itsOwn(merge(ours+"App", "bot", owned)),
	"an owner of the Guardrails":        merge(ours+"Guardrails", "kubeop", owned),
	"an owner of the quota":             merge("ResourceQuota", "kubeop", owned),
	"an owner of the network policy":    merge("networking.k8s.io/v1 NetworkPolicy", "kubeop", owned),
	"an owner of the deployer":          merge("ServiceAccount", "kubeop-deployer", owned),
	"an owner of its binding":           merge("rbac.authorization.k8s.io/v1 RoleBinding", "kubeop-deployer", owned),
	"the end of the Guardrails":         remove(ours+"Guardrails", "kubeop"),
	"the end of the quota":              remove("ResourceQuota", "kubeop"),
	"the end of the network policy":     remove("networking.k8s.io/v1 NetworkPolicy", "kubeop"),
	"the end of the deployer":           remove("ServiceAccount", "kubeop-deployer"),
	"the end of the deployer's binding": remove("rbac.authorization.k8s.io/v1 RoleBinding", "kubeop-deployer"),
	"the end of the App":                itsOwn(remove(ours+"App", "bot")),
	"the end of the namespace, at once": remove("Namespace", shop),
}

// TestNothingIsChangedBySubresources asks as each role, as an account, and as an account with every right in the namespace, as administrators may give one.
func TestNothingIsChangedBySubresources(t *testing.T) {
	before := versions(t)
	place(t, object(t, controls["Pod"], "running"))
	must(t, platform.Client.Create(t.Context(), object(t, controls["LoadBalancer"], "wealth")))
	giant := giantOf(t, shop)
	debugContainers(t, giant)
	giantOf(t, v1alpha1.ProjectNamespace(narrow, "shop"))
	for kind := range otherKinds {
		otherTemplates(t, kind)
	}
	for what, r := range requests {
		for _, user := range []string{bot, attacker + "-view", attacker + "-edit", attacker + "-admin"} {
			err := r.do(t.Context(), as(t, user))
			tried.add(what+", by "+user, fmt.Sprint(err))
			if err == nil || !strings.Contains(err.Error(), forbidden) && (r.want == "" || !strings.Contains(err.Error(), r.want)) && !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
				t.Errorf("ESCAPE: %s, by %s: %v", what, user, err)
			}
		}
		if r.own {
			continue
		}
		err := r.do(t.Context(), as(t, giant))
		tried.add(what+", with every right", fmt.Sprint(err))
		if err == nil || !strings.Contains(err.Error(), cmp.Or(r.want, "ValidatingAdmissionPolicy")) {
			t.Errorf("ESCAPE: %s, with every right: %v", what, err)
		}
	}
	unchanged(t, before)
}

// place creates a pod on a node.
func place(t *testing.T, pod *unstructured.Unstructured) {
	t.Helper()
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("9")}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-2"}, Status: corev1.NodeStatus{Capacity: room, Allocatable: room}}
	must(t, client.IgnoreAlreadyExists(platform.Client.Create(t.Context(), node)))
	set(t, pod.Object, []string{"spec", "nodeName"}, "node-2")
	must(t, as(t, "system:kube-scheduler", "system:masters").Create(t.Context(), pod)) // No other user may place a pod.
}

// giantOf is an account with every right in a namespace, as administrators may give one.
func giantOf(t *testing.T, namespace string) string {
	t.Helper()
	for _, text := range []string{
		"kind: Role, metadata: {name: giant}, rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]",
		"kind: RoleBinding, metadata: {name: giant}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: giant}, subjects: [{kind: ServiceAccount, name: giant, namespace: NAMESPACE}]",
	} {
		must(t, client.IgnoreAlreadyExists(platform.Client.Create(t.Context(), objectIn(t, namespace, "{"+rbacV1+", "+text+"}", ""))))
	}
	giant := "system:serviceaccount:" + namespace + ":giant"
	soon(t, "the account has its rights", func(ctx context.Context) error {
		return as(t, giant).List(ctx, &corev1.PodTemplateList{}, client.InNamespace(namespace))
	})
	return giant
}

// debugContainers tries each guard about a container as an ephemeral container of the running pod. The control is one that differs in the field alone.
func debugContainers(t *testing.T, user string) {
	t.Helper()
	by := as(t, user)
	debug := func(o *unstructured.Unstructured, path string) error {
		container, _ := value(o.Object, []string{"spec", path, "0"}).(map[string]any)
		container["name"] = "debug"
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"ephemeralContainers": []any{container}}})
		must(t, err)
		return by.SubResource("ephemeralcontainers").Patch(t.Context(), pod.DeepCopy(), client.RawPatch("application/strategic-merge-patch+json", patch), client.DryRunAll)
	}
	must(t, debug(object(t, controls["Pod"], "x"), "containers"))
	for _, g := range guards {
		path, _, _ := strings.Cut(strings.TrimPrefix(g.field, "/"), "/")
		if g.control != "pod" || g.by() != attacker || path != "containers" && g.field != "/initContainers" || strings.HasSuffix(g.field, "/ports") || !g.chosen() {
			continue // An ephemeral container has no ports.
		}
		w := &writer{T: t, try: g.tries("Pod")[0], about: g.name}
		err := debug(w.bad(t, "x"), path)
		tried.add(g.name+", as an ephemeral container", fmt.Sprint(err))
		if wrong := w.judge(err); wrong != nil {
			t.Errorf("ESCAPE: %s, as an ephemeral container: %v", g.name, wrong)
		}
	}
}

// otherKinds are those with a template of pods that no role of kubeop has, and the guards that hold for them. No controller makes pods of PodTemplates.
var otherKinds = map[string][]string{
	"PodTemplate":           {images, classes, nodes, "kubeop-volumes"},
	"ReplicationController": {images, classes, nodes, "kubeop-volumes", "kubeop-placement", "kubeop-grace-period", "kubeop-priority-class", "denied request: "},
}

// otherTemplates tries the guards about pods with the kinds that no role of kubeop has, as an account with every right.
func otherTemplates(t *testing.T, kind string) {
	t.Helper()
	create := func(g guard, pod *unstructured.Unstructured) error {
		o := objectIn(t, g.namespace(), "{apiVersion: v1, kind: "+kind+", "+metadata+"}", "x")
		template := map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "a"}}, "spec": pod.Object["spec"]}
		if o.Object["template"] = template; kind == "ReplicationController" {
			delete(o.Object, "template")
			o.Object["spec"] = map[string]any{"replicas": int64(0), "selector": map[string]any{"app": "a"}, "template": template}
		}
		return as(t, g.account("giant")).Create(t.Context(), o, client.DryRunAll)
	}
	for _, g := range guards {
		if g.control != "pod" || !slices.Contains(otherKinds[kind], g.policy) || !g.chosen() {
			continue
		}
		w := &writer{T: t, try: g.tries("Pod")[0], about: g.name}
		must(t, create(g, w.good(t, "x")))
		err := create(g, w.bad(t, "x"))
		tried.add(g.name+", as a "+kind, fmt.Sprint(err))
		if wrong := w.judge(err); wrong != nil {
			t.Errorf("ESCAPE: %s, as a %s: %v", g.name, kind, wrong)
		}
	}
}

// TestLabelsThatAreTakenAwayComeBack: anybody who may change an object may remove kubeop's labels from it. kubeop restores them, and the object stays the app's.
func TestLabelsThatAreTakenAwayComeBack(t *testing.T) {
	by := as(t, bot)
	for _, kind := range []string{"ServiceAccount bot", "networking.k8s.io/v1 Ingress web"} {
		parts := strings.Fields(kind)
		o := ofKind(strings.Join(parts[:len(parts)-1], " "), parts[len(parts)-1])
		must(t, by.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":null}}`))))
		tried.add("labels that are taken away: "+kind, "")
		soon(t, "the labels of "+kind+" are back", func(ctx context.Context) error {
			if err := by.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
			if o.GetLabels()[v1alpha1.AppLabel] != "bot" {
				return fmt.Errorf("the labels are %v", o.GetLabels())
			}
			return nil
		})
	}
}
