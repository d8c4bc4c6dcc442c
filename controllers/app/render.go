package app

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/inputs"
	"github.com/kubeop/kubeop/controllers/app/source"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/app/wake"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/build"
	"github.com/kubeop/kubeop/delivery/build/scheduler"
	"github.com/kubeop/kubeop/delivery/decrypt"
	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/delivery/render/values"
	"github.com/kubeop/kubeop/delivery/render/workload"
)

// renderer renders sources to objects, and merges the values for charts.
type renderer struct {
	inputs  *inputs.Reader
	sources *source.Fetcher
	builder *build.Builder
	// hosting has the settings of the platform for rendering an Image App.
	hosting workload.Settings
	queue   *wake.Queue

	builds  scheduler.Builders[made]
	retried subject.Memory[retried]
}

// render renders the source to objects. For a Helm App it only merges the values: the release engine renders the chart's templates.
func (r *renderer) render(ctx context.Context, s *scope) error {
	if s.App.Spec.Helm != nil {
		return r.renderValues(ctx, s)
	}
	objects, err := r.objectsOf(ctx, s)
	if err != nil {
		return renderOutcome(err)
	}
	s.objects = objects
	return nil
}

func (r *renderer) objectsOf(ctx context.Context, s *scope) ([]*unstructured.Unstructured, error) {
	switch s.App.Spec.Type {
	case v1alpha1.AppImage:
		return r.buildImage(ctx, s)
	case v1alpha1.AppGit:
		return r.buildGit(ctx, s)
	case v1alpha1.AppRaw:
		return r.buildRaw(ctx, s)
	}
	return nil, fmt.Errorf("type %s has no objects of its own", s.App.Spec.Type)
}

func (r *renderer) renderValues(ctx context.Context, s *scope) error {
	lookup := func(kind, name string) (map[string][]byte, error) { return r.inputs.Data(ctx, s.Subject, kind, name) }
	values, err := valuesOf(s, lookup)
	if err == nil {
		s.values = values
		return nil
	}
	// A missing ConfigMap or Secret wakes the App when it is created.
	if errors.Is(err, render.ErrMissing) {
		return step.Fail(v1alpha1.ValuesFailedReason, err)
	}
	return step.Stop(v1alpha1.ValuesFailedReason, err)
}

func valuesOf(s *scope, lookup render.Lookup) (map[string]any, error) {
	if s.found.Folder == nil {
		return values.Merge(s.App.Spec.Helm, nil, lookup)
	}
	return values.Merge(s.App.Spec.Helm, s.found.Folder, lookup)
}

// renderOutcome separates errors that only a change of the source can solve from errors that may pass.
func renderOutcome(err error) error {
	switch {
	case step.Ended(err):
		return err
	case errors.Is(err, inputs.ErrNoKeys), errors.Is(err, decrypt.ErrService):
		return step.Fail(v1alpha1.DecryptionFailedReason, err)
	case errors.Is(err, build.ErrUnfit):
		return step.Fail(v1alpha1.RenderFailedReason, err)
	case errors.Is(err, inputs.ErrReading), errors.Is(err, render.ErrMissing):
		return step.Fail(v1alpha1.ValuesFailedReason, err)
	case errors.Is(err, decrypt.ErrKeys), errors.Is(err, decrypt.ErrDamaged):
		return step.Stop(v1alpha1.DecryptionFailedReason, err)
	case errors.As(err, new(*budget.Exceeded)):
		return step.Stop(v1alpha1.TooLargeReason, err)
	}
	return step.Stop(v1alpha1.RenderFailedReason, err)
}

// Forget drops the state of an App.
func (r *renderer) Forget(app *v1alpha1.App) {
	r.builds.Forget(string(app.UID))
	r.builder.Forget(client.ObjectKeyFromObject(app))
	r.retried.Forget(app)
}
