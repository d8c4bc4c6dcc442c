package controllers

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestAnAppIsReadyWhileItsClaimWaitsForItsFirstPod: the storage class makes the volume for the first run of a scheduled app. A claim whose class
// does not exist is reported.
func TestAnAppIsReadyWhileItsClaimWaitsForItsFirstPod(t *testing.T) {
	n := newTeam(t, "unclaimed")
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	n.create(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "for-the-first-pod"}, Provisioner: "none.example/none", VolumeBindingMode: &mode})
	app := func(name, class string) map[string]string {
		const spec = "  timeout: 1s\n  image: {reference: registry.example/web:v1, schedule: '0 3 1 1 *', volumes: [{name: data, mountPath: /data, size: 1Gi, storageClassName: %s}]}\n"
		return imageFile(name, fmt.Sprintf(spec, class))
	}
	files := app("late", "for-the-first-pod")
	files["projects/shop/project.yaml"] = fmt.Sprintf(projectFile, "shop")
	for path, text := range app("lost", "there-is-none") {
		files[path] = text
	}
	n.push(files)
	n.ready(n.app("shop", "late"))
	claim := &corev1.PersistentVolumeClaim{}
	if err := n.admin.Get(t.Context(), client.ObjectKey{Namespace: "kubeop-unclaimed-shop", Name: "late-data"}, claim); err != nil {
		t.Fatal(err)
	}
	if claim.Status.Phase != corev1.ClaimPending {
		t.Errorf("the claim is %s", claim.Status.Phase)
	}
	n.eventually(func() error {
		message := n.until(n.app("shop", "lost"), v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.UnhealthyReason)
		if want := `storageclass.storage.k8s.io "there-is-none" not found`; !strings.Contains(message, want) {
			return fmt.Errorf("the message is %q, want %q in it", message, want)
		}
		return nil
	})
}
