package namespace

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestANamespaceReportsHowToFindTheObjectsThatHoldIt(t *testing.T) {
	// As Kubernetes' namespace controller words them.
	discovered := corev1.NamespaceCondition{Type: corev1.NamespaceDeletionDiscoveryFailure, Status: corev1.ConditionTrue, Message: "Discovery failed: a.example.com/v1\n"}
	content := corev1.NamespaceCondition{
		Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionTrue,
		Message: "Some resources are remaining: persistentvolumeclaims. has 2 resource instances, queues.example.com has 1 resource instances",
	}
	finalizers := corev1.NamespaceCondition{
		Type: corev1.NamespaceFinalizersRemaining, Status: corev1.ConditionTrue,
		Message: "Some content in the namespace has finalizers remaining: kubernetes.io/pvc-protection in 2 resource instances",
	}
	done := content
	done.Status = corev1.ConditionFalse
	for name, c := range map[string]struct {
		conditions []corev1.NamespaceCondition
		want       string
	}{
		"just begun":     {nil, "namespace shop is being deleted"},
		"all gone":       {[]corev1.NamespaceCondition{done}, "namespace shop is being deleted"},
		"unknown groups": {[]corev1.NamespaceCondition{discovered}, "namespace shop is being deleted: Discovery failed: a.example.com/v1"},
		"finalizers": {
			[]corev1.NamespaceCondition{content, finalizers},
			"namespace shop is being deleted: " + content.Message + "; " + finalizers.Message +
				". kubectl get persistentvolumeclaims,queues.example.com -n shop -o custom-columns=KIND:.kind,NAME:.metadata.name,FINALIZERS:.metadata.finalizers names them; " +
				"each is deleted when the controllers of its finalizers have removed them. Remove a finalizer yourself if its controller is gone",
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := metav1.Now()
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", DeletionTimestamp: &now}, Status: corev1.NamespaceStatus{Conditions: c.conditions}}
			got, err := Remove(t.Context(), nil, ns)
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}
