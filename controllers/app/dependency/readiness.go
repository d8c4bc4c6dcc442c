package dependency

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
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/delivery/expr"
	"github.com/kubeop/kubeop/delivery/health"
)

// question asks whether an object that is neither an App nor a Project is ready.
type question struct {
	kind schema.GroupVersionKind
	key  client.ObjectKey
	// ready is the compiled text; nil if kstatus decides.
	ready *expr.Expr
	text  string
}

func (q question) String() string { return q.kind.GroupKind().String() + " " + q.key.String() }

// id identifies the question among all questions of the App.
func (q question) id() string { return q.String() + " " + q.text }

// answer is the readiness of one version of an object.
type answer struct {
	version string
	readiness
}

// checkOther checks an object with kstatus from the watch's cache. If an expression needs the whole object, checkOther reads it as the
// deployer of the object's namespace, once for each version that the watch shows. It also reads objects that the watch does not have.
func (c *Checker) checkOther(ctx context.Context, s *subject.Subject, q question) (readiness, error) {
	held, known, err := c.Watch.Object(ctx, q.kind, q.key)
	if err != nil {
		return readiness{}, err
	}
	if !known || held == nil {
		// No watch reports the object: it has no tenant label, or does not exist.
		now, err := c.read(ctx, s, q)
		now.watched = false
		return now, err
	}
	if q.ready == nil {
		return byStatus(s, held), nil
	}
	version, memory := held.GetResourceVersion(), c.compiled.Get(s.App)
	if last, ok := memory.answers[q.id()]; ok && last.version == version {
		return last.readiness, nil
	}
	now, err := c.read(ctx, s, q)
	if err != nil {
		return readiness{}, err
	}
	now.watched = true
	if memory.answers == nil {
		memory.answers = map[string]answer{}
	}
	memory.answers[q.id()] = answer{version, now}
	return now, nil
}

// read reads the object from the API server and checks it.
func (c *Checker) read(ctx context.Context, s *subject.Subject, q question) (readiness, error) {
	reader, err := c.Clients.As(q.key.Namespace)
	if err != nil {
		return readiness{}, err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(q.kind)
	err = reader.Get(ctx, q.key, object)
	switch {
	case apierrors.IsNotFound(err):
		return readiness{lacks: ", which does not exist: add it, or correct dependsOn in app.yaml"}, nil
	case err != nil:
		return readiness{}, fmt.Errorf("reading %s: %w", q, err)
	case q.ready == nil:
		return byStatus(s, object), nil
	}
	return evaluate(ctx, s, q.ready, object)
}

// byStatus checks an object with kstatus.
func byStatus(s *subject.Subject, object *unstructured.Unstructured) readiness {
	lacks, _, err := health.WhyUnhealthy(object)
	if err != nil {
		lacks = "judging it: " + err.Error()
	}
	if lacks != "" {
		lacks = ": " + s.Quote(lacks)
	}
	return readiness{lacks: lacks, watched: true}
}

// evaluate checks an object with an expression.
func evaluate(ctx context.Context, s *subject.Subject, ready *expr.Expr, object *unstructured.Unstructured) (readiness, error) {
	self, err := unstructuredOf(s.App)
	if err != nil {
		return readiness{}, err
	}
	delete(self.Object, "status") // The status changes with the result of this check.
	is, err := ready.True(ctx, map[string]any{"dep": object.Object, "self": self.Object})
	switch {
	case errors.Is(err, expr.ErrMissing):
		return readiness{lacks: ": readyExpr is not true yet: " + s.Quote(err.Error())}, nil
	case err != nil:
		return readiness{lacks: ": readyExpr cannot be evaluated: " + s.Quote(err.Error())}, nil
	case !is:
		return readiness{lacks: ": readyExpr is not true yet"}, nil
	}
	return readiness{}, nil
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
