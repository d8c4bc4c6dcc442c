package project

import (
	"errors"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/apply"
)

// silent is a mapper whose API server does not answer about kinds.
type silent struct{ meta.RESTMapper }

func (silent) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, errors.New("the server was unable to return a response")
}

func TestRightsStayWhileKindsCannotBeLookedUp(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(rbacv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "shop"}}
	s := &scope{project: project, namespace: "kubeop-acme-shop", tenant: &v1alpha1.Tenant{}}
	s.tenant.Spec.ClusterKinds = []string{"PriorityClass.scheduling.k8s.io"}
	project.Status.Inventory.Entries = []v1alpha1.InventoryEntry{{ID: s.clusterID("ClusterRole"), Version: "v1"}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: clusterRole(s.namespace), Labels: s.labels()}}
	known := meta.NewDefaultRESTMapper(nil)
	known.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), meta.RESTScopeRoot)
	known.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), meta.RESTScopeRoot)
	direct := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(silent{known}).WithObjects(role).Build()
	applier := &apply.Applier{}
	s.made = apply.NewLedger(applier, direct, project.Status.Inventory)
	r := &Reconciler{Direct: direct, Applier: applier}
	if err := r.grantCluster(t.Context(), s); err == nil || err.Error() != "finding the resource of PriorityClass.scheduling.k8s.io: the server was unable to return a response" {
		t.Errorf("got %v", err)
	}
	if err := direct.Get(t.Context(), client.ObjectKeyFromObject(role), role); err != nil {
		t.Errorf("the rights are gone: %v", err)
	}
}
