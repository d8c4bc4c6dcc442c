package step

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/fluxcd/pkg/runtime/jitter"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// maxMessage bounds an event's message; the API server refuses more than 1,024 characters.
const maxMessage = 1000

// finish tells how a Reconcile ended: Ready and its companions, one status patch where anything changed, one event where
// Ready changed, and when to look again.
func (r *Runner) finish(ctx context.Context, before, obj Object, s Scope, v *verdict) (ctrl.Result, error) {
	if v != nil && v.kind == quiet {
		return ctrl.Result{RequeueAfter: v.after}, nil
	}
	s.Record()
	if did, why := brokeOff(ctx, v); did {
		obj.SetConditions(before.GetConditions()) // What was done stays recorded.
		return ctrl.Result{}, errors.Join(r.write(ctx, before, obj, s), why)
	}
	heading := headingOf(s)
	summarise(obj, s, v, heading)
	notes := notesOf(s)
	mark(obj, notes)
	if token, ok := meta.ReconcileAnnotationValue(obj.GetAnnotations()); ok {
		obj.GetReconcileStatus().SetLastHandledReconcileRequest(token)
	}

	if err := r.write(ctx, before, obj, s); err != nil {
		return ctrl.Result{}, errors.Join(err, errOf(v))
	}
	countRefusal(obj, errOf(v))
	r.tell(before, obj, heading, detailsOf(s, v))
	r.tellDegraded(before, obj, v)
	for _, n := range notes {
		r.note(before, obj, n)
	}
	result, err := next(ctx, obj, v)
	if sooner, ok := s.(Sooner); ok && (v == nil || v.kind == stopped) && sooner.Again() > 0 {
		result.RequeueAfter = min(result.RequeueAfter, sooner.Again())
	}
	return result, err
}

func notesOf(s Scope) []Note {
	n, ok := s.(Noter)
	if !ok {
		return nil
	}
	notes := n.Notes()
	for i := range notes {
		notes[i].Message = hide(s, notes[i].Message)
	}
	return notes
}

func headingOf(s Scope) string {
	if h, ok := s.(Headed); ok {
		return hide(s, h.Heading())
	}
	return ""
}

func detailsOf(s Scope, v *verdict) string {
	if d, ok := s.(Detailed); ok && v != nil && v.kind != waiting {
		return hide(s, d.Details())
	}
	return ""
}

func mark(obj Object, notes []Note) {
	for _, n := range notes {
		if n.Condition == "" {
			continue
		}
		if n.Status == "" {
			conditions.Delete(obj, n.Condition)
			continue
		}
		conditions.Set(obj, &metav1.Condition{
			Type: n.Condition, Status: n.Status, Reason: n.Reason, Message: n.Message, ObservedGeneration: obj.GetGeneration(),
		})
	}
}

// summarise sets Ready, Reconciling, Stalled and the observed generation. A failure that is tried again leaves the
// observed generation behind, so that kstatus reads the object as in progress. Reconciling and Stalled take each other
// away; deleting them here would give the same state a new transition time at each look. Ready's message begins with the heading.
func summarise(obj Object, s Scope, v *verdict, heading string) {
	settled := false
	switch {
	case v == nil:
		settled = true
		conditions.Delete(obj, v1alpha1.ReconcilingCondition)
		conditions.Delete(obj, v1alpha1.StalledCondition)
		conditions.MarkTrue(obj, v1alpha1.ReadyCondition, v1alpha1.SucceededReason, "%s%s", heading, s.Summary())
	case v.kind == waiting:
		conditions.MarkReconciling(obj, v1alpha1.ProgressingReason, "%s", v.err)
		conditions.MarkUnknown(obj, v1alpha1.ReadyCondition, v.reason, "%s%s", heading, v.err)
	case v.kind == stopped:
		settled = true
		conditions.MarkStalled(obj, v.reason, "%s", v.err)
		conditions.MarkFalse(obj, v1alpha1.ReadyCondition, v.reason, "%s%s", heading, v.err)
	default:
		conditions.MarkReconciling(obj, v1alpha1.ProgressingWithRetryReason, "%s", v.err)
		conditions.MarkFalse(obj, v1alpha1.ReadyCondition, v.reason, "%s%s", heading, v.err)
	}
	if settled {
		obj.GetReconcileStatus().ObservedGeneration = obj.GetGeneration()
	}
}

// suspended has Ready say that nothing is done, in front of what it said last.
func (r *Runner) suspended(ctx context.Context, obj Object) error {
	const mark = "Suspended; "
	before := obj.DeepCopyObject().(Object)
	ready := conditions.Get(obj, v1alpha1.ReadyCondition)
	if ready == nil || strings.HasPrefix(ready.Message, mark) {
		return nil
	}
	marked := ready.DeepCopy()
	marked.Message = mark + marked.Message
	conditions.Set(obj, marked)
	conditions.Delete(obj, v1alpha1.ReconcilingCondition)
	return r.patch(ctx, before, obj)
}

