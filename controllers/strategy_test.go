package controllers

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestAnAppGetsAVolumeLater gives an Image app a volume, removes it and adds it again. Fields of the rolling update strategy that the API
// server has set by default must not block the strategy Recreate, which a volume needs.
func TestAnAppGetsAVolumeLater(t *testing.T) {
	n := newTeam(t, "later")
	for _, step := range []struct {
		volumes string
		want    appsv1.DeploymentStrategyType
	}{
		{"[]", appsv1.RollingUpdateDeploymentStrategyType},
		{"[{name: data, mountPath: /data, size: 1Mi}]", appsv1.RecreateDeploymentStrategyType},
		{"[]", appsv1.RollingUpdateDeploymentStrategyType},
		{"[{name: data, mountPath: /data, size: 1Mi}]", appsv1.RecreateDeploymentStrategyType},
	} {
		files := shopFiles("shop")
		files["projects/shop/apps/web/app.yaml"] = fmt.Sprintf("apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: web}\n"+
			"spec: {type: Image, image: {reference: registry.example.com/web:1, volumes: %s}}\n", step.volumes)
		n.synced(n.push(files), metav1.ConditionTrue)
		n.until(n.app("shop", "web"), v1alpha1.AppliedCondition, metav1.ConditionTrue, "")
		n.eventually(func() error {
			d := &appsv1.Deployment{}
			err := n.admin.Get(t.Context(), client.ObjectKey{Namespace: v1alpha1.ProjectNamespace("later", "shop"), Name: "web"}, d)
			if err == nil && d.Spec.Strategy.Type != step.want {
				err = fmt.Errorf("with volumes %s the strategy is %+v, want %s", step.volumes, d.Spec.Strategy, step.want)
			}
			return err
		})
	}
}
