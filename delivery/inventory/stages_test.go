package inventory

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// named returns objects of these kinds, as "Kind/name".
func named(objects ...string) (all []*unstructured.Unstructured) {
	for _, o := range objects {
		kind, name, _ := strings.Cut(o, "/")
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
		u.SetName(name)
		all = append(all, u)
	}
	return all
}

func TestDependenciesAreCreatedFirst(t *testing.T) {
	in := []string{
		"ValidatingWebhookConfiguration/a", "Ingress/a", "Deployment/b", "Widget/a", "Service/a", "ConfigMap/a", "RoleBinding/a", "ServiceAccount/a", "Namespace/a", "Deployment/a",
	}
	want := []string{
		"Namespace/a", "ServiceAccount/a", "RoleBinding/a", "ConfigMap/a", "Service/a", "Widget/a", "Deployment/a Deployment/b", "Ingress/a", "ValidatingWebhookConfiguration/a",
	}
	var got []string
	for _, stage := range Stages(named(in...)) {
		var names []string
		for _, o := range stage {
			names = append(names, o.GetKind()+"/"+o.GetName())
		}
		got = append(got, strings.Join(names, " "))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestEachStageHasItsKinds: one that is in another stage would be created before what it needs, or deleted after it.
func TestEachStageHasItsKinds(t *testing.T) {
	for stage, kinds := range []string{
		0: "Namespace CustomResourceDefinition",
		1: "ServiceAccount Role ClusterRole ResourceQuota LimitRange NetworkPolicy Tenant Repository",
		2: "RoleBinding ClusterRoleBinding",
		3: "ConfigMap Secret PersistentVolumeClaim PodDisruptionBudget Project",
		4: "Service App",
		5: "Widget Gateway",
		6: "Deployment StatefulSet DaemonSet Job CronJob Pod ReplicaSet",
		7: "HorizontalPodAutoscaler Ingress",
		8: "MutatingWebhookConfiguration ValidatingWebhookConfiguration ValidatingAdmissionPolicyBinding MutatingAdmissionPolicyBinding",
	} {
		for _, kind := range strings.Fields(kinds) {
			if got := stageOf(kind); got != stage {
				t.Errorf("%s is in stage %d, want %d", kind, got, stage)
			}
		}
	}
}

// TestDependentsAreDeletedFirst: a Deployment whose ServiceAccount goes first makes pods in vain, and a webhook without its Service
// refuses all.
func TestDependentsAreDeletedFirst(t *testing.T) {
	var entries []v1alpha1.InventoryEntry
	for _, o := range named("Namespace/a", "ServiceAccount/a", "Service/b", "Service/a", "Widget/a", "Deployment/a", "ValidatingWebhookConfiguration/a") {
		entries = append(entries, v1alpha1.InventoryEntry{ID: IDOf(o).String()})
	}
	want := [][]string{{"ValidatingWebhookConfiguration"}, {"Deployment"}, {"Widget"}, {"Service", "Service"}, {"ServiceAccount"}, {"Namespace"}}
	var got [][]string
	for _, stage := range ReverseStages(entries) {
		var kinds []string
		for _, e := range stage {
			id, err := ParseObjectID(e.ID)
			if err != nil {
				t.Fatal(err)
			}
			kinds = append(kinds, id.Kind)
		}
		got = append(got, kinds)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if entries[0].ID != "_a__Namespace" {
		t.Error("the inventory itself was sorted")
	}
}
