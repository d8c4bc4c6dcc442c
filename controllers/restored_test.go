package controllers

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fieldmanager"
)

// restoredFrom is an App as a backup tool creates it: without UID, status, and managed fields.
func (n *team) restoredFrom(app *v1alpha1.App) *v1alpha1.App {
	return &v1alpha1.App{
		ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: app.Name, Labels: app.Labels, Annotations: app.Annotations, Finalizers: app.Finalizers},
		Spec:       app.Spec,
	}
}

// TestARestoredAppIsControlledByGit restores Apps from a backup. One that is still in Git gets the fields of Git only, and
// is deleted when it leaves Git; one that is no longer in Git is deleted at once. A copy of an App under another name stays.
func TestARestoredAppIsControlledByGit(t *testing.T) {
	n := newTeam(t, "frombackup")
	n.push(shopFiles("shop", "web", "former", "other"))
	web, former := n.app("shop", "web"), n.app("shop", "former")
	n.ready(web, former, n.app("shop", "other"))
	n.push(map[string]string{"projects/shop/apps/former": "-"})
	n.gone(n.app("shop", "former"))

	n.create(n.restoredFrom(former))
	n.gone(n.app("shop", "former"))
	copied := n.restoredFrom(web)
	copied.Name = "copy"
	n.create(copied)

	// A deleted App would be recreated from Git before the restore, so the test changes its field manager instead.
	changed := web.DeepCopy()
	changed.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "backup-tool", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: v1alpha1.GroupVersion.String(), FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{".":{},"f:raw":{},"f:retryInterval":{},"f:type":{}}}`),
	}}
	changed.Spec.RetryInterval = &metav1.Duration{Duration: 7 * time.Minute}
	if err := n.admin.Patch(t.Context(), changed, client.MergeFrom(web), client.FieldOwner("backup-tool")); err != nil {
		t.Fatal(err)
	}
	n.eventually(func() error {
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(web), web); err != nil {
			return err
		}
		if !fieldmanager.Applied(web) || web.Spec.RetryInterval != nil {
			return fmt.Errorf("retryInterval is %v, and the managers are %+v", web.Spec.RetryInterval, web.ManagedFields)
		}
		return nil
	})
	n.push(map[string]string{"projects/shop/apps/web": "-"})
	n.gone(n.app("shop", "web"))
	if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(copied), copied); err != nil || copied.DeletionTimestamp != nil {
		t.Errorf("the copy is gone: %v", err)
	}
}
