package controllers

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// fixedApp is a Raw app of one ConfigMap that cannot be changed, with more fields of its spec.
func fixedApp(value, more string) map[string]string {
	return map[string]string{"projects/shop/apps/bad/app.yaml": appOf("spec:\n  type: Raw\n" + more + "  raw:\n    manifests:\n" +
		"    - {apiVersion: v1, kind: ConfigMap, metadata: {name: fixed}, immutable: true, data: {value: " + value + "}}\n")["app.yaml"]}
}

// TestForeignObjectsInTheWayAreNamed: an object of somebody else has the name of an app's object; later the app changes an immutable
// field. Each time the app reports what to set, stops, and goes on once that is set.
func TestForeignObjectsInTheWayAreNamed(t *testing.T) {
	n := newTeam(t, "standing")
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	yes := true
	n.create(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-standing-shop", Name: "fixed"}, Immutable: &yes, Data: map[string]string{"value": "a"},
	})
	app := n.app("shop", "bad")
	for _, step := range []struct{ value, more, want string }{
		{"a", "", "ConfigMap/fixed: exists already, made by "},
		{"a", "  takeOwnership: true\n", ""},
		{"b", "", "ConfigMap/fixed: data cannot be changed (field is immutable when `immutable` is set): set force: true"},
		{"b", "  force: true\n", ""},
	} {
		commit := n.push(fixedApp(step.value, step.more))
		n.synced(commit, metav1.ConditionTrue)
		if step.want == "" {
			n.ready(app)
			if got := n.configMap("shop", "fixed"); got.Data["value"] != step.value || got.Labels[v1alpha1.AppLabel] != "bad" {
				t.Errorf("the object is %v, labelled %v", got.Data, got.Labels)
			}
			continue
		}
		message := n.until(app, v1alpha1.AppliedCondition, metav1.ConditionFalse, v1alpha1.ApplyFailedReason)
		if !strings.Contains(message, step.want) {
			t.Errorf("the message does not contain %q: %s", step.want, message)
		}
		n.until(app, v1alpha1.StalledCondition, metav1.ConditionTrue, "")
	}
}
