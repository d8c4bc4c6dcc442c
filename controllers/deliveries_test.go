package controllers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestEachDeliveryIsRecordedOnce delivers two commits of an app and asks for a reconcile of each.
func TestEachDeliveryIsRecordedOnce(t *testing.T) {
	n := newTeam(t, "records")
	files := shopFiles("shop", "web")
	web := n.app("shop", "web")
	var revisions []string
	for i, greeting := range []string{"hello", "hello again"} {
		files["projects/shop/apps/web/app.yaml"] = strings.ReplaceAll(files["projects/shop/apps/web/app.yaml"], "hello", greeting)
		revisions = append(revisions, n.push(files))
		n.eventually(func() error { return n.delivered(web, revisions[i], i+1) })
		n.reconcile(web)
		if err := n.delivered(web, revisions[i], i+1); err != nil {
			t.Error(err)
		}
	}
	got := web.Status.Deliveries[0]
	if want := strings.TrimPrefix(revisions[1], "main@sha1:"); got.Commit != want || got.Author != "test" || got.Duration == nil {
		t.Errorf("got %+v, want commit %s by test", got, want)
	}
}

// delivered reads an app, and reports an error if its newest delivery is not the revision, or if there are not so many.
func (n *team) delivered(app *v1alpha1.App, revision string, count int) error {
	n.ready(app)
	all := app.Status.Deliveries
	if len(all) != count || all[0].Revision != revision || all[0].Result != v1alpha1.DeliverySucceeded {
		return fmt.Errorf("deliveries %+v, want %d, the newest of %s", all, count, revision)
	}
	return nil
}
