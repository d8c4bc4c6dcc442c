package controllers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv"
)

// TestAMissingHookSecretIsReported: without the Secret every push hook call is refused, and only this condition shows it. Delivered apps
// stay ready.
func TestAMissingHookSecretIsReported(t *testing.T) {
	n := newTeam(t, "unhooked")
	n.push(shopFiles("shop", "web"))
	n.ready(n.repository(), n.app("shop", "web"))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.Namespace, Name: "unhooked-hook"}}
	if err := n.admin.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	message := n.until(n.repository(), v1alpha1.HookClosedCondition, metav1.ConditionTrue, v1alpha1.SecretMissingReason)
	for _, want := range []string{testenv.Namespace + "/unhooked-hook", "every 10m0s", "kubectl create secret generic unhooked-hook"} {
		if !strings.Contains(message, want) {
			t.Errorf("the message is %q, want %q in it", message, want)
		}
	}
	n.ready(n.repository())
	n.secret("unhooked-hook", map[string]string{"token": "key-of-unhooked"})
	n.eventually(func() error {
		repository := n.repository()
		err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(repository), repository)
		if condition := conditions.Get(repository, v1alpha1.HookClosedCondition); err == nil && condition != nil {
			err = fmt.Errorf("the condition is still there: %s", condition.Message)
		}
		return err
	})
}
