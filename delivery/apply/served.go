package apply

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/delivery/crd"
	"github.com/kubeop/kubeop/delivery/inventory"
)

const (
	// establishedWithin is how long a pass waits until the API server serves a kind after its definition was applied. After that, a later
	// pass applies the objects.
	establishedWithin = 5 * time.Second
	// settledWithin is how long the API server may still use an earlier definition.
	settledWithin = 2 * time.Second
)

// definition is a CustomResourceDefinition of the set.
type definition struct {
	id   inventory.ObjectID
	mu   sync.Mutex
	seen map[string]error // By version of the kind: nil once the API server serves it.
}

// definitions holds the definitions of a set by the kind that each defines.
type definitions map[schema.GroupKind]*definition

func definitionsOf(objects []*unstructured.Unstructured) definitions {
	found := definitions{}
	for _, o := range objects {
		if crd.Is(o) {
			found[crd.Defines(o)] = &definition{id: inventory.IDOf(o), seen: map[string]error{}}
		}
	}
	return found
}

// served waits until the API server serves a kind that the set defines. It waits for each version once a run.
func (r *run) served(ctx context.Context, kind schema.GroupVersionKind) error {
	d := r.definitions[kind.GroupKind()]
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err, known := d.seen[kind.Version]; known {
		return err
	}
	d.seen[kind.Version] = r.await(ctx, d, kind)
	return d.seen[kind.Version]
}

func (r *run) await(ctx context.Context, d *definition, kind schema.GroupVersionKind) error {
	mapper := r.set.Client.RESTMapper()
	if _, err := mapper.RESTMapping(kind.GroupKind(), kind.Version); err == nil && !r.written(d.id) {
		return nil
	}
	err := wait.PollUntilContextTimeout(ctx, lookEvery, establishedWithin, true, func(ctx context.Context) (bool, error) {
		if ok, err := r.established(ctx, d.id); !ok {
			return false, err
		}
		_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			meta.MaybeResetRESTMapper(mapper)
			return false, nil
		}
		return err == nil, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("%s/%s was applied, but the API server does not serve it after %s: its conditions say why", d.id.Kind, d.id.Name, establishedWithin)
	}
	return err
}

// established reports whether the API server says that it serves what the definition defines.
func (r *run) established(ctx context.Context, id inventory.ObjectID) (bool, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(crd.Kind)
	if err := r.set.Client.Get(ctx, client.ObjectKey{Name: id.Name}, live); err != nil {
		return false, fmt.Errorf("looking whether %s/%s is established: %w", id.Kind, id.Name, err)
	}
	return crd.Established(live), nil
}

// whenServed writes an object, and repeats the write while the API server still uses an older definition than the one that this run wrote:
// the new one takes some time to reach all parts of the API server.
func (r *run) whenServed(ctx context.Context, o *unstructured.Unstructured, write func() error) error {
	d := r.definitions[o.GroupVersionKind().GroupKind()]
	if d == nil || !r.written(d.id) {
		return write()
	}
	err := context.Cause(ctx)
	_ = wait.PollUntilContextTimeout(ctx, lookEvery, settledWithin, true, func(context.Context) (bool, error) {
		err = write()
		return err == nil || apierrors.IsConflict(err) || apierrors.IsForbidden(err), nil
	})
	return err
}
