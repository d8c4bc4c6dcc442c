// Package inputs reads the ConfigMaps and Secrets that Apps are made from, as the deployer of the App's project, each once for each version
// that a watch shows. What a Secret holds is hidden in the messages of the App that read it.
package inputs

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/controllers/app/references"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/delivery/render"
)

// Secret and ConfigMap are the kinds that are read.
const (
	Secret    = "Secret"
	ConfigMap = "ConfigMap"
)

// ErrReading is wrapped by errors of the API server about a ConfigMap or Secret; another try may find it.
var ErrReading = errors.New("reading from the API server")

// Reader reads ConfigMaps and Secrets.
type Reader struct {
	// Version returns the resourceVersion of a ConfigMap, Secret or Flux source as the deployer of its namespace last saw it, "" when there
	// is none.
	Version func(ctx context.Context, namespace, kind, name string) (string, error)

	contents contents
}

// Data returns what a ConfigMap or Secret of the App's namespace holds, render.ErrMissing when there is none.
func (r *Reader) Data(ctx context.Context, s *subject.Subject, kind, name string) (map[string][]byte, error) {
	version, err := r.Version(ctx, s.App.Namespace, kind, name)
	if err != nil {
		return nil, err
	}
	if version == "" {
		return nil, render.ErrMissing
	}
	ref := references.Object{Namespace: s.App.Namespace, Kind: kind, Name: name}
	data, known := r.contents.get(ref, version)
	if !known {
		if data, err = read(ctx, s.Client, ref); err != nil {
			return nil, missing(err)
		}
		r.contents.put(ref, version, data)
	}
	if kind == Secret {
		hide(s, data)
	}
	return data, nil
}

// Lookup returns a function that is Data; what is wrong beside a missing object is an ErrReading.
func (r *Reader) Lookup(ctx context.Context, s *subject.Subject) render.Lookup {
	return func(kind, name string) (map[string][]byte, error) {
		data, err := r.Data(ctx, s, kind, name)
		if err != nil && !errors.Is(err, render.ErrMissing) {
			err = fmt.Errorf("%w: %s %s: %w", ErrReading, kind, name, err)
		}
		return data, err
	}
}

// HideSecret reads a Secret of the App's namespace past every cache, so that none of it is shown in a message. One that does not exist hides
// nothing.
func (r *Reader) HideSecret(ctx context.Context, s *subject.Subject, name string) error {
	data, err := read(ctx, s.Client, references.Object{Namespace: s.App.Namespace, Kind: Secret, Name: name})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Secret %s: %w", name, err)
	}
	hide(s, data)
	return nil
}

// Secrets returns a client that reads Secrets as the deployer, each once for each version: all Apps of a project may log in with the same.
func (r *Reader) Secrets(s *subject.Subject) client.Reader { return secretReader{s.Client, r} }

type secretReader struct {
	client.Reader
	reader *Reader
}

// Get implements client.Reader. What is no Secret is read from the API server.
func (s secretReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	secret, ok := o.(*corev1.Secret)
	if !ok {
		return s.Reader.Get(ctx, key, o, opts...)
	}
	version, err := s.reader.Version(ctx, key.Namespace, Secret, key.Name)
	if err != nil {
		return err
	}
	ref := references.Object{Namespace: key.Namespace, Kind: Secret, Name: key.Name}
	data, known := s.reader.contents.get(ref, version)
	if version == "" || !known {
		if err := s.Reader.Get(ctx, key, secret, opts...); err != nil {
			return err
		}
		s.reader.contents.put(ref, secret.ResourceVersion, secret.Data)
		return nil
	}
	secret.Namespace, secret.Name, secret.ResourceVersion, secret.Data = key.Namespace, key.Name, version, data
	return nil
}

func read(ctx context.Context, from client.Reader, ref references.Object) (map[string][]byte, error) {
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	if ref.Kind == Secret {
		secret := &corev1.Secret{}
		err := from.Get(ctx, key, secret)
		return secret.Data, err
	}
	config := &corev1.ConfigMap{}
	err := from.Get(ctx, key, config)
	data := maps.Clone(config.BinaryData)
	if data == nil {
		data = map[string][]byte{}
	}
	for k, v := range config.Data {
		data[k] = []byte(v)
	}
	return data, err
}

// hide hides what a Secret holds in messages of the App.
func hide(s *subject.Subject, data map[string][]byte) {
	for _, v := range data {
		s.Hide(Sensitive(v)...)
	}
}

func missing(err error) error {
	if apierrors.IsNotFound(err) {
		return render.ErrMissing
	}
	return err
}
