package health

import (
	"context"
	"fmt"

	"github.com/fluxcd/pkg/apis/kustomize"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/kubeop/kubeop/delivery/expr"
)

// Checks judge by expressions the kinds that an app names, and remember what they said of each object in its last version.
// They are for one look at a time. Nil knows no kind.
type Checks struct {
	kinds map[schema.GroupKind]*expr.Check
	said  map[Ref]said
}

// maxSaid is how many objects are remembered; of more each is read again.
const maxSaid = 5000

// said is a judgment of one version of an object.
type said struct {
	version string
	state   state
	why     string
}

// NewChecks compiles the expressions. Of several for one kind the last counts. An error names the place.
func NewChecks(specs []kustomize.CustomHealthCheck) (*Checks, error) {
	c := &Checks{kinds: map[schema.GroupKind]*expr.Check{}, said: map[Ref]said{}}
	for i := range specs {
		check, err := expr.NewCheck(&specs[i])
		if err != nil {
			return nil, fmt.Errorf("healthCheckExprs[%d].%w", i, err)
		}
		c.kinds[check.Kind] = check
	}
	return c, nil
}

func (c *Checks) of(kind schema.GroupKind) *expr.Check {
	if c == nil {
		return nil
	}
	return c.kinds[kind]
}

// last returns what was said of an object in the version that the watch shows, or in one since.
func (c *Checks) last(ref Ref, version string) (said, bool) {
	last, ok := c.said[ref.plain()]
	if !ok || version == "" {
		return said{}, false
	}
	order, err := resourceversion.CompareResourceVersion(last.version, version)
	return last, err == nil && order >= 0
}

// checked judges an object by the expressions of its kind. They may look at any field, and a watch does not hold all, so
// the object is read, once for each version that the watch shows; each time where none does.
func (e Explainer) checked(ctx context.Context, ref Ref, check *expr.Check, held *unstructured.Unstructured) (*finding, error) {
	version := ""
	if held != nil {
		version = held.GetResourceVersion()
	}
	if last, ok := e.Checks.last(ref, version); ok {
		return &finding{ref: ref, state: last.state, why: last.why}, nil
	}
	whole, err := e.read(ctx, ref)
	if whole == nil || err != nil {
		return e.gone(ref), err
	}
	now := said{version: whole.GetResourceVersion()}
	now.state, now.why = e.say(ctx, check, whole)
	if len(e.Checks.said) >= maxSaid {
		clear(e.Checks.said) // Objects come and go with commits.
	}
	e.Checks.said[ref.plain()] = now
	return &finding{ref: ref, state: now.state, why: now.why}, nil
}

// say words what the expressions say of an object.
func (e Explainer) say(ctx context.Context, check *expr.Check, whole *unstructured.Unstructured) (state, string) {
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
		return final, "failed, as healthCheckExprs say" + e.readyMessage(whole)
	}
	return waiting, "is in progress, as healthCheckExprs say" + e.readyMessage(whole)
}

// readyMessage is what the object's own condition Ready says, if anything.
func (e Explainer) readyMessage(o *unstructured.Unstructured) string {
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, item := range all {
		c, _ := item.(map[string]any)
		if message, _ := c["message"].(string); c["type"] == "Ready" && message != "" {
			return ": " + e.text(message)
		}
	}
	return ""
}

// plain is the object alone.
func (r Ref) plain() Ref { return Ref{Kind: r.Kind, Key: r.Key} }
