package step

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/fluxcd/pkg/runtime/conditions"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// write writes the status with what the scope recorded.
func (r *Runner) write(ctx context.Context, before, obj Object, s Scope) error {
	err := r.patch(ctx, before, obj)
	if n, ok := s.(Notified); ok && err == nil {
		n.StatusWritten()
	}
	return err
}

// patch writes the status where it differs from what was read: one request, or none. One that is too large to be stored is
// a failure that Ready reports.
func (r *Runner) patch(ctx context.Context, before, obj Object) error {
	size, err := r.send(ctx, before, obj)
	switch {
	case refusedForSize(err):
		markSize(obj, max(size, sizeLimit))
		return r.reportTooLarge(ctx, before, err)
	case err != nil:
		return err
	}
	was := obj.DeepCopyObject().(Object)
	if size > 0 && markSize(obj, size) {
		_, err = r.send(ctx, was, obj)
	}
	return err
}

// send sends what differs between two states of an object's status, and returns the size of the later one as JSON; 0 when
// nothing differs.
func (r *Runner) send(ctx context.Context, before, obj Object) (int, error) {
	if reflect.DeepEqual(before, obj) {
		return 0, nil // As of almost all objects that are looked at again.
	}
	was, err := json.Marshal(before)
	if err != nil {
		return 0, err
	}
	is, err := json.Marshal(obj)
	if err != nil {
		return 0, err
	}
	data, err := statusPatch(was, is)
	if err != nil || data == nil {
		return 0, err
	}
	// The context may have ended with the work; what was found out is still written.
	return len(is), client.IgnoreNotFound(r.Client.Status().Patch(context.WithoutCancel(ctx), obj, client.RawPatch(types.MergePatchType, data)))
}

// statusPatch returns the merge patch between the statuses of two states of an object, nil where they are the same. Nothing else of an
// object is written with its status, so nothing else is compared.
func statusPatch(before, after []byte) ([]byte, error) {
	type object struct {
		Status json.RawMessage `json:"status"`
	}
	was, is := object{}, object{}
	if err := errors.Join(json.Unmarshal(before, &was), json.Unmarshal(after, &is)); err != nil {
		return nil, err
	}
	if bytes.Equal(was.Status, is.Status) {
		return nil, nil
	}
	patch, err := jsonpatch.CreateMergePatch(was.Status, is.Status)
	if err != nil {
		return nil, err
	}
	return json.Marshal(object{Status: patch})
}

// errTooLarge is a status that the API server refused for its size.
var errTooLarge = errors.New("the status is larger than the API server stores, so it stays as it was: split the object into several")

// reportTooLarge has Ready say that the status could not be written; all else of it stays as it was, which could be stored.
func (r *Runner) reportTooLarge(ctx context.Context, before Object, refused error) error {
	reported := before.DeepCopyObject().(Object)
	conditions.MarkFalse(reported, v1alpha1.ReadyCondition, v1alpha1.TooLargeReason, "%s", errTooLarge)
	conditions.MarkReconciling(reported, v1alpha1.ProgressingWithRetryReason, "%s", errTooLarge)
	_, err := r.send(ctx, before, reported)
	return errors.Join(fmt.Errorf("%w: %w", errTooLarge, refused), err)
}
