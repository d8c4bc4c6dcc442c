package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func TestWaves(t *testing.T) {
	app := func(project, name string, needs ...v1alpha1.Dependency) client.Object {
		labels := map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: project}
		return &v1alpha1.App{
			ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ProjectNamespace("acme", project), Name: name, Labels: labels},
			Spec:       v1alpha1.AppSpec{Delivery: v1alpha1.Delivery{DependsOn: needs}},
		}
	}
	objects := []client.Object{
		&v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
		app("a", "late", v1alpha1.Dependency{Name: "early"}, v1alpha1.Dependency{Name: "middle"}),
		app("a", "early"),
		app("a", "middle", v1alpha1.Dependency{Project: "b", Name: "other"}),
		app("b", "other", v1alpha1.Dependency{Name: "elsewhere"}, v1alpha1.Dependency{Kind: "Project", Name: "a"}),
	}
	var got [][]string
	for _, wave := range Waves(objects) {
		var names []string
		for _, o := range wave {
			names = append(names, o.GetName())
		}
		got = append(got, names)
	}
	if diff := cmp.Diff([][]string{{"a", "early", "other"}, {"middle"}, {"late"}}, got); diff != "" {
		t.Errorf("waves (-want +got):\n%s", diff)
	}
}
