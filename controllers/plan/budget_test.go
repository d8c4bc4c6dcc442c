package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestQuotasAboveTheBudgetAreRefused as by the operator. A quota that the commit lowers makes room.
func TestQuotasAboveTheBudgetAreRefused(t *testing.T) {
	const small = "spec: {quota: {requests.cpu: 2}}\n"
	for name, tc := range map[string]struct {
		budget string
		files  map[string]string
		there  []client.Object
		want   []string
	}{
		"no budget": {files: map[string]string{"projects/shop/project.yaml": ""}, want: []string{"create Project kubeop-acme/shop"}},
		"room":      {budget: "6", there: []client.Object{newProject("shop")}, files: map[string]string{"projects/shop/project.yaml": "", "projects/team/project.yaml": small}, want: []string{"update Project kubeop-acme/shop", "create Project kubeop-acme/team"}},
		"too little": {
			budget: "5", there: []client.Object{newProject("shop")}, files: map[string]string{"projects/shop/project.yaml": "", "projects/team/project.yaml": small},
			want: []string{"update Project kubeop-acme/shop", "refuse Project kubeop-acme/team: the quota of project team does not fit into the budget of tenant acme: requests.cpu 2, with 1 of 5 left (the others have 4: shop 4)"},
		},
		"another shrinks": {
			budget: "5", there: []client.Object{newProject("shop")}, files: map[string]string{"projects/shop/project.yaml": small, "projects/team/project.yaml": small},
			want: []string{"update Project kubeop-acme/shop", "create Project kubeop-acme/team"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := compared(t, v1alpha1.TenantLimits{}, tc.files, tc.there...)
			if tc.budget != "" {
				tenant := &v1alpha1.Tenant{}
				writer := c.client.(client.Client)
				if err := writer.Get(t.Context(), client.ObjectKey{Name: "acme"}, tenant); err != nil {
					t.Fatal(err)
				}
				tenant.Spec.Budget = corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse(tc.budget)}
				if err := writer.Update(t.Context(), tenant); err != nil {
					t.Fatal(err)
				}
			}
			changes, _, err := c.changes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, change := range changes {
				why, _, _ := strings.Cut(change.Why, ";")
				got = append(got, strings.TrimSuffix(string(change.Action)+" "+change.Object+": "+why, ": "))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestABudgetBelowUseSaysByHowMuch, and neither refuses the Tenant nor deletes a project.
func TestABudgetBelowUseSaysByHowMuch(t *testing.T) {
	shop, going := newProject("shop"), newProject("going")
	for _, project := range []*v1alpha1.Project{shop, going} { // They are of the tenant's own repository.
		project.Labels, project.Spec.Quota = nil, corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("4")}
	}
	for budget, want := range map[string]string{
		"8": "", "6": "the quotas of its projects are over the budget at tenants/acme/tenant.yaml:4:8: requests.cpu over by 2 (8 of 6); nothing is deleted, and no project gets more of it until others take less",
	} {
		c := comparedIn(t, "", v1alpha1.TenantLimits{}, map[string]string{"tenants/acme/tenant.yaml": "spec: {budget: {requests.cpu: " + budget + "}}\n"}, shop.DeepCopy(), going.DeepCopy())
		changes, held, err := c.changes(t.Context())
		if err != nil || len(held) > 0 || len(changes) != 1 || changes[0].Object != "Tenant acme" || changes[0].Action != Create || changes[0].Why != want {
			t.Errorf("a budget of %s: %v, held %v, changes %+v", budget, err, held, changes)
		}
	}
}
