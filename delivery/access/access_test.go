package access

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// fields returns an apply configuration as the API server reads it.
func fields(t *testing.T, o any) map[string]any {
	t.Helper()
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// summaries says of each binding "namespace/name -> role: kind name, …".
func summaries(t *testing.T, bindings []any) []string {
	t.Helper()
	var all []string
	for _, b := range bindings {
		f := fields(t, b)
		meta, ref := f["metadata"].(map[string]any), f["roleRef"].(map[string]any)
		text := meta["namespace"].(string) + "/" + meta["name"].(string) + " -> " + ref["kind"].(string) + " " + ref["name"].(string) + ":"
		subjects, _ := f["subjects"].([]any)
		for _, s := range subjects {
			text += " " + s.(map[string]any)["kind"].(string) + " " + s.(map[string]any)["name"].(string)
		}
		all = append(all, text)
	}
	return all
}

func owner(kind, name, role string) v1alpha1.Owner {
	return v1alpha1.Owner{Kind: kind, Name: name, Role: role}
}

func TestEachRoleHasABindingWhereSomeoneHasIt(t *testing.T) {
	for name, c := range map[string]struct {
		owners           []v1alpha1.Owner
		wanted, unwanted []string
	}{
		"no owner": {nil, nil, []string{
			"a/kubeop-view -> ClusterRole kubeop-view:", "a/kubeop-edit -> ClusterRole kubeop-edit:", "a/kubeop-admin -> ClusterRole kubeop-admin:",
		}},
		"one of each role": {
			[]v1alpha1.Owner{owner("User", "ann", "admin"), owner("Group", "devs", "edit"), owner("User", "bob", "view")},
			[]string{"a/kubeop-view -> ClusterRole kubeop-view: User bob", "a/kubeop-edit -> ClusterRole kubeop-edit: Group devs", "a/kubeop-admin -> ClusterRole kubeop-admin: User ann"}, nil,
		},
		"an owner without a role may view": {
			[]v1alpha1.Owner{owner("User", "ann", ""), owner("User", "bob", "view")},
			[]string{"a/kubeop-view -> ClusterRole kubeop-view: User ann User bob"},
			[]string{"a/kubeop-edit -> ClusterRole kubeop-edit:", "a/kubeop-admin -> ClusterRole kubeop-admin:"},
		},
		"a role that does not exist gives nothing": {
			[]v1alpha1.Owner{owner("User", "ann", "cluster-admin")}, nil, []string{
				"a/kubeop-view -> ClusterRole kubeop-view:", "a/kubeop-edit -> ClusterRole kubeop-edit:", "a/kubeop-admin -> ClusterRole kubeop-admin:",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			wanted, unwanted := Bindings("a", nil, c.owners)
			if diff := cmp.Diff(c.wanted, summaries(t, wanted)); diff != "" {
				t.Errorf("wanted (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.unwanted, summaries(t, unwanted)); diff != "" {
				t.Errorf("unwanted (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSubjectsOfNoRoleAreAllOwners(t *testing.T) {
	subjects := Subjects([]v1alpha1.Owner{owner("User", "ann", "admin"), owner("Group", "devs", "")}, "")
	var got []string
	for _, s := range subjects {
		got = append(got, *s.APIGroup+" "+*s.Kind+" "+*s.Name)
	}
	want := []string{"rbac.authorization.k8s.io User ann", "rbac.authorization.k8s.io Group devs"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if none := Subjects(nil, ""); none == nil || len(none) != 0 {
		t.Errorf("without owners the subjects are %v; they have to be an empty list, which takes those of before away", none)
	}
}

func TestTheDeployerIsBoundInItsNamespaceAndInTheClusterByName(t *testing.T) {
	labels := map[string]string{"l": "v"}
	subject := []any{map[string]any{"kind": "ServiceAccount", "name": "kubeop-deployer", "namespace": "kubeop-a-b"}}
	for name, c := range map[string]struct {
		got  any
		want map[string]any
	}{
		"in its namespace": {Deployer("kubeop-a-b", labels), map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "subjects": subject,
			"metadata": map[string]any{"name": "kubeop-deployer", "namespace": "kubeop-a-b", "labels": map[string]any{"l": "v"}},
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kubeop-deployer"},
		}},
		"for an app of the platform": {Platform("edge", "kubeop-system", labels), map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": v1alpha1.PlatformDeployer, "namespace": "kubeop-system"}},
			"metadata": map[string]any{"name": "kubeop-deployer", "namespace": "edge", "labels": map[string]any{"l": "v"}},
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": v1alpha1.PlatformDeployer},
		}},
		"in the cluster": {Cluster("kubeop-cluster-a-b", "kubeop-a-b", labels), map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "subjects": subject,
			"metadata": map[string]any{"name": "kubeop-cluster-a-b", "labels": map[string]any{"l": "v"}},
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kubeop-cluster-a-b"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, fields(t, c.got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
