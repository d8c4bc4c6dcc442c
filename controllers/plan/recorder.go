package plan

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/metadata"
)

// recorder is a client whose writes are dry runs. It records how they change objects.
type recorder struct {
	client.Client
	// itself: the client has the rights of the project's deployer. Otherwise an apply is replaced by a comparison in this process, because the
	// API server would judge the person's rights instead.
	itself bool
	// absent is a namespace that does not exist, so nobody has the right to read in it; "" for none.
	absent string

	mu      sync.Mutex
	objects map[inventory.ObjectID]*state
}

// state is an object as it is, and as the writes leave it; nil if it does not exist.
type state struct {
	before, after *unstructured.Unstructured
	deleted       bool
}

func newRecorder(c client.Client, itself bool) *recorder {
	return &recorder{Client: c, itself: itself, objects: map[inventory.ObjectID]*state{}}
}

// live reads an object whole and records it as it is before the first write. It is a metadata.Watch that knows everything.
func (r *recorder) live(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (metav1.Object, bool, error) {
	if key.Namespace != "" && key.Namespace == r.absent {
		return nil, true, nil
	}
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(kind)
	err := r.Get(ctx, key, found)
	if metadata.Missing(err) || metadata.Unserved(err) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading %s/%s: %w", kind.Kind, key.Name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.objects[inventory.IDOf(found)] = &state{before: found}
	return found, true, nil
}

// Patch implements client.Client.
func (r *recorder) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	if patch.Type() != types.ApplyPatchType { // It changes who owns fields, and no value.
		if !r.itself {
			return nil
		}
		return r.Client.Patch(ctx, o, patch, append(options, client.DryRunAll)...)
	}
	data, err := patch.Data(o)
	if err != nil {
		return err
	}
	want := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &want.Object); err != nil {
		return fmt.Errorf("reading what is applied: %w", err)
	}
	s := r.of(inventory.IDOf(want))
	if r.itself && !s.deleted { // What is recreated still exists for the API server.
		answer := want.DeepCopy()
		if err := r.Client.Patch(ctx, answer, client.RawPatch(types.ApplyPatchType, data), append(options, client.DryRunAll)...); err != nil {
			return err
		}
		s.after = answer
	} else {
		s.declare(want)
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(s.after.Object, o)
}

// Delete implements client.Client.
func (r *recorder) Delete(_ context.Context, o client.Object, _ ...client.DeleteOption) error {
	kind := o.GetObjectKind().GroupVersionKind()
	r.of(inventory.ObjectID{Namespace: o.GetNamespace(), Name: o.GetName(), Group: kind.Group, Kind: kind.Kind}).deleted = true
	return nil
}

func (r *recorder) of(id inventory.ObjectID) *state {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.objects[id]
	if s == nil {
		s = &state{}
		r.objects[id] = s
	}
	return s
}

// declare sets the object to what it is with the declared fields.
func (s *state) declare(want *unstructured.Unstructured) {
	unstructured.RemoveNestedField(want.Object, "metadata", "uid")
	s.after = want
	if s.before != nil && !s.deleted {
		if whole, ok := overlay(s.before.Object, want.Object).(map[string]any); ok {
			s.after = &unstructured.Unstructured{Object: whole}
		}
	}
}

// overlay returns a value with the wanted fields, and with what it has besides, such as defaults.
func overlay(is, want any) any {
	switch want := want.(type) {
	case map[string]any:
		is, ok := is.(map[string]any)
		if !ok {
			return want
		}
		out := map[string]any{}
		for key, value := range is {
			out[key] = value
		}
		for key, value := range want {
			out[key] = overlay(is[key], value)
		}
		return out
	case []any:
		is, ok := is.([]any)
		if !ok || len(is) != len(want) {
			return want
		}
		out := make([]any, len(want))
		for i := range want {
			out[i] = overlay(is[i], want[i])
		}
		return out
	}
	return want
}
