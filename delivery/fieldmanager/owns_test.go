package fieldmanager

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func TestAFieldIsOwnedByWhoAppliesIt(t *testing.T) {
	const fields = `{"f:spec":{"f:template":{"f:metadata":{"f:labels":{".":{},"f:paas.kubeop.io/app":{}}}}}}`
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	for name, tc := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		path    string
		want    bool
	}{
		"by kubeop":              {[]metav1.ManagedFieldsEntry{entry(v1alpha1.FieldManager, metav1.ManagedFieldsOperationApply, fields)}, "spec template metadata labels paas.kubeop.io/app", true},
		"by another":             {[]metav1.ManagedFieldsEntry{entry("kubectl-edit", metav1.ManagedFieldsOperationUpdate, fields)}, "spec template metadata labels paas.kubeop.io/app", false},
		"by one of two":          {[]metav1.ManagedFieldsEntry{entry("x", metav1.ManagedFieldsOperationApply, "{}"), entry(v1alpha1.FieldManager, metav1.ManagedFieldsOperationApply, fields)}, "spec template", true},
		"another label":          {[]metav1.ManagedFieldsEntry{entry(v1alpha1.FieldManager, metav1.ManagedFieldsOperationApply, fields)}, "spec template metadata labels other", false},
		"a field below a label":  {[]metav1.ManagedFieldsEntry{entry(v1alpha1.FieldManager, metav1.ManagedFieldsOperationApply, fields)}, "spec template metadata labels . x", false},
		"by what cannot be read": {[]metav1.ManagedFieldsEntry{entry(v1alpha1.FieldManager, metav1.ManagedFieldsOperationApply, "{")}, "spec", false},
		"by nobody":              {nil, "spec", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Owns(&metav1.ObjectMeta{ManagedFields: tc.entries}, strings.Fields(tc.path)); got != tc.want {
				t.Errorf("owned: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestItemNamesAreThoseThatKubeopManages(t *testing.T) {
	list := func(manager, items string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:list":{` + items + `}}}`)}
	}
	live := &metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		list(v1alpha1.FieldManager, `".":{},"k:{\"name\":\"a\"}":{".":{},"f:name":{}},"k:{\"port\":1}":{},"v:\"b\"":{}`), list("another", `"k:{\"name\":\"c\"}":{}`),
	}}
	if got := strings.Join(ItemNames(live, []string{"spec", "list"}), " "); got != "a" {
		t.Errorf("got %q", got)
	}
	if got := ItemNames(live, []string{"spec", "other"}); len(got) > 0 {
		t.Errorf("of a list that is not there got %q", got)
	}
}
