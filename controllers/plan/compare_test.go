package plan

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/identity"
)

// TestPreviewsAreNotPartOfACommit: other branches declare them, so a plan does not delete them.
func TestPreviewsAreNotPartOfACommit(t *testing.T) {
	list := &v1alpha1.ProjectList{}
	for name, change := range map[string]func(*v1alpha1.Project){
		"shop":      func(*v1alpha1.Project) {},
		"shop-pr-x": func(p *v1alpha1.Project) { p.Annotations = map[string]string{v1alpha1.PreviewOfAnnotation: "shop"} },
		"leaving":   func(p *v1alpha1.Project) { p.DeletionTimestamp = &metav1.Time{} },
		"by-hand":   func(p *v1alpha1.Project) { p.ManagedFields = nil },
	} {
		p := v1alpha1.Project{TypeMeta: metav1.TypeMeta{Kind: v1alpha1.ProjectKind}, ObjectMeta: metav1.ObjectMeta{
			Namespace: v1alpha1.HomeNamespace("acme"), Name: name,
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: &metav1.FieldsV1{}}},
		}}
		change(&p)
		list.Items = append(list.Items, p)
	}
	var got []string
	for ref := range gather(map[identity.Ref]client.Object{}, list) {
		got = append(got, ref.Path())
	}
	if !slices.Equal(got, []string{"acme/shop"}) {
		t.Errorf("the commit's objects are %v, want only acme/shop", got)
	}
}
