package health

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// finding is the state of one object, with the message about it.
type finding struct {
	ref    Ref
	object *unstructured.Unstructured // nil when there is nothing to explain
	state  state
	why    string
	pends  bool
	// runs: it is a Job that has not ended, and nothing else is known of it.
	runs bool
}

func (f *finding) line() string { return f.ref.String() + ": " + f.why }

// read returns the object from the API server, nil when there is none.
func (e Explainer) read(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(ref.Kind)
	err := e.Client.Get(ctx, ref.Key, o)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", ref, err)
	}
	return o, nil
}

// gone judges an object that does not exist. A Job with a time to live is deleted after it has ended.
func (e Explainer) gone(ref Ref) *finding {
	if ref.Kind.GroupKind() == jobs {
		return &finding{ref: ref}
	}
	return &finding{ref: ref, state: waiting, why: "was deleted" + e.AfterDeletion}
}

func (e Explainer) judged(ref Ref, live *unstructured.Unstructured) (*finding, error) {
	judgment, err := judge(live)
	if err != nil {
		return nil, fmt.Errorf("judging %s: %w", ref, err)
	}
	f := &finding{ref: ref, state: judgment.state, why: e.text(judgment.why), runs: judgment.runs}
	if judgment.settled {
		f.object = live
	}
	return f, nil
}

// list lists objects as the deployer. If the deployer lacks the right, the list stays empty.
func (e Explainer) list(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	if err := e.Client.List(ctx, into, options...); err != nil && !apierrors.IsForbidden(err) {
		kind := strings.TrimPrefix(fmt.Sprintf("%T", into), "*v1.")
		return fmt.Errorf("listing its %s: %w", strings.ToLower(strings.TrimSuffix(kind, "List"))+"s", err)
	}
	return nil
}
