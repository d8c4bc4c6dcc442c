package app

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/expr"
	"github.com/kubeop/kubeop/delivery/health"
)

// question asks whether an object that is neither an App nor a Project is ready.
type question struct {
	kind schema.GroupVersionKind
	key  client.ObjectKey
	// ready is the compiled text; nil where kstatus decides.
	ready *expr.Expr
	text  string
}

func (q question) String() string { return q.kind.GroupKind().String() + " " + q.key.String() }

// id tells the question from every other of the app.
func (q question) id() string { return q.String() + " " + q.text }

// answer is what was found about an object in one of its versions.
type answer struct {
	version string
	standing
}

// other judges an object by what the watch holds of it; what that does not hold is read with the deployer of the namespace
// that it is in, once for each version the watch shows.
func (r *Reconciler) other(ctx context.Context, s *scope, q question) (standing, error) {
	held, known, err := r.Watch.Object(ctx, q.kind, q.key)
	if err != nil {
		return standing{}, err
	}
	if !known || held == nil {
		// Nobody tells of it: it carries no tenant's label, or is not there.
		now, err := r.inquire(ctx, s, q)
		now.seen = false
		return now, err
	}
	if q.ready == nil {
		return s.judged(held), nil
	}
	version := held.GetResourceVersion()
	if last, ok := s.memory.answers[q.id()]; ok && last.version == version {
		return last.standing, nil
	}
	now, err := r.inquire(ctx, s, q)
	if err != nil {
		return standing{}, err
	}
	now.seen = true
	if s.memory.answers == nil {
		s.memory.answers = map[string]answer{}
	}
	s.memory.answers[q.id()] = answer{version, now}
	return now, nil
}

// inquire reads the object and judges it.
func (r *Reconciler) inquire(ctx context.Context, s *scope, q question) (standing, error) {
	reader, err := r.Clients.As(q.key.Namespace)
	if err != nil {
		return standing{}, err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(q.kind)
	err = reader.Get(ctx, q.key, object)
	switch {
	case apierrors.IsNotFound(err):
		return standing{lacks: ", which does not exist"}, nil
	case err != nil:
		return standing{}, fmt.Errorf("reading %s: %w", q, err)
	case q.ready == nil:
		return s.judged(object), nil
	}
	return r.judge(ctx, s, q.ready, object)
}

// judged judges an object by kstatus.
func (s *scope) judged(object *unstructured.Unstructured) standing {
	lacks, err := health.Lacks(object)
	if err != nil {
		lacks = "judging it: " + err.Error()
	}
	if lacks != "" {
		lacks = ": " + s.quoted(lacks)
	}
	return standing{lacks: lacks, seen: true}
}

// judge has an expression judge an object.
func (r *Reconciler) judge(ctx context.Context, s *scope, ready *expr.Expr, object *unstructured.Unstructured) (standing, error) {
	self, err := unstructuredOf(s.app)
	if err != nil {
		return standing{}, err
	}
	delete(self.Object, "status") // It changes with what is found here.
	is, err := ready.True(ctx, map[string]any{"dep": object.Object, "self": self.Object})
	switch {
	case errors.Is(err, expr.ErrMissing):
		return standing{lacks: ": readyExpr is not true yet: " + s.quoted(err.Error())}, nil
	case err != nil:
		return standing{lacks: ": readyExpr cannot be evaluated: " + s.quoted(err.Error())}, nil
	case !is:
		return standing{lacks: ": readyExpr is not true yet"}, nil
	}
	return standing{}, nil
}

func unstructuredOf(o client.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", o.GetName(), err)
	}
	object := &unstructured.Unstructured{Object: content}
	kind := v1alpha1.AppKind
	if _, ok := o.(*v1alpha1.Project); ok {
		kind = v1alpha1.ProjectKind
	}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	return object, nil
}
