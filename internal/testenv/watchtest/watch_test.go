package watchtest

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestTheWatchHasTheLabelledObjects: of namespaces it has only the metadata, of Jobs also the status.
func TestTheWatchHasTheLabelledObjects(t *testing.T) {
	labels := map[string]string{v1alpha1.TenantLabel: "acme"}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "migrate", Labels: labels}, Status: batchv1.JobStatus{Failed: 2}}
	api := fake.NewClientBuilder().WithRESTMapper(Mapper(clientgoscheme.Scheme, "Namespace")).WithObjects(
		job, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: labels}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
	).Build()
	jobs := batchv1.SchemeGroupVersion.WithKind("Job")
	w := New(t, api, jobs, corev1.SchemeGroupVersion.WithKind("Namespace"))
	for name, want := range map[string]bool{"shop": true, "default": false, "none": false} {
		if got, err := w.Namespace(t.Context(), name); err != nil || (got != nil) != want {
			t.Errorf("namespace %s: %v, %v", name, got, err)
		}
	}
	got := &batchv1.Job{}
	if there, err := w.Decode(jobs, client.ObjectKeyFromObject(job), got); !there || err != nil || got.Status.Failed != 2 {
		t.Errorf("there is %t, with status %+v, %v", there, got.Status, err)
	}
}
