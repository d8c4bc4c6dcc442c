package controllers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestAForcePushToAnOldStateIsHeld force-pushes a tenant's repository to a commit before an app was added: the app keeps running and is
// kept up to date, and the old state is applied when somebody confirms it, once.
func TestAForcePushToAnOldStateIsHeld(t *testing.T) {
	n := newTeam(t, "rewritten")
	old := n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	last := n.push(shopFiles("shop", "db"))
	db := n.app("shop", "db")
	n.ready(db)
	n.synced(last, metav1.ConditionTrue)

	n.repo.Back(old)
	message := n.until(n.repository(), v1alpha1.AcceptedCondition, metav1.ConditionFalse, v1alpha1.HistoryRewrittenReason)
	for _, want := range []string{old, last, "kubectl annotate repository rewritten --overwrite paas.kubeop.io/confirm-history="} {
		if !strings.Contains(message, want) {
			t.Errorf("the message does not contain %q: %s", want, message)
		}
	}
	repository := n.synced(last, metav1.ConditionFalse)
	if got := repository.Status.HeldRevision; got != old {
		t.Errorf("status.heldRevision is %q, want %s", got, old)
	}
	n.reconcile(repository)
	uid := db.UID
	if n.ready(db); db.UID != uid {
		t.Error("the app was recreated")
	}
	if err := n.admin.Delete(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	n.eventually(func() error {
		again := n.app("shop", "db")
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(again), again); err != nil {
			return err
		}
		if again.UID == uid {
			return fmt.Errorf("app db is not deleted yet")
		}
		return nil
	})
	n.ready(n.app("shop", "db"))

	before := repository.DeepCopy()
	metav1.SetMetaDataAnnotation(&repository.ObjectMeta, v1alpha1.ConfirmHistoryAnnotation, strings.TrimPrefix(old, "main@sha1:"))
	if err := n.admin.Patch(t.Context(), repository, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	n.synced(old, metav1.ConditionTrue)
	n.gone(n.app("shop", "db"))
	n.ready(n.app("shop", "web"))
	n.eventually(func() error {
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(repository), repository); err != nil {
			return err
		}
		if said, is := repository.Annotations[v1alpha1.ConfirmHistoryAnnotation]; is {
			return fmt.Errorf("the confirmation %s is still there", said)
		}
		return nil
	})
	if held := repository.Status.HeldRevision; held != "" {
		t.Errorf("status.heldRevision is still %s", held)
	}
	if repository.Annotations[meta.ReconcileRequestAnnotation] == "" {
		t.Error("removing the confirmation removed another annotation")
	}
}
