package project

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kubeop/kubeop/controllers/app/wake"
	"github.com/kubeop/kubeop/delivery/fingerprint"
	"github.com/kubeop/kubeop/delivery/kube"
)

// TestAQuotaThatAllowsMoreRetriesApps: what counts is the status, by which the API server refuses objects.
func TestAQuotaThatAllowsMoreRetriesApps(t *testing.T) {
	for name, c := range map[string]struct {
		of           string
		was, is      corev1.ResourceList
		used, wanted string
		retries      bool
	}{
		"raised":             {was: list("pods", "1"), is: list("pods", "2"), retries: true},
		"raised in the spec": {was: list("pods", "1"), is: list("pods", "1"), wanted: "2"},
		"lowered":            {was: list("pods", "2"), is: list("pods", "1")},
		"written otherwise":  {was: list("cpu", "1"), is: list("cpu", "1000m")},
		"used less":          {was: list("pods", "1"), is: list("pods", "1"), used: "0"},
		"one limit removed":  {was: list("pods", "1", "cpu", "1"), is: list("cpu", "1"), retries: true},
		"one limit added":    {was: list("cpu", "1"), is: list("pods", "1", "cpu", "1")},
		"counted at last":    {is: list("pods", "1"), retries: true},
		"not counted":        {wanted: "2"},
		"another quota":      {of: "own", was: list("pods", "1"), is: list("pods", "2")},
	} {
		t.Run(name, func(t *testing.T) {
			quota := func(hard corev1.ResourceList, used, wanted string) client.Object {
				q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "kubeop"}, Status: corev1.ResourceQuotaStatus{Hard: hard}}
				if c.of != "" {
					q.Name = c.of
				}
				if used != "" {
					q.Status.Used = list("pods", used)
				}
				if wanted != "" {
					q.Spec.Hard = list("pods", wanted)
				}
				held, err := kube.Hold(scheme.Scheme, fingerprint.Slim)(q)
				if err != nil {
					t.Fatal(err)
				}
				return held.(client.Object)
			}
			e := event.UpdateEvent{ObjectOld: quota(c.was, "1", "1"), ObjectNew: quota(c.is, c.used, c.wanted)}
			if got := quotaRaised.Update(e); got != c.retries {
				t.Errorf("apps are retried: %t", got)
			}
		})
	}
}

// TestTheAppsOfARaisedQuotaAreRetried, and no others; no other kind than quotas is followed for that.
func TestTheAppsOfARaisedQuotaAreRetried(t *testing.T) {
	q, work := &wake.Queue{Clock: clock.RealClock{}}, workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer work.ShutDown()
	q.Start(work)
	c := &watching{}
	web := types.NamespacedName{Namespace: "ns", Name: "web"}
	follow := FollowQuotas(q, c, func(_ context.Context, namespace string) []reconcile.Request {
		return wake.Requests([]types.NamespacedName{{Namespace: namespace, Name: "web"}})
	})
	if err := follow(corev1.SchemeGroupVersion.WithKind("Service"), nil); err != nil || c.from != nil {
		t.Fatalf("Services are followed: %v", err)
	}
	if err := follow(corev1.SchemeGroupVersion.WithKind("ResourceQuota"), nil); err != nil || c.from == nil {
		t.Fatalf("quotas are not followed: %v", err)
	}
	if len(c.from.Predicates) != 1 {
		t.Error("not only what allows more retries apps")
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "kubeop"}}
	c.from.Handler.Update(t.Context(), event.UpdateEvent{ObjectOld: quota, ObjectNew: quota}, work)
	if next, _ := work.Get(); next.NamespacedName != web || q.Mended(web).IsZero() {
		t.Errorf("retried is %s, of which something is mended since %s", next, q.Mended(web))
	}
}

// watching is a controller that remembers what it watches.
type watching struct {
	controller.Controller
	from *source.Informer
}

func (w *watching) Watch(from source.Source) error {
	w.from = from.(*source.Informer)
	return nil
}

// TestOnlyAChangeOfAQuotaRetriesApps: at its start, the controller reconciles every App anyway.
func TestOnlyAChangeOfAQuotaRetriesApps(t *testing.T) {
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "kubeop"}, Status: corev1.ResourceQuotaStatus{Hard: list("pods", "1")}}
	if quotaRaised.Create(event.CreateEvent{Object: quota}) || quotaRaised.Delete(event.DeleteEvent{Object: quota}) {
		t.Error("a quota that is created or deleted retries apps")
	}
}

// list returns resources, each with its amount.
func list(pairs ...string) corev1.ResourceList {
	all := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		all[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return all
}
