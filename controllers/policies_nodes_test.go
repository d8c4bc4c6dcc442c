package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// nodesOf returns the node selector of the pod at the path of an object.
func nodesOf(t *testing.T, object *unstructured.Unstructured, path ...string) map[string]string {
	t.Helper()
	labels, _, err := unstructured.NestedStringMap(object.Object, append(path, "nodeSelector")...)
	if err != nil {
		t.Fatal(err)
	}
	return labels
}

// TestPodsRunOnTheNodesOfTheirPolicy: kubeop writes the labels of the nodes into the templates of an app, the API server into every new pod, and what
// names another value is refused. What a rule only warns about is not written.
func TestPodsRunOnTheNodesOfTheirPolicy(t *testing.T) {
	n, bot := limited(t, "pooled")
	place := func(name string, action v1alpha1.PolicyAction, selector map[string]v1alpha1.LabelValue) v1alpha1.Policy {
		return v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{
			Nodes: &v1alpha1.NodeRules{Action: action, Selector: selector},
		}}}
	}
	n.under(place("pool", v1alpha1.DenyAction, map[string]v1alpha1.LabelValue{"pool": "tenants", "example.org/zone": "north"}),
		place("wish", v1alpha1.WarnAction, map[string]v1alpha1.LabelValue{"disk": "ssd"}))
	want := map[string]string{"pool": "tenants", "example.org/zone": "north"}

	if env.OlderThan(36) {
		n.denied(func() error {
			return bot.Create(t.Context(), n.object(n.namespace(), placed("Pod", "hostname: a")), client.DryRunAll)
		}, "Nodes: Pod/x selects nodes with any ", ", and its pods have to run on nodes with ", "See spec.nodes.selector of policy pooled-pool")
		n.writesNodesIntoApps(want)
		return
	}
	// As an account of the tenant, with and without labels of its own.
	for field, more := range map[string]map[string]string{"hostname: a": nil, "nodeSelector: {a: b}": {"a": "b"}, "nodeSelector: {pool: tenants}": nil} {
		n.eventually(func() error {
			pod := n.object(n.namespace(), placed("Pod", field))
			if err := bot.Create(t.Context(), pod, client.DryRunAll); err != nil {
				return err
			}
			all := maps.Clone(want)
			maps.Copy(all, more)
			if diff := cmp.Diff(all, nodesOf(t, pod, "spec")); diff != "" {
				return fmt.Errorf("%s: -want +got:\n%s", field, diff)
			}
			return nil
		})
	}
	n.denied(func() error {
		return bot.Create(t.Context(), n.object(n.namespace(), placed("Pod", "nodeSelector: {pool: others}")), client.DryRunAll)
	}, "Nodes: Pod/x selects nodes with pool=others, and its pods have to run on nodes with pool=tenants. See spec.nodes.selector of policy pooled-pool")

	n.writesNodesIntoApps(want)

	// Without a policy nothing is written any more.
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Policies = []string{"pooled-wish"} })
	n.eventually(func() error {
		pod := n.object(n.namespace(), placed("Pod", "hostname: a"))
		if err := bot.Create(t.Context(), pod, client.DryRunAll); err != nil {
			return err
		}
		if nodesOf(t, pod, "spec") != nil {
			return errors.New("the labels are still written")
		}
		return nil
	})
}

// writesNodesIntoApps checks that kubeop writes the labels of nodes into the templates of an app, and refuses an app that names others.
func (n *team) writesNodesIntoApps(want map[string]string) {
	n.t.Helper()
	n.push(imageFile("site", "  image: {reference: registry.example.com/web:v1, replicas: 0}\n"))
	n.ready(n.app("shop", "site"))
	deployment := &appsv1.Deployment{}
	if err := n.admin.Get(n.t.Context(), client.ObjectKey{Namespace: n.namespace(), Name: "site"}, deployment); err != nil {
		n.t.Fatal(err)
	}
	if diff := cmp.Diff(want, deployment.Spec.Template.Spec.NodeSelector); diff != "" {
		n.t.Errorf("the Deployment, -want +got:\n%s", diff)
	}
	n.push(imageFile("site", "  image: {reference: registry.example.com/web:v1, replicas: 0, nodeSelector: {pool: others}}\n"))
	n.states(n.app("shop", "site"), v1alpha1.AllowedCondition, metav1.ConditionFalse, "Deployment/site selects nodes with pool=others, and its pods have to run on nodes with pool=tenants; "+
		"change that in Git, or ask an administrator of the cluster to change spec.nodes.selector of policies/pooled-pool.yaml")
}

