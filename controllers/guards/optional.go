package guards

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// OptionalKind knows whether the API server serves a kind without which kubeop works, too. It makes no watch of it, so nothing fails without the kind. Safe for
// concurrent use.
type OptionalKind struct {
	Kind schema.GroupVersionKind
	// Mapper knows what the API server serves. It answers from memory, and forgets what is no longer served.
	Mapper meta.RESTMapper
	// Off: kubeop does not use the kind, as if it were not served.
	Off bool

	mu     sync.Mutex
	served bool
	wake   []func()
}

// Served reports whether kubeop uses the kind: whether the API server serves it in the version that kubeop knows.
func (k *OptionalKind) Served() (bool, error) {
	if k.Off {
		return false, nil
	}
	_, err := k.Mapper.RESTMapping(k.Kind.GroupKind(), k.Kind.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}

// OnChange registers f, which is called when the API server begins or ends to serve the kind. f must not block.
func (k *OptionalKind) OnChange(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wake = append(k.wake, f)
}

// Source is a source of events for a controller: it calls wake in a goroutine of its own when the API server begins or ends to serve the kind.
func (k *OptionalKind) Source(wake func(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request])) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		k.OnChange(func() {
			go wake(ctx, queue)
		})
		return nil
	})
}

// Look calls the functions of OnChange if the API server began or ended to serve the kind since the last call. Call it when it may serve other kinds than
// before. If that cannot be found out, what depends on it is reconciled at its interval.
func (k *OptionalKind) Look() {
	served, err := k.Served()
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil || served == k.served {
		return
	}
	k.served = served
	for _, f := range k.wake {
		f()
	}
}
