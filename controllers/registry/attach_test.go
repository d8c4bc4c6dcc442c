package registry

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func TestOthersEntriesStay(t *testing.T) {
	refs := func(names ...string) (list []corev1.LocalObjectReference) {
		for _, name := range names {
			list = append(list, corev1.LocalObjectReference{Name: name})
		}
		return list
	}
	for name, c := range map[string]struct{ before, want, gone, after []string }{
		"a first one":           {nil, []string{"a"}, nil, []string{"a"}},
		"beside others":         {[]string{"own", "other"}, []string{"a", "b"}, nil, []string{"own", "other", "a", "b"}},
		"it is there":           {[]string{"a", "own"}, []string{"a"}, nil, []string{"a", "own"}},
		"one goes":              {[]string{"own", "a", "b"}, []string{"b"}, []string{"a"}, []string{"own", "b"}},
		"one that is not there": {[]string{"own"}, nil, []string{"a"}, []string{"own"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(refs(c.after...), merged(refs(c.before...), c.want, c.gone)); diff != "" {
				t.Errorf("the list (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOnlyAnAppThatAppliesTheListDeliversIt(t *testing.T) {
	const list, other = `{"f:imagePullSecrets":{}}`, `{"f:automountServiceAccountToken":{}}`
	for name, c := range map[string]struct {
		manager   string
		operation metav1.ManagedFieldsOperationType
		fields    string
		want      bool
	}{
		"an app with the list":      {v1alpha1.FieldManager, metav1.ManagedFieldsOperationApply, list, true},
		"an app with another field": {v1alpha1.FieldManager, metav1.ManagedFieldsOperationApply, other, false},
		"kubeop's own entry":        {v1alpha1.FieldManager + "-registries", metav1.ManagedFieldsOperationUpdate, list, false},
		"a person with kubectl":     {"kubectl-client-side-apply", metav1.ManagedFieldsOperationUpdate, list, false},
		"a person, on the server":   {"kubectl", metav1.ManagedFieldsOperationApply, list, false},
	} {
		t.Run(name, func(t *testing.T) {
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
				{Manager: c.manager, Operation: c.operation, FieldsV1: metav1.NewFieldsV1(c.fields)},
			}}}
			if got := applied(account); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
