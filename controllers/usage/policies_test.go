package usage

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func TestAPolicyWakesRepositoriesOnlyWhenAProjectMayHaveMore(t *testing.T) {
	small, large, standard, free := capped("p", "1"), capped("p", "2"), capped("p", "1"), capped("p", "1")
	small.Spec.Default, large.Spec.Default, free.Spec.Default = false, false, false

	free.Spec.Quota = nil
	labelled, same := capped("p", "1"), capped("p", "1000m")
	labelled.Spec.Default, same.Spec.Default = false, false
	labelled.Labels = map[string]string{"a": "b"}
	for name, c := range map[string]struct {
		was, is v1alpha1.Policy
		want    bool
	}{
		"quota.max is raised":         {small, large, true},
		"the quota goes":              {small, free, true},
		"it is no default any more":   {standard, small, true},
		"other fields":                {small, labelled, false},
		"the same amount, other text": {small, same, false},
	} {
		if got := QuotaChanged.Update(event.UpdateEvent{ObjectOld: &c.was, ObjectNew: &c.is}); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
	if QuotaChanged.Create(event.CreateEvent{Object: &small}) || QuotaChanged.Delete(event.DeleteEvent{Object: &free}) {
		t.Error("a new Policy, or the deletion of one without quota, allows more")
	}
	if !QuotaChanged.Delete(event.DeleteEvent{Object: &small}) {
		t.Error("the deletion of a Policy with quota allows nothing more")
	}
}

func TestAPolicyWakesTheRepositoriesOfItsTenants(t *testing.T) {
	named := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.TenantSpec{Policies: []string{"p"}}}
	other := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: v1alpha1.TenantSpec{Policies: []string{"q"}, Quota: corev1.ResourceList{}}}
	none := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "none"}}
	b := budgets(t, named, other, none)
	for name, c := range map[string]struct {
		standard bool
		want     []string
	}{"named": {false, []string{"acme"}}, "default": {true, []string{"acme", "none"}}} {
		policy := capped("p", "1")
		policy.Spec.Default = c.standard
		var got []string
		for _, request := range b.UnderPolicy(t.Context(), &policy) {
			got = append(got, request.Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: woke %v, want %v", name, got, c.want)
		}
	}
}
