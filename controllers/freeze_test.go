package controllers

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// freeze opens a window of the tenant, which ends after so long.
func (n *team) freeze(rest time.Duration) (end time.Time) {
	n.t.Helper()
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: n.name}}
	if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(tenant), tenant); err != nil {
		n.t.Fatal(err)
	}
	before := tenant.DeepCopy()
	begin := time.Now().UTC().Add(-2 * time.Minute).Truncate(time.Minute)
	end = time.Now().Add(rest).Truncate(time.Second)
	tenant.Spec.Freeze = []v1alpha1.FreezeWindow{{Name: "audit", Start: begin.Format("4 15 2 1 *"), Duration: metav1.Duration{Duration: end.Sub(begin)}}}
	if err := n.admin.Patch(n.t.Context(), tenant, client.MergeFrom(before)); err != nil {
		n.t.Fatal(err)
	}
	n.ready(tenant) // The operator has read it.
	return end
}

// TestCommitsWaitForTheEndOfAFreeze pushes during a freeze: what runs is looked after, one commit is confirmed, and the next one is applied when
// the freeze ends, without another event.
func TestCommitsWaitForTheEndOfAFreeze(t *testing.T) {
	n := newTeam(t, "frozen")
	first := n.push(shopFiles("shop", "web"))
	web := n.app("shop", "web")
	n.ready(web)
	n.freeze(48 * time.Hour)

	files := shopFiles("shop", "db")
	files["projects/shop/apps/broken/app.yaml"] = "spec: ["
	second := n.push(files)
	message := n.until(n.repository(), v1alpha1.AcceptedCondition, metav1.ConditionUnknown, v1alpha1.FrozenReason)
	for _, want := range []string{second + " waits until ", " UTC by freeze audit", "with 1 problem, the first of which is: projects/shop/apps/broken/app.yaml:1:", "confirm-freeze="} {
		if !strings.Contains(message, want) {
			t.Errorf("the message does not contain %q: %s", want, message)
		}
	}
	repository := n.synced(first, metav1.ConditionUnknown)
	if s := &repository.Status; s.HeldRevision != second || s.HeldUntil == nil || s.LastAppliedRevision != first {
		t.Errorf("the status is %+v", s)
	}
	uid := web.UID
	if err := n.admin.Delete(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	n.ready(web)
	if web.UID == uid {
		t.Error("the app was not made again")
	}

	before := repository.DeepCopy()
	metav1.SetMetaDataAnnotation(&repository.ObjectMeta, v1alpha1.ConfirmFreezeAnnotation, strings.TrimPrefix(second, "main@sha1:"))
	if err := n.admin.Patch(t.Context(), repository, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	n.ready(n.app("shop", "db"))

	third := n.push(map[string]string{"projects/shop/apps/broken/app.yaml": "-"})
	n.until(n.repository(), v1alpha1.AcceptedCondition, metav1.ConditionUnknown, v1alpha1.FrozenReason)
	end := n.freeze(15 * time.Second)
	repository = n.synced(third, metav1.ConditionTrue)
	if now := time.Now(); now.Before(end) {
		t.Errorf("applied at %s, before the end at %s", now, end)
	}
	if s := &repository.Status; s.HeldRevision != "" || s.HeldUntil != nil || s.LastAppliedRevision != third {
		t.Errorf("the status is %+v", s)
	}
}