// write writes the status with what the scope recorded.
func (r *Runner) write(ctx context.Context, before, obj Object, s Scope) error {
	err := r.patch(ctx, before, obj)
	if t, ok := s.(Teller); ok && err == nil {
		t.Told()
	}
	return err
}

// patch writes the status where it differs from what was read: one request, or none. One that is too large to be stored is
// a failure that Ready tells.
func (r *Runner) patch(ctx context.Context, before, obj Object) error {
	size, err := r.send(ctx, before, obj)
	switch {
	case refusedForSize(err):
		weigh(obj, max(size, sizeLimit))
		return r.tellTooLarge(ctx, before, err)
	case err != nil:
		return err
	}
	was := obj.DeepCopyObject().(Object)
	if size > 0 && weigh(obj, size) {
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
	// The context may have ended with the work; what was found out is still told.
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

// tell emits an event when Ready is false and says something else than before, and when it is true and the last that it said
// was a failure, be it that it waited since. Any other success is told by Ready alone: thousands of objects that do as they
// should are no events. A restart of the operator between failure and success forgets a failure that was followed by waiting.
// The heading of Ready's message is told elsewhere: neither its coming and going nor its words are in an event of Ready.
func (r *Runner) tell(before, obj Object, heading, details string) {
	is := conditions.Get(obj, v1alpha1.ReadyCondition)
	if is == nil || is.Status == metav1.ConditionUnknown {
		return
	}
	failed := conditions.IsFalse(before, v1alpha1.ReadyCondition)
	if is.Status == metav1.ConditionFalse {
		r.failing.Store(obj.GetUID(), nil)
	} else if _, known := r.failing.LoadAndDelete(obj.GetUID()); !failed && !known {
		return
	}
	message := strings.TrimPrefix(is.Message, heading)
	if was := conditions.Get(before, v1alpha1.ReadyCondition); was != nil && was.Status == is.Status && was.Reason == is.Reason && strings.HasSuffix(was.Message, message) {
		return
	}
	kind := corev1.EventTypeNormal
	if is.Status != metav1.ConditionTrue {
		kind = corev1.EventTypeWarning
	}
	if details != "" {
		message += "\n" + details
	}
	r.emit(obj, kind, is.Reason, message)
}

// note emits an event of a note that is new or says something else than before.
func (r *Runner) note(before, obj Object, n Note) {
	if n.Event != "" && (n.Condition == "" || !same(before, obj, n.Condition)) {
		r.emit(obj, n.Event, n.Reason, n.Message)
	}
}

// tellDegraded emits an event of each condition that became false though Ready did not.
func (r *Runner) tellDegraded(before, obj Object, v *verdict) {
	if v != nil {
		return
	}
	for _, c := range obj.GetConditions() {
		if c.Status == metav1.ConditionFalse && degradable[c.Type] {
			r.note(before, obj, Note{Condition: c.Type, Reason: c.Reason, Message: c.Message, Event: corev1.EventTypeWarning})
		}
	}
}

// degradable are the conditions of steps that Degrade may end.
var degradable = map[string]bool{v1alpha1.SourceReadyCondition: true}

func same(before, obj Object, condition string) bool {
	was, is := conditions.Get(before, condition), conditions.Get(obj, condition)
	if was == nil || is == nil {
		return was == is
	}
	return was.Status == is.Status && was.Reason == is.Reason && was.Message == is.Message
}

func (r *Runner) emit(obj Object, kind, reason, message string) {
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	r.Events.Eventf(obj, nil, kind, reason, "Reconcile", "%s", message)
}

// next says when to look again. Only a failure without a retryInterval goes through the queue's backoff.
func next(ctx context.Context, obj Object, v *verdict) (ctrl.Result, error) {
	every := jitter.JitteredIntervalDuration(obj.GetSchedule().Every())
	switch {
	case v == nil || v.kind == stopped:
		return ctrl.Result{RequeueAfter: every}, nil
	case v.after > 0:
		return ctrl.Result{RequeueAfter: v.after}, nil
	case pause(obj) > 0:
		ctrl.LoggerFrom(ctx).Error(v.err, "Trying again", "after", pause(obj))
		return ctrl.Result{RequeueAfter: pause(obj)}, nil
	}
	return ctrl.Result{}, v.err
}

func errOf(v *verdict) error {
	if v == nil {
		return nil
	}
	return v.err
}
