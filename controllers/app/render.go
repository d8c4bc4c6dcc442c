package app

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/render"
)

// render makes objects of the source; of a Helm app it makes the values, the chart's templates being rendered by the
// release.
func (r *Reconciler) render(ctx context.Context, s *scope) error {
	if s.app.Spec.Helm != nil {
		return r.renderValues(ctx, s)
	}
	objects, err := objectsOf(s)
	if err != nil {
		return step.Stop(v1alpha1.RenderFailedReason, err)
	}
	s.objects = objects
	return nil
}

func objectsOf(s *scope) ([]*unstructured.Unstructured, error) {
	switch s.app.Spec.Type {
	case v1alpha1.AppImage:
		return render.Image(s.app)
	case v1alpha1.AppGit:
		return render.Dir(s.commit.Root, s.app.Spec.Git.Path)
	case v1alpha1.AppRaw:
		if s.folder == nil {
			return render.Raw(s.app, nil)
		}
		return render.Raw(s.app, s.folder)
	}
	return nil, fmt.Errorf("type %s has no objects of its own", s.app.Spec.Type)
}

func (r *Reconciler) renderValues(ctx context.Context, s *scope) error {
	lookup := func(kind, name string) (map[string][]byte, error) { return r.data(ctx, s, kind, name) }
	values, err := valuesOf(s, lookup)
	if err == nil {
		s.values = values
		return nil
	}
	// A missing ConfigMap or Secret may be on its way, and creating it causes no event here.
	if errors.Is(err, render.ErrMissing) {
		return step.Fail(v1alpha1.ValuesFailedReason, err)
	}
	return step.Stop(v1alpha1.ValuesFailedReason, err)
}

func valuesOf(s *scope, lookup render.Lookup) (map[string]any, error) {
	if s.folder == nil {
		return render.Values(s.app.Spec.Helm, nil, lookup)
	}
	return render.Values(s.app.Spec.Helm, s.folder, lookup)
}

// data reads a ConfigMap or Secret of the app's namespace as the deployer.
func (r *Reconciler) data(ctx context.Context, s *scope, kind, name string) (map[string][]byte, error) {
	key := client.ObjectKey{Namespace: s.app.Namespace, Name: name}
	if kind == "Secret" {
		secret := &corev1.Secret{}
		err := s.client.Get(ctx, key, secret)
		for _, v := range secret.Data {
			s.sensitive = append(s.sensitive, sensitiveIn(v)...)
		}
		return secret.Data, missing(err)
	}
	config := &corev1.ConfigMap{}
	if err := s.client.Get(ctx, key, config); err != nil {
		return nil, missing(err)
	}
	data := map[string][]byte{}
	for k, v := range config.Data {
		data[k] = []byte(v)
	}
	for k, v := range config.BinaryData {
		data[k] = v
	}
	return data, nil
}

func missing(err error) error {
	if apierrors.IsNotFound(err) {
		return render.ErrMissing
	}
	return err
}
