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

// TestWhatDoesNotFitIntoTheBudgetIsRefused as the operator refuses it. What the commit shrinks makes room.
func TestWhatDoesNotFitIntoTheBudgetIsRefused(t *testing.T) {
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
