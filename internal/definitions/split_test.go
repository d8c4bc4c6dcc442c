package definitions

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTheSpecOfOthersIsSplitOff: only what others own of the spec is taken over, and the rest stays theirs.
func TestTheSpecOfOthersIsSplitOff(t *testing.T) {
	const apply, update = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
		e := metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, APIVersion: "apiextensions.k8s.io/v1", FieldsType: "FieldsV1"}
		if fields != "" {
			e.FieldsV1 = metav1.NewFieldsV1(fields)
		}
		return e
	}
	ofStatus := entry("kube-apiserver", update, `{"f:spec":{}}`)
	ofStatus.Subresource = "status"
	for name, c := range map[string]struct {
		entries  []metav1.ManagedFieldsEntry
		want     []metav1.ManagedFieldsEntry
		previous []string
	}{
		"none": {},
		"only of the spec": {
			[]metav1.ManagedFieldsEntry{entry("helm", update, `{"f:spec":{"f:group":{}}}`)},
			[]metav1.ManagedFieldsEntry{entry("previous-0", update, `{"f:spec":{"f:group":{}}}`)}, []string{"previous-0"},
		},
		"of the spec and labels, applied": {
			[]metav1.ManagedFieldsEntry{entry("a", update, `{"f:status":{}}`), entry("kubectl", apply, `{"f:metadata":{},"f:spec":{}}`)},
			[]metav1.ManagedFieldsEntry{entry("a", update, `{"f:status":{}}`), entry("kubectl", apply, `{"f:metadata":{}}`), entry("previous-1", update, `{"f:spec":{}}`)}, []string{"previous-1"},
		},
		"applied by kubeop": {
			[]metav1.ManagedFieldsEntry{entry(owner, apply, `{"f:spec":{}}`)}, []metav1.ManagedFieldsEntry{entry(owner, apply, `{"f:spec":{}}`)}, nil,
		},
		"updated by kubeop": {
			[]metav1.ManagedFieldsEntry{entry(owner, update, `{"f:spec":{}}`)}, []metav1.ManagedFieldsEntry{entry("previous-0", update, `{"f:spec":{}}`)}, []string{"previous-0"},
		},
		"of a subresource": {[]metav1.ManagedFieldsEntry{ofStatus}, []metav1.ManagedFieldsEntry{ofStatus}, nil},
		"without fields":   {[]metav1.ManagedFieldsEntry{entry("a", update, "")}, []metav1.ManagedFieldsEntry{entry("a", update, "")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, previous, err := split(c.entries)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if len(previous) != len(c.previous) || !previous.HasAll(c.previous...) {
				t.Errorf("previous are %v, want %v", previous, c.previous)
			}
		})
	}
	if _, _, err := split([]metav1.ManagedFieldsEntry{entry("helm", update, "nonsense")}); err == nil || !strings.HasPrefix(err.Error(), "reading the fields of helm: invalid character") {
		t.Errorf("fields that cannot be read: %v", err)
	}
}
