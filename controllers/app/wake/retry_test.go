package wake

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestAnAppIsRetriedOnceAKindThatItNeedsMayBeServed, with the time at which its failure may have lost its cause.
func TestAnAppIsRetriedOnceAKindThatItNeedsMayBeServed(t *testing.T) {
	web, api := types.NamespacedName{Namespace: "ns", Name: "web"}, types.NamespacedName{Namespace: "ns", Name: "api"}
	synctest.Test(t, func(t *testing.T) {
		q, work := &Queue{Clock: clock.RealClock{}}, workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer work.ShutDown()
		q.Start(work)
		woken := func(want int) {
			t.Helper()
			time.Sleep(time.Minute)
			synctest.Wait()
			if work.Len() != want {
				t.Errorf("queued are %d apps, want %d", work.Len(), want)
			}
		}
		q.KindsServed()
		woken(0)
		q.AwaitKinds(web)
		q.AwaitKinds(api)
		q.Forget(&v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "api"}})
		if at := q.Mended(web); !at.IsZero() {
			t.Errorf("before, what the app lacks is there since %s", at)
		}
		served := time.Now()
		q.KindsServed()
		if at := q.Mended(web); !at.Equal(served) {
			t.Errorf("what the app lacks is there since %s, want %s", at, served)
		}
		woken(1)
		next, _ := work.Get()
		if work.Done(next); next.NamespacedName != web {
			t.Errorf("woken is %s", next)
		}
		q.KindsServed()
		woken(0)
		q.Forget(&v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}})
		if at := q.Mended(web); !at.IsZero() {
			t.Errorf("of an app that is gone, %s is known", at)
		}
	})
}
