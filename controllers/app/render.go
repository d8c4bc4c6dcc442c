package app

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/delivery/render/values"
	"github.com/kubeop/kubeop/delivery/render/workload"
)

// render makes objects of the source; of a Helm app it makes the values, the chart's templates being rendered by the
// release.
func (r *Reconciler) render(ctx context.Context, s *scope) error {
	if s.app.Spec.Helm != nil {
		return r.renderValues(ctx, s)
	}
	objects, err := r.objectsOf(ctx, s)
	if err != nil {
		return renderOutcome(err)
	}
	s.objects = objects
	return nil
}

func (r *Reconciler) objectsOf(ctx context.Context, s *scope) ([]*unstructured.Unstructured, error) {
	switch s.app.Spec.Type {
	case v1alpha1.AppImage:
		return workload.Render(s.app, r.imageSettings(s))
	case v1alpha1.AppGit:
		return r.buildGit(ctx, s)
	case v1alpha1.AppRaw:
		return r.buildRaw(ctx, s)
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
	// A missing ConfigMap or Secret may be on its way; it wakes the app when it is there.
	if errors.Is(err, render.ErrMissing) {
		return step.Fail(v1alpha1.ValuesFailedReason, err)
	}
	return step.Stop(v1alpha1.ValuesFailedReason, err)
}

func valuesOf(s *scope, lookup render.Lookup) (map[string]any, error) {
	if s.folder == nil {
		return values.Merge(s.app.Spec.Helm, nil, lookup)
	}
	return values.Merge(s.app.Spec.Helm, s.folder, lookup)
}

// data returns what a ConfigMap or Secret of the app's namespace holds. It is read as the deployer, once for each version
// that the watch shows.
func (r *Reconciler) data(ctx context.Context, s *scope, kind, name string) (map[string][]byte, error) {
	version, err := r.Version(ctx, s.app.Namespace, kind, name)
	if err != nil {
		return nil, err
	}
	if version == "" {
		return nil, render.ErrMissing
	}
	ref := reference{namespace: s.app.Namespace, kind: kind, name: name}
	data, known := r.contents.get(ref, version)
	if !known {
		if data, err = r.read(ctx, s, ref); err != nil {
			return nil, missing(err)
		}
		r.contents.put(ref, version, data)
	}
	if kind == "Secret" {
		for _, v := range data {
			s.sensitive = append(s.sensitive, sensitiveIn(v)...)
		}
	}
	return data, nil
}

func (r *Reconciler) read(ctx context.Context, s *scope, ref reference) (map[string][]byte, error) {
	key := client.ObjectKey{Namespace: ref.namespace, Name: ref.name}
	if ref.kind == "Secret" {
		secret := &corev1.Secret{}
		err := s.client.Get(ctx, key, secret)
		return secret.Data, err
	}
	config := &corev1.ConfigMap{}
	err := s.client.Get(ctx, key, config)
	data := maps.Clone(config.BinaryData)
	if data == nil {
		data = map[string][]byte{}
	}
	for k, v := range config.Data {
		data[k] = []byte(v)
	}
	return data, err
}

func missing(err error) error {
	if apierrors.IsNotFound(err) {
		return render.ErrMissing
	}
	return err
}
