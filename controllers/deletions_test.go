package controllers

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestOneReadServesAllEarlierCallers: a hundred callers arrive during a read. They share the next one, because the current one may
// have read before their objects were marked for deletion.
func TestOneReadServesAllEarlierCallers(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := appsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var reads atomic.Int32
	begun, goOn := make(chan struct{}), make(chan struct{})
	d := newDeletions(fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
			n := reads.Add(1)
			if n == 1 {
				close(begun)
				<-goOn
			}
			obj.SetCreationTimestamp(metav1.Unix(int64(n), 0))
			return nil
		},
	}).Build(), "kubeop-system", "kubeop")

	var asking sync.WaitGroup
	ask := func(oldest int64) {
		asking.Go(func() {
			now, err := d.needed(t.Context(), "apps.paas.kubeop.io")
			if err == nil && now.definition.CreationTimestamp.Unix() < oldest {
				err = fmt.Errorf("the answer is from read %d, which began before the call", now.definition.CreationTimestamp.Unix())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	ask(1)
	<-begun
	for range 100 {
		ask(3)
	}
	for d.reads.Waiting("apps.paas.kubeop.io") < 101 {
		time.Sleep(time.Millisecond)
	}
	close(goOn)
	asking.Wait()
	if got := reads.Load(); got != 4 {
		t.Errorf("101 callers sent %d requests, want two for the first and two for all others", got)
	}
}
