package controllers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// flappingFile is an app whose only object is healthy while somebody writes "ok" into it.
const flappingFile = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: flapping}\nspec:\n  type: Raw\n  drift: {mode: \"Off\"}\n" +
	"  healthCheckExprs:\n  - {apiVersion: v1, kind: ConfigMap, current: 'data.state == \"ok\"', failed: 'data.state == \"bad\"'}\n" +
	"  raw: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: flapping}, data: {state: ok, revision: %q}}]}\n"

// TestAnAppThatFailsAgainAndAgainDoesNotFlap has an object fail, recover and fail again: the app is not healthy when it recovers the second
// time, until a new revision is.
func TestAnAppThatFailsAgainAndAgainDoesNotFlap(t *testing.T) {
	n := newTeam(t, "flaps")
	files := shopFiles("shop", "web")
	const file = "projects/shop/apps/flapping/app.yaml"
	files[file] = fmt.Sprintf(flappingFile, "1")
	n.push(files)
	app := n.app("shop", "flapping")
	n.ready(app)

	becomes := func(state string, status metav1.ConditionStatus, text string) {
		t.Helper()
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "flapping"}}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"state":"`+state+`"}}`))
		if err := n.admin.Patch(t.Context(), object, patch); err != nil {
			t.Fatal(err)
		}
		n.reconcile(app) // A change of a field that kubeop does not own any more wakes no app.
		n.eventually(func() error {
			if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(app), app); err != nil {
				return err
			}
			healthy := conditions.Get(app, v1alpha1.HealthyCondition)
			if healthy == nil || healthy.Status != status || !strings.Contains(healthy.Message, text) {
				return fmt.Errorf("%s: Healthy is %+v, want %s with %q", state, healthy, status, text)
			}
			return nil
		})
	}
	becomes("bad", metav1.ConditionFalse, "ConfigMap/flapping: failed")
	becomes("ok", metav1.ConditionTrue, "")
	becomes("bad", metav1.ConditionFalse, "ConfigMap/flapping: failed, as healthCheckExprs say; this comes back again and again")
	since := conditions.Get(app, v1alpha1.HealthyCondition).LastTransitionTime
	becomes("ok", metav1.ConditionFalse, "this comes back again and again")
	time.Sleep(3 * time.Second) // Long enough for several looks.
	becomes("ok", metav1.ConditionFalse, "this comes back again and again")
	if now := conditions.Get(app, v1alpha1.HealthyCondition).LastTransitionTime; !now.Equal(&since) {
		t.Errorf("Healthy changed at %s, want it unchanged since %s", now, since)
	}

	files[file] = fmt.Sprintf(flappingFile, "2")
	n.push(files)
	n.ready(app)
}
