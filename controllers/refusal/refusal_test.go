package refusal

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

var (
	web  = Unit{Kind: v1alpha1.AppKind, ObjectKey: client.ObjectKey{Namespace: "kubeop-acme-shop", Name: "web"}}
	api  = Unit{Kind: v1alpha1.AppKind, ObjectKey: client.ObjectKey{Namespace: "kubeop-acme-shop", Name: "api"}}
	shop = Unit{Kind: v1alpha1.ProjectKind, ObjectKey: client.ObjectKey{Namespace: "kubeop-acme", Name: "shop"}}
)

const (
	place = "projects/shop/apps/web/app.yaml:7"
	typo  = "unknown field spec.replicsa"
)

// started returns a registry whose App controller runs, and its queue.
func started(t *testing.T) (*Index, workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	t.Helper()
	r := &Index{}
	q := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Minute))
	t.Cleanup(q.ShutDown)
	if err := r.Wakes(v1alpha1.AppKind).Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	return r, q
}

// woken empties the queue.
func woken(q workqueue.TypedRateLimitingInterface[reconcile.Request]) []types.NamespacedName {
	var all []types.NamespacedName
	for q.Len() > 0 {
		request, _ := q.Get()
		q.Done(request)
		all = append(all, request.NamespacedName)
	}
	return all
}

func TestNothingIsKnownBeforeTheRepositoryWasRead(t *testing.T) {
	r, q := started(t)
	r.Put("acme", web, Refusal{Revision: "main@sha1:1", Place: place, Problem: typo})
	r.Delete("acme", web)
	if _, known := r.Of("acme", web); known {
		t.Error("known before all of the repository was read")
	}
	r.Set("acme", nil)
	if refusal, known := r.Of("acme", web); !known || refusal != (Refusal{}) {
		t.Errorf("got %+v, %t", refusal, known)
	}
	if _, known := r.Of("other", web); known {
		t.Error("another repository is known")
	}
	if got := woken(q); len(got) != 0 {
		t.Errorf("woke %v", got)
	}
}

// TestAConditionOfAnEarlierProcessIsSettledOnceTheRepositoryIsRead: a refused file was corrected while the operator was down.
func TestAConditionOfAnEarlierProcessIsSettledOnceTheRepositoryIsRead(t *testing.T) {
	r, q := started(t)
	r.Report(v1alpha1.AppKind, webApp("main@sha1:1 is refused"), nil)
	current := webApp("")
	current.Name = "api"
	r.Report(v1alpha1.AppKind, current, nil)
	r.Set("other", nil)
	if got := woken(q); len(got) != 0 {
		t.Errorf("before its repository was read: woke %v", got)
	}
	r.Set("acme", nil)
	if diff := cmp.Diff([]types.NamespacedName{web.ObjectKey}, woken(q)); diff != "" {
		t.Errorf("the first reading (-want +got):\n%s", diff)
	}
	r.Set("acme", nil)
	if got := woken(q); len(got) != 0 {
		t.Errorf("the second reading: woke %v", got)
	}
	r.wakeOnceRead("acme", web) // The repository was read after the App had asked.
	if diff := cmp.Diff([]types.NamespacedName{web.ObjectKey}, woken(q)); diff != "" {
		t.Errorf("read in between (-want +got):\n%s", diff)
	}
}

func TestOnlyWhatChangedIsWoken(t *testing.T) {
	r, q := started(t)
	expect := func(what string, want ...types.NamespacedName) {
		t.Helper()
		if diff := cmp.Diff(want, woken(q)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	r.Set("acme", map[Unit]Refusal{web: {Revision: "main@sha1:1", Place: place, Problem: typo}, shop: {Revision: "main@sha1:1", Place: place, Problem: "x"}})
	expect("refused; the Project's controller has not started", web.ObjectKey)
	r.Set("acme", map[Unit]Refusal{web: {Revision: "main@sha1:2", Place: place, Problem: typo}})
	expect("the same problem in another commit")
	if refusal, _ := r.Of("acme", web); refusal.Revision != "main@sha1:1" {
		t.Errorf("the problem is reported for %s, want the commit it came with", refusal.Revision)
	}
	r.Put("acme", web, Refusal{Revision: "main@sha1:3", Place: place, Problem: typo})
	expect("the app's folder changed, and is as wrong", web.ObjectKey)
	r.Put("acme", web, Refusal{Revision: "main@sha1:3", Place: place, Problem: typo})
	expect("the same again")
	r.Set("acme", map[Unit]Refusal{api: {Revision: "main@sha1:4", Place: place, Problem: typo}, web: {Revision: "main@sha1:4", Place: place, Problem: "other"}})
	if got := woken(q); len(got) != 2 {
		t.Errorf("woke %v, want both apps", got)
	}
	r.Delete("acme", web)
	expect("mended", web.ObjectKey)
	r.Delete("acme", web)
	expect("mended before")
	r.Forget("acme")
	expect("the repository is gone", api.ObjectKey)
	if refusal, known := r.Of("acme", api); !known || refusal != (Refusal{}) {
		t.Errorf("after the repository is gone: %+v, %t", refusal, known)
	}
}
