package controllers

import (
	"fmt"
	"testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestAConfirmationHoldsForOneListOnce confirms one list of deletions, replaces it by another, and removes the app a month later.
func TestAConfirmationHoldsForOneListOnce(t *testing.T) {
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
		t.Fatalf("status.held is %q with the token %q; want a longer list and another token than %q", app.Status.Held, app.Status.HeldToken, shorter)
	}
	n.annotate(app, v1alpha1.ConfirmAnnotation, shorter)
	n.reconcile(app)
	n.there(one, two)

	n.annotate(app, v1alpha1.ConfirmAnnotation, app.Status.HeldToken)
	n.gone(one, two)
	n.eventually(func() error {
		n.there(app)
		if left := app.Annotations[v1alpha1.ConfirmAnnotation]; left != "" || app.Status.HeldToken != "" {
			return fmt.Errorf("the used confirmation %q is still there; the token is %q", left, app.Status.HeldToken)
		}
		return nil
	})

	// A confirmation by revision confirms no list.
	n.annotate(app, v1alpha1.ConfirmAnnotation, app.Status.LastAttemptedRevision)
	n.push(map[string]string{"projects/shop/apps/web": "-"})
	n.gone(app)
	n.there(n.claimOf())
}
