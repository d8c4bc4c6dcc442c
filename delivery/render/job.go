package render

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Pod returns a pod that runs an image to its end, as restricted as the pods of an app of type Image. Its one container has
// the given name.
func Pod(name string, source *v1alpha1.ImageSource) corev1.PodSpec {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AppSpec{Image: source}}
	pod := (&image{app: app, ImageSource: source}).podSpec()
	pod.RestartPolicy = corev1.RestartPolicyNever
	return pod
}
