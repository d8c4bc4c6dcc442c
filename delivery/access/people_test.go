package access

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestPeopleHaveAnAccountOfEachRole(t *testing.T) {
	all := People("a", map[string]string{"l": "v"}, types.NamespacedName{Namespace: "kubeop-system", Name: "kubeop-manager"})
	var accounts []string
	var bindings []any
	for _, o := range all {
		f := fields(t, o)
		meta := f["metadata"].(map[string]any)
		if diff := cmp.Diff(map[string]any{"l": "v"}, meta["labels"]); diff != "" || meta["namespace"] != "a" {
			t.Errorf("%v", meta)
		}
		if f["kind"] == "RoleBinding" {
			bindings = append(bindings, o)
			continue
		}
		accounts = append(accounts, meta["name"].(string))
		if f["automountServiceAccountToken"] != false {
			t.Errorf("the token of %s is mounted", meta["name"])
		}
	}
	if diff := cmp.Diff([]string{"kubeop-access-view", "kubeop-access-edit", "kubeop-access-admin"}, accounts); diff != "" {
		t.Errorf("accounts (-want +got):\n%s", diff)
	}
	want := []string{
		"a/kubeop-access-view -> ClusterRole kubeop-view: ServiceAccount kubeop-access-view", "a/kubeop-access-edit -> ClusterRole kubeop-edit: ServiceAccount kubeop-access-edit",
		"a/kubeop-access-admin -> ClusterRole kubeop-admin: ServiceAccount kubeop-access-admin", "a/kubeop-manager-kubeconfigs -> ClusterRole kubeop-manager-kubeconfigs: ServiceAccount kubeop-manager",
	}
	if diff := cmp.Diff(want, summaries(t, bindings)); diff != "" {
		t.Errorf("bindings (-want +got):\n%s", diff)
	}
}
