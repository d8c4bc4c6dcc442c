package health

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/delivery/condition"
	"github.com/kubeop/kubeop/delivery/expr"
)

// Object returns an object as a watch last showed it; nil if there is none. known is false if no watch covers the kind. Callers must not
// change the object. It may lack pod templates, annotations and the managedFields of other managers.
type Object func(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (object *unstructured.Unstructured, known bool, err error)

// maxExplained is how many objects Look explains, which bounds its requests: at most a list of pods, a list of events and a log for each,
// and the events of claims. A verdict never names more than three.
const maxExplained = 3

// Look judges the objects. An object that a watch shows costs no request. Other objects are read with the deployer's client, and so are the
// pods and events of unhealthy ones. With a nil Object, every object is read.
func Look(ctx context.Context, e Explainer, object Object, refs []Ref) (Verdict, error) {
	var found []*finding
	for _, ref := range refs {
		f, err := e.look(ctx, object, ref)
		if err != nil {
			return Verdict{}, err
		}
		found = append(found, f)
	}
	if err := e.judgeClaims(ctx, found); err != nil {
		return Verdict{}, err
	}
	if err := e.explain(ctx, found); err != nil {
		return Verdict{}, err
	}
	var v Verdict
	for _, f := range found {
		switch {
		case f.pends:
			v.Pending = append(v.Pending, f.line())
		case f.state >= failed:
			v.Failed = append(v.Failed, f.line())
			v.Final = v.Final || f.state == gaveUp
		case f.state == waiting:
			v.Waiting = append(v.Waiting, f.line())
		}
	}
	return v, nil
}

// explain explains why objects are not healthy, first those that Kubernetes gave up on.
func (e Explainer) explain(ctx context.Context, found []*finding) error {
	explained := 0
	for _, turn := range []state{gaveUp, waiting} {
		for _, f := range found {
			if f.state != turn || f.object == nil || !canExplain(f.object) || explained == maxExplained {
				continue
			}
			explained++
			if err := e.addCause(ctx, f); err != nil {
				return fmt.Errorf("asking why %s is not healthy: %w", f.ref, err)
			}
		}
	}
	return nil
}

// look reads one object, from the watch if the watch covers it, and judges it by its status.
func (e Explainer) look(ctx context.Context, object Object, ref Ref) (*finding, error) {
	live, known, err := seen(ctx, object, ref)
	if err != nil {
		return nil, fmt.Errorf("looking at %s: %w", ref, err)
	}
	reads := known && behind(live, ref.Floor)
	if reads && !e.Late {
		return &finding{ref: ref, pends: true, why: "its last change has not been seen yet"}, nil
	}
	if reads || hidden(known, live, ref) {
		live, known, reads = nil, false, true
	}
	if check := e.Checks.of(ref.Kind.GroupKind()); check != nil && (live != nil || !known) {
		return e.checked(ctx, ref, check, live)
	}
	if !known && !reads && ref.unsure {
		return &finding{ref: ref}, nil
	}
	if !known {
		if live, err = e.read(ctx, ref); err != nil {
			return nil, err
		}
	}
	if live == nil {
		return e.gone(ref), nil
	}
	return e.judged(ref, live)
}

// checked judges an object by the expressions of its kind. Expressions may read any field, and a watch does not hold all fields, so the
// object is read once for each version that the watch shows. If no watch shows it, it is read each time.
func (e Explainer) checked(ctx context.Context, ref Ref, check *expr.Check, held *unstructured.Unstructured) (*finding, error) {
	version := ""
	if held != nil {
		version = held.GetResourceVersion()
	}
	if last, ok := e.Checks.cached(ref, version); ok {
		return &finding{ref: ref, state: last.state, why: last.why}, nil
	}
	whole, err := e.read(ctx, ref)
	if whole == nil || err != nil {
		return e.gone(ref), err
	}
	now := cachedVerdict{version: whole.GetResourceVersion()}
	now.state, now.why = e.judgeByExpression(ctx, check, whole)
	if len(e.Checks.cache) >= maxCached {
		clear(e.Checks.cache) // Objects come and go with commits.
	}
	e.Checks.cache[ref.plain()] = now
	return &finding{ref: ref, state: now.state, why: now.why}, nil
}

// judgeByExpression evaluates the expressions for an object, and returns the result as a message.
func (e Explainer) judgeByExpression(ctx context.Context, check *expr.Check, whole *unstructured.Unstructured) (state, string) {
	if whole.GetDeletionTimestamp() != nil {
		return waiting, "is being deleted"
	}
	verdict, err := check.Judge(ctx, whole)
	switch {
	case err != nil:
		return failed, e.text("cannot be judged by healthCheckExprs: " + err.Error())
	case verdict == expr.Current:
		return healthy, ""
	case verdict == expr.Failed:
		return gaveUp, "failed, as healthCheckExprs say" + e.readyMessage(whole)
	}
	return waiting, "is in progress, as healthCheckExprs say" + e.readyMessage(whole)
}

// readyMessage is the message of the object's own condition Ready, "" without one.
func (e Explainer) readyMessage(o *unstructured.Unstructured) string {
	if c, _ := condition.Of(o, "Ready"); c.Message != "" {
		return ": " + e.text(c.Message)
	}
	return ""
}

// hidden reports whether the object may exist although the watch does not show it: the watch finds objects by kubeop's labels, which people
// may remove.
func hidden(known bool, live *unstructured.Unstructured, ref Ref) bool {
	return known && live == nil && ref.Kind.GroupKind() != jobs
}

func seen(ctx context.Context, object Object, ref Ref) (*unstructured.Unstructured, bool, error) {
	if object == nil {
		return nil, false, nil
	}
	return object(ctx, ref.Kind, ref.Key)
}

// behind reports whether the watch has not received the version yet. An object that the watch does not hold may still arrive.
// Kubernetes defines the order of resource versions of one kind (KEP-5504).
func behind(live *unstructured.Unstructured, floor string) bool {
	if floor == "" {
		return false
	}
	if live == nil {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(live.GetResourceVersion(), floor)
	return err != nil || order < 0
}
