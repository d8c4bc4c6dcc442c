package app

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
)

// TestAFinalizerThatNoMessageNamesIsReported: a message names five of the objects that are being deleted, and a foreign finalizer may hold the
// sixth.
func TestAFinalizerThatNoMessageNamesIsReported(t *testing.T) {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-a-b", Name: "web"}, Spec: v1alpha1.AppSpec{Helm: &v1alpha1.HelmSource{}}}
	s, r := scopeOf(app, &releaser{}), &remover{}
	why := step.Wait(v1alpha1.DeletingReason, time.Second, "waits for ConfigMap/a; and 5 objects more to be gone")
	if got := r.freeHeld(t.Context(), s, why, true); !strings.Contains(got.Error(), v1alpha1.ForceRemovalAnnotation) {
		t.Errorf("it does not say how to end that: %v", got)
	}
	if got := r.freeHeld(t.Context(), s, why, false); got.Error() != why.Error() {
		t.Errorf("nothing is held, and it says %v", got)
	}
}
