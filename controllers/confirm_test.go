package controllers

import (
	"fmt"
	"testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestAConfirmationIsOfOneListAndUsedOnce confirms one list, has another one in its place, and takes the app away a month later.
func TestAConfirmationIsOfOneListAndUsedOnce(t *testing.T) {
	n := newTeam(t, "usedonce")
	n.volume()
	deliver := func(manifests ...string) *v1alpha1.App {
		files := beside(n.shop("web", manifests...))
		files["projects/shop/apps/web/app.yaml"] += "  claimDeletionPolicy: Delete\n"
		return n.applied("web", n.push(files))
	}
	const ask = "paas.kubeop.io/prune: confirm"
	one, two := n.configMapOf("shop", "one"), n.configMapOf("shop", "two")
	deliver(claim, plain("one", ask), plain("two", ask), plain("last"))

	shorter := deliver(claim, plain("two", ask), plain("last")).Status.HeldToken
	app := deliver(claim, plain("last"))
	if shorter == "" || app.Status.HeldToken == shorter || len(app.Status.Held) != 2 {
		t.Fatalf("held are %q with the token %q, before it was %q", app.Status.Held, app.Status.HeldToken, shorter)
	}
	n.annotate(app, v1alpha1.ConfirmAnnotation, shorter)
	n.reconcile(app)
	n.there(one, two)

	n.annotate(app, v1alpha1.ConfirmAnnotation, app.Status.HeldToken)
	n.gone(one, two)
	n.eventually(func() error {
		n.there(app)
		if left := app.Annotations[v1alpha1.ConfirmAnnotation]; left != "" || app.Status.HeldToken != "" {
			return fmt.Errorf("the confirmation %q was used and is there, the token is %q", left, app.Status.HeldToken)
		}
		return nil
	})

	// What names the revision lists nothing.
	n.annotate(app, v1alpha1.ConfirmAnnotation, app.Status.LastAttemptedRevision)
	n.push(map[string]string{"projects/shop/apps/web": "-"})
	n.gone(app)
	n.there(n.claimOf())
}
