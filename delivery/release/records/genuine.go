package records

import (
	"fmt"

	"github.com/fluxcd/pkg/apis/meta"
	helm "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/release/decide"
)

// CheckGenuine is decide.CheckGenuine for a revision of an App. Its error says who may have the App release it again.
func CheckGenuine(rel *helm.Release, app types.NamespacedName) error {
	err := decide.CheckGenuine(rel)
	if err == nil {
		return nil
	}
	again := command.Again(v1alpha1.TenantOf(app.Namespace), &metav1.ObjectMeta{Namespace: app.Namespace, Name: app.Name}, meta.ForceRequestAnnotation)
	return fmt.Errorf("%w; to release it again, %s", err, again)
}
