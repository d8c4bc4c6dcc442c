package fieldmanager

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestByHand(t *testing.T) {
	cases := map[string]struct {
		manager, apiVersion, subresource, fields string
		want                                     bool
	}{
		"an edit":             {"kubectl-edit", "apps/v1", "", `{"f:spec":{"f:replicas":{}}}`, true},
		"scaling":             {"kubectl", "apps/v1", "scale", `{"f:spec":{"f:replicas":{}}}`, false},
		"a restart":           {"kubectl-rollout", "apps/v1", "", `{"f:spec":{"f:template":{}}}`, false},
		"a label":             {"kubectl-label", "apps/v1", "", `{"f:metadata":{"f:labels":{"f:x":{}}}}`, false},
		"suspending an App":   {"kubectl-patch", "paas.kubeop.io/v1alpha1", "", `{"f:spec":{"f:suspend":{}}}`, false},
		"suspending alone":    {"kubectl-patch", "paas.kubeop.io/v1alpha1", "", `{"f:spec":{".":{},"f:suspend":{}}}`, false},
		"suspending and more": {"kubectl-patch", "paas.kubeop.io/v1alpha1", "", `{"f:spec":{"f:suspend":{},"f:host":{}}}`, true},
		"suspending a Job":    {"kubectl-patch", "batch/v1", "", `{"f:spec":{"f:suspend":{}}}`, true},
		"a controller":        {"kube-controller-manager", "apps/v1", "", `{"f:spec":{}}`, false},
		"no fields":           {"kubectl-edit", "apps/v1", "", `no JSON`, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			fields := &metav1.FieldsV1{}
			fields.SetRawBytes([]byte(c.fields))
			entry := metav1.ManagedFieldsEntry{Manager: c.manager, APIVersion: c.apiVersion, Subresource: c.subresource, FieldsV1: fields}
			if got := EditedByHand(entry); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}