// TestPodsGetTheirUserNamespaceAndPullPolicyFromPolicies: kubeop writes them into the templates of an app that does not say them, the API server into every new
// pod. Others are refused.
func TestPodsGetTheirUserNamespaceAndPullPolicyFromPolicies(t *testing.T) {
	n, bot := limited(t, "namespaced")
	n.under(v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{
		Images: &v1alpha1.ImageRules{PullPolicies: []string{"Always"}}, Nodes: &v1alpha1.NodeRules{UserNamespaces: true},
	}}})
	create := func(pod *unstructured.Unstructured) error { return bot.Create(t.Context(), pod, client.DryRunAll) }
	pod := func(fields string) *unstructured.Unstructured {
		return n.object(n.namespace(), placed("Pod", fields))
	}
	const users = "Nodes: Pod/x has pods whose users are users of their node: they need hostUsers: false. See spec.nodes.userNamespaces of policy namespaced-own"
	const pull = "with imagePullPolicy %s; allowed are: Always. See spec.images.pullPolicies of policy namespaced-own"
	n.denied(func() error { return create(pod("hostUsers: true")) }, users)
	never := pod("hostUsers: false")
	setPullPolicy(t, never, "Never")
	n.denied(func() error { return create(never) }, fmt.Sprintf(pull, "Never"))
	if env.OlderThan(36) {
		n.denied(func() error { return create(pod("hostname: a")) }, users)
		present := pod("hostUsers: false")
		setPullPolicy(t, present, "IfNotPresent")
		n.denied(func() error { return create(present) }, fmt.Sprintf(pull, "IfNotPresent"))
	} else {
		n.eventually(func() error {
			present := pod("hostname: a, " + strings.Replace(podSpec, "containers: [{name: a, image: a", "initContainers: [{name: i, image: 'i:1'", 1) + ", volumes: [{name: v, image: {reference: 'v:1'}}, {name: e, emptyDir: {}}]")
			setPullPolicy(t, present, "IfNotPresent")
			if err := create(present); err != nil {
				return err
			}
			got := &corev1.Pod{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(present.Object, got); err != nil {
				return err
			}
			for _, policy := range []corev1.PullPolicy{got.Spec.Containers[0].ImagePullPolicy, got.Spec.InitContainers[0].ImagePullPolicy, got.Spec.Volumes[0].Image.PullPolicy} {
				if policy != corev1.PullAlways {
					return fmt.Errorf("the pull policy is %s", policy)
				}
			}
			if got.Spec.HostUsers == nil || *got.Spec.HostUsers || got.Spec.NodeSelector != nil {
				return fmt.Errorf("the pod is %+v", got.Spec)
			}
			return nil
		})
		n.pullsInjectedImages(create, pod("securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}"))
	}

	n.push(imageFile("site", "  image: {reference: registry.example.com/web:v1, replicas: 0}\n"))
	n.ready(n.app("shop", "site"))
	deployment := &appsv1.Deployment{}
	if err := n.admin.Get(t.Context(), client.ObjectKey{Namespace: n.namespace(), Name: "site"}, deployment); err != nil {
		t.Fatal(err)
	}
	made := deployment.Spec.Template.Spec
	if made.HostUsers == nil || *made.HostUsers || made.Containers[0].ImagePullPolicy != corev1.PullAlways {
		t.Errorf("the Deployment has %+v", made)
	}
	n.push(imageFile("site", "  image: {reference: registry.example.com/web:v1, replicas: 0, imagePullPolicy: IfNotPresent}\n"))
	n.states(n.app("shop", "site"), v1alpha1.AllowedCondition, metav1.ConditionFalse, "Deployment/site has the image registry.example.com/web:v1 with imagePullPolicy IfNotPresent; allowed are: Always; "+
		"change that in Git, or ask an administrator of the cluster to change spec.images.pullPolicies of policies/namespaced-own.yaml")
}

