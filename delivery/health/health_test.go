package health

import (
	"testing"

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
}

func TestRefsOfTheInventory(t *testing.T) {
	entries := []v1alpha1.InventoryEntry{
		{ID: "nonsense", Version: "v1"}, {ID: "team_web__ConfigMap", Version: "v1"}, {ID: "team_web_rbac.authorization.k8s.io_Role", Version: "v1"},
		{ID: "team_web__Service", Version: "v1"}, {ID: "team_web_apps_Deployment", Version: "v1"}, {ID: "_webs.example.org_apiextensions.k8s.io_CustomResourceDefinition", Version: "v1"},
	}
	want := []string{"v1 team Service/web", "apps/v1 team Deployment/web", "apiextensions.k8s.io/v1  CustomResourceDefinition/webs.example.org"}
	if diff := cmp.Diff(want, listed(RefsOf(entries, nil))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWithoutJobs(t *testing.T) {
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
