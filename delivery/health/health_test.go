package health

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func object(apiVersion, kind, kindOfService string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	if kindOfService != "" {
		o.Object["spec"] = map[string]any{"type": kindOfService}
	}
	o.SetNamespace("team")
	o.SetName("web")
	return o
}

func listed(refs []Ref) []string {
	var names []string
	for _, r := range refs {
		names = append(names, r.Kind.GroupVersion().String()+" "+r.Key.Namespace+" "+r.String())
	}
	return names
}

func TestRefsLeaveOutKindsWithoutAStatus(t *testing.T) {
	got := Refs([]*unstructured.Unstructured{
		object("v1", "Secret", ""), object("networking.k8s.io/v1", "Ingress", ""), object("v1", "Service", "ClusterIP"), object("v1", "Service", ""),
		object("v1", "Service", "LoadBalancer"), object("serving.knative.dev/v1", "Service", ""), object("apps/v1", "Deployment", ""),
	}, nil)
	want := []string{"v1 team Service/web", "serving.knative.dev/v1 team Service/web", "apps/v1 team Deployment/web"}
	if diff := cmp.Diff(want, listed(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for kind, has := range map[schema.GroupVersionKind]bool{
		{Version: "v1", Kind: "ConfigMap"}: false, {Version: "v1", Kind: "Secret"}: false, {Version: "v1", Kind: "ServiceAccount"}: false,
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}: false, {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"}: false,
		{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}: false, {Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}: false,
		{Group: "example.org", Version: "v1", Kind: "Secret"}: true, {Version: "v1", Kind: "Pod"}: true, {Version: "v1", Kind: "PersistentVolumeClaim"}: true,
	} {
		if HasStatus(kind) != has {
			t.Errorf("%s: its health is more than that it exists: %t", kind, !has)
		}
	}
}

// TestRefsHaveEveryKindWithAnExpression, also one whose status is otherwise not read, and a Service without a load balancer.
func TestRefsHaveEveryKindWithAnExpression(t *testing.T) {
	with := func(apiVersion, kind string) *Checks {
		return checks(t, func(c *kustomize.CustomHealthCheck) { c.APIVersion, c.Kind = apiVersion, kind })
	}
	objects := []*unstructured.Unstructured{object("v1", "ConfigMap", ""), object("v1", "Service", "ClusterIP")}
	entries := []v1alpha1.InventoryEntry{{ID: "team_web__ConfigMap", Version: "v1"}, {ID: "team_web_rbac.authorization.k8s.io_Role", Version: "v1"}}
	for kind, want := range map[string][]string{"ConfigMap": {"v1 team ConfigMap/web"}, "Service": {"v1 team Service/web"}, "Lease": nil} {
		if diff := cmp.Diff(want, listed(Refs(objects, with("v1", kind)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
	if diff := cmp.Diff([]string{"v1 team ConfigMap/web"}, listed(RefsOf(entries, with("v1", "ConfigMap")))); diff != "" {
		t.Errorf("of the inventory (-want +got):\n%s", diff)
	}
}

// TestMessagesAboutPodsHaveNoNumbers, because the message would change with each new pod.
func TestMessagesAboutPodsHaveNoNumbers(t *testing.T) {
	set := func(spec, status string) string {
		return `{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web", "generation": 1}, "spec": {"replicas": 2` + spec + `}, "status": {"observedGeneration": 1, ` + status + `}}`
	}
	of := func(kind, status string) string {
		return `{"apiVersion": "apps/v1", "kind": "` + kind + `", "metadata": {"name": "web", "generation": 1}, "spec": {"replicas": 2}, "status": {"observedGeneration": 1, ` + status + `}}`
	}
	const all = `"replicas": 2, "readyReplicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "currentReplicas": 2, "fullyLabeledReplicas": 2`
	without := func(field string) string { return strings.Replace(all, `"`+field+`": 2`, `"`+field+`": 1`, 1) }
	for object, want := range map[string]string{
		of("Deployment", without("replicas")):               "not all of its pods are made yet",
		of("Deployment", without("updatedReplicas")):        "not all of its pods are of the last change yet",
		of("Deployment", without("availableReplicas")):      "not all of its pods are available yet",
		of("Deployment", without("readyReplicas")):          "not all of its pods are ready yet",
		of("Deployment", strings.Replace(all, "2", "3", 1)): "pods of before the last change are still there",
		of("Deployment", all):                               "too few of its pods are available",
		of("ReplicaSet", without("fullyLabeledReplicas")):   "not all of its pods are made yet",
		of("ReplicaSet", without("availableReplicas")):      "not all of its pods are available yet",
		of("ReplicaSet", without("readyReplicas")):          "not all of its pods are ready yet",
		of("ReplicaSet", strings.Replace(strings.Replace(all, `"replicas": 2`, `"replicas": 3`, 1), `"fullyLabeledReplicas": 2`, `"fullyLabeledReplicas": 3`, 1)): "pods of before the last change are still there",
		set("", without("replicas")):                                   "not all of its pods are made yet",
		set("", without("readyReplicas")):                              "not all of its pods are ready yet",
		set("", without("currentReplicas")):                            "not all of its pods are made yet",
		set("", all+`, "currentRevision": "a", "updateRevision": "b"`): "not all of its pods are of the last change yet",
		set(`, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}`, `"replicas": 2, "readyReplicas": 2, "updatedReplicas": 0, "currentReplicas": 2`): "not all of its pods are of the last change yet",
		of("DaemonSet", `"currentNumberScheduled": 0`):                                                                                        "its controller has not counted the nodes yet",
		of("DaemonSet", `"desiredNumberScheduled": 2, "currentNumberScheduled": 1`):                                                           "not all of its pods are made yet",
		of("DaemonSet", `"desiredNumberScheduled": 2, "currentNumberScheduled": 2, "updatedNumberScheduled": 1`):                              "not all of its pods are of the last change yet",
		of("DaemonSet", `"desiredNumberScheduled": 2, "currentNumberScheduled": 2, "updatedNumberScheduled": 2, "numberReady": 2`):            "not all of its pods are available yet",
		`{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "web", "generation": 1}, "status": {"phase": "Pending"}}`: "is not bound to a volume yet",
	} {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON([]byte(object)); err != nil {
			t.Fatal(err)
		}
		if why, final, err := WhyUnhealthy(u); err != nil || why != want || final {
			t.Errorf("%s:\ngot %q, %t, %v, want %q", object, why, final, err, want)
		}
	}
}

func TestOnlyKindsWithAHealthAreLookedAt(t *testing.T) {
	entries := []v1alpha1.InventoryEntry{
		{ID: "nonsense", Version: "v1"}, {ID: "team_web__ConfigMap", Version: "v1"}, {ID: "team_web_rbac.authorization.k8s.io_Role", Version: "v1"},
		{ID: "team_web__Service", Version: "v1"}, {ID: "team_web_apps_Deployment", Version: "v1"}, {ID: "_webs.example.org_apiextensions.k8s.io_CustomResourceDefinition", Version: "v1"},
	}
	want := []string{"v1 team Service/web", "apps/v1 team Deployment/web", "apiextensions.k8s.io/v1  CustomResourceDefinition/webs.example.org"}
	if diff := cmp.Diff(want, listed(RefsOf(entries, nil))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWithoutJobsLeavesOutJobsOfBatchOnly(t *testing.T) {
	kind := func(group, kind string) Ref {
		return Ref{Kind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}}
	}
	refs := []Ref{kind("batch", "Job"), kind("batch", "CronJob"), kind("batch.volcano.sh", "Job")}
	got := WithoutJobs(refs)
	if len(got) != 2 || got[0].Kind.Kind != "CronJob" || got[1].Kind.Group != "batch.volcano.sh" || refs[0].Kind.Kind != "Job" {
		t.Errorf("got %v of %v", got, refs)
	}
}

func TestAVerdictNamesThreeAndCountsTheRest(t *testing.T) {
	cases := map[string]struct {
		verdict Verdict
		want    string
	}{
		"failures first":                {Verdict{Failed: []string{"a", "b"}, Waiting: []string{"c", "d", "e"}, Pending: []string{"f"}}, "a; b; c; and 2 more"},
		"not seen yet beside others":    {Verdict{Waiting: []string{"c"}, Pending: []string{"f"}}, "c"},
		"nothing but what was not seen": {Verdict{Pending: []string{"f"}}, "f"},
		"exactly three":                 {Verdict{Failed: []string{"a"}, Waiting: []string{"b", "c"}}, "a; b; c"},
		"healthy":                       {},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := c.verdict.String(); got != c.want || c.verdict.Healthy() != (c.want == "") {
				t.Errorf("got %q, healthy %t, want %q", got, c.verdict.Healthy(), c.want)
			}
		})
	}
}

func unstructuredOf(t *testing.T, o client.Object) *unstructured.Unstructured {
	t.Helper()
	live, _, err := watch(t, o)(t.Context(), o.GetObjectKind().GroupVersionKind(), client.ObjectKeyFromObject(o))
	if err != nil || live == nil {
		t.Fatal(live, err)
	}
	return live
}

var addressed = corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "203.0.113.5"}}}