// pullsInjectedImages checks that containers have the pull policy, too, which others add to a pod after kubeop's policy was asked. An admission policy adds them, as a
// webhook for sidecars does.
func (n *team) pullsInjectedImages(create func(*unstructured.Unstructured) error, pod *unstructured.Unstructured) {
	n.t.Helper()
	sidecar := n.object("", "{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicy, metadata: {name: namespaced-sidecar}, spec: {reinvocationPolicy: Never, "+
		"matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}, "+
		"mutations: [{patchType: JSONPatch, jsonPatch: {expression: \"[JSONPatch{op: 'add', path: '/spec/containers/-', value: Object.spec.containers{name: 'sidecar', image: 'sidecar:1', "+
		"securityContext: Object.spec.containers.securityContext{allowPrivilegeEscalation: false, capabilities: Object.spec.containers.securityContext.capabilities{drop: ['ALL']}}}}]\"}}]}}")
	binding := n.object("", "{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding, metadata: {name: namespaced-sidecar}, spec: {policyName: namespaced-sidecar, "+
		"matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: "+n.namespace()+"}}}}}")
	for _, o := range []client.Object{sidecar, binding} {
		n.create(o)
		n.t.Cleanup(func() { _ = n.admin.Delete(context.Background(), o) })
	}
	n.eventually(func() error {
		made := pod.DeepCopy()
		if err := create(made); err != nil {
			return err
		}
		got := &corev1.Pod{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(made.Object, got); err != nil {
			return err
		}
		if all := got.Spec.Containers; len(all) != 2 || all[0].ImagePullPolicy != corev1.PullAlways || all[1].ImagePullPolicy != corev1.PullAlways {
			return fmt.Errorf("the containers are %+v", all)
		}
		return nil
	})
	if err := n.admin.Delete(n.t.Context(), binding); err != nil {
		n.t.Fatal(err)
	}
}

// setPullPolicy sets the pull policy of the containers of a pod.
func setPullPolicy(t *testing.T, pod *unstructured.Unstructured, policy string) {
	t.Helper()
	containers, _, err := unstructured.NestedSlice(pod.Object, "spec", "containers")
	if err != nil || len(containers) == 0 {
		t.Fatalf("the pod has the containers %v: %v", containers, err)
	}
	for _, c := range containers {
		c.(map[string]any)["imagePullPolicy"] = policy
	}
	if err := unstructured.SetNestedSlice(pod.Object, containers, "spec", "containers"); err != nil {
		t.Fatal(err)
	}
}

// TestPoliciesNarrowTheTolerationsOfATenant: within the taints that the Tenant lists, an app and everybody who writes to the API server may tolerate only what
// the policies allow. What Kubernetes itself adds to pods is no matter. The most policies and tolerations are cheap enough for the API server.
func TestPoliciesNarrowTheTolerationsOfATenant(t *testing.T) {
	n, bot := limited(t, "tolerant")
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Taints = []string{"pool", "gpu"} })
	var policies []v1alpha1.Policy
	for i := range 8 {
		rule := &v1alpha1.NodeRules{Tolerations: []v1alpha1.AllowedToleration{{Key: "pool", Value: "tenants", Effect: "NoSchedule"}}}
		for j := range 31 {
			rule.Tolerations = append(rule.Tolerations, v1alpha1.AllowedToleration{Key: fmt.Sprintf("example.org/pool-%d", j), Value: "tenants"})
		}
		policies = append(policies, v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i)}, Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{Nodes: rule}}})
	}
	n.under(policies...)
	pod := func(tolerations string) func() error {
		return func() error {
			return bot.Create(t.Context(), n.object(n.namespace(), placed("Pod", "tolerations: ["+tolerations+"]")), client.DryRunAll)
		}
	}
	const allowed = "{key: pool, value: tenants, effect: NoSchedule}"
	many := strings.TrimSuffix(strings.Repeat(allowed+", ", 60), ", ")
	n.denied(pod(many+", {key: gpu, operator: Exists}"), "Nodes: Pod/x tolerates the taint gpu of every value, which is not among the allowed taints: pool=tenants:NoSchedule, example.org/pool-0=tenants",
		"See spec.nodes.tolerations of policy tolerant-p0")
	n.denied(pod("{key: pool, value: others, effect: NoSchedule}"), "Nodes: Pod/x tolerates the taint pool=others:NoSchedule, which")
	n.denied(pod("{key: example.org/pool-1, value: tenants}"), "Toleration: Pod/x tolerates the taint example.org/pool-1, and nodes with it are not for this tenant")
	for _, tolerations := range []string{"", many} { // Each with those of lost nodes, which the API server adds.
		if err := pod(tolerations)(); err != nil {
			t.Error(err)
		}
	}

	// What a controller of Kubernetes makes of a template is judged as well, without what it adds to the pods of a DaemonSet.
	controller := n.as("system:serviceaccount:kube-system:daemon-set-controller")
	daemon := func(tolerations string) func() error {
		var own []string
		for _, taint := range []string{"disk-pressure", "memory-pressure", "pid-pressure", "unschedulable", "network-unavailable"} {
			own = append(own, "{key: node.kubernetes.io/"+taint+", operator: Exists, effect: NoSchedule}")
		}
		return func() error {
			return controller.Create(t.Context(), n.object(n.namespace(), placed("Pod", "tolerations: ["+strings.Join(append(own, tolerations), ", ")+"]")), client.DryRunAll)
		}
	}
	n.passes(daemon(allowed))
	n.denied(daemon("{operator: Exists}"), "Nodes: Pod/x tolerates every taint, which is not among the allowed taints: pool=tenants:NoSchedule")

	// An object from before may be changed otherwise.
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Policies = nil })
	old := n.object(n.namespace(), placed("CronJob", "tolerations: [{key: gpu, operator: Exists}]"))
	n.passes(func() error { return bot.Create(t.Context(), old) })
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Policies = []string{"tolerant-p0"} })
	n.denied(pod("{key: gpu, operator: Exists}"), "Nodes: Pod/x tolerates the taint gpu of every value")
	n.passes(func() error {
		return bot.Patch(t.Context(), old.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`)), client.DryRunAll)
	})

	n.push(imageFile("site", "  image: {reference: registry.example.com/web:v1, replicas: 0, tolerations: [{key: gpu, operator: Exists}]}\n"))
	n.states(n.app("shop", "site"), v1alpha1.AllowedCondition, metav1.ConditionFalse, "Deployment/site tolerates the taint gpu of every value, which is not among the allowed taints: pool=tenants:NoSchedule, "+
		"example.org/pool-0=tenants")
}
