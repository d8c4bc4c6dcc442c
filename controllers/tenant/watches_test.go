package tenant

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/rollup"
)

// delays notes after how long each tenant is reconciled.
type delays struct {
	queue
	of map[string]time.Duration
}

func (d *delays) AddAfter(r reconcile.Request, after time.Duration) { d.of[r.Name] = after }

func TestATenantIsWokenAtOnceByAProjectThatComesAndLaterByOneThatIsGone(t *testing.T) {
	project := func(tenant string) client.Object {
		return &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{v1alpha1.TenantLabel: tenant}}}
	}
	for name, c := range map[string]struct {
		happens func(q queue)
		want    map[string]time.Duration
	}{
		"created":  {func(q queue) { onProject.Create(t.Context(), event.CreateEvent{Object: project("acme")}, q) }, map[string]time.Duration{"acme": 0}},
		"nobody's": {func(q queue) { onProject.Delete(t.Context(), event.DeleteEvent{Object: project("")}, q) }, map[string]time.Duration{}},
		"deleted":  {func(q queue) { onProject.Delete(t.Context(), event.DeleteEvent{Object: project("acme")}, q) }, map[string]time.Duration{"acme": rollup.Pause}},
		"is to change": {func(q queue) {
			onProject.Update(t.Context(), event.UpdateEvent{ObjectOld: project("rival"), ObjectNew: project("acme")}, q)
		}, map[string]time.Duration{"acme": 0}},
	} {
		t.Run(name, func(t *testing.T) {
			q := &delays{of: map[string]time.Duration{}}
			c.happens(q)
			if diff := cmp.Diff(c.want, q.of); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
