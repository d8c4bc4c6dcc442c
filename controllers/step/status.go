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
	"github.com/kubeop/kubeop/delivery/denial"
)

// write writes the status, and notifies the scope.
func (r *Runner) write(ctx context.Context, before, obj Object, s Scope) error {
	err := r.patch(ctx, before, obj)
	if n, ok := s.(Notified); ok && err == nil {
		n.StatusWritten()
	}
	return err
}

// patch writes the status if it changed, with one request. A status that is too large to be stored is a failure that Ready reports.
func (r *Runner) patch(ctx context.Context, before, obj Object) error {
	if reflect.DeepEqual(before, obj) {
		return nil // The usual case.
	}
	is, err := marshalMarked(obj)
	if err != nil {
		return err
	}
	if err = r.send(ctx, before, obj, is); denial.ForSize(err) {
		markSize(obj, max(len(is), sizeLimit))
		return r.reportTooLarge(ctx, before, err)
	}
	return err
}

// send sends the difference between the status of before and that of obj; is has obj as JSON.
func (r *Runner) send(ctx context.Context, before, obj Object, is []byte) error {
	was, err := json.Marshal(before)
	if err != nil {
		return fmt.Errorf("encoding the object: %w", err)
	}
	data, err := statusPatch(was, is)
	if err != nil || data == nil {
		return err
	}
	// The API server's answer is discarded. It may have a newer spec and newer annotations, and all that is recorded of this Reconcile is about
	// those with which it began: otherwise an App would seem to have rendered a commit that it has not read.
	answer := obj.DeepCopyObject().(Object)
	// The Reconcile's context may have ended; its results are written nevertheless.
	err = r.Client.Status().Patch(context.WithoutCancel(ctx), answer, client.RawPatch(types.MergePatchType, data))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	return nil
}

// statusPatch returns the merge patch between the statuses of two states of an object; nil if they are the same. Nothing but the status is
// written, so nothing else is compared.
func statusPatch(before, after []byte) ([]byte, error) {
	type object struct {
		Status json.RawMessage `json:"status"`
	}
	was, is := object{}, object{}
	if err := errors.Join(json.Unmarshal(before, &was), json.Unmarshal(after, &is)); err != nil {
		return nil, fmt.Errorf("reading the statuses to compare: %w", err)
	}
	if bytes.Equal(was.Status, is.Status) {
		return nil, nil
	}
	patch, err := jsonpatch.CreateMergePatch(was.Status, is.Status)
	if err != nil {
		return nil, fmt.Errorf("comparing the statuses: %w", err)
	}
	return json.Marshal(object{Status: patch})
}

// errTooLarge says that the API server refused a status because of its size.
var errTooLarge = errors.New("the status is larger than the API server stores, so it stays as it was: split the object into several in Git")

// reportTooLarge sets Ready to say that the status could not be written. The rest of the status stays as it was before.
func (r *Runner) reportTooLarge(ctx context.Context, before Object, refused error) error {
	reported := before.DeepCopyObject().(Object)
	conditions.MarkFalse(reported, v1alpha1.ReadyCondition, v1alpha1.TooLargeReason, "%s", errTooLarge)
	conditions.MarkReconciling(reported, v1alpha1.ProgressingWithRetryReason, "%s", errTooLarge)
	is, err := json.Marshal(reported)
	if err == nil {
		err = r.send(ctx, before, reported, is)
	}
	return errors.Join(fmt.Errorf("%w: %w", errTooLarge, refused), err)
}
