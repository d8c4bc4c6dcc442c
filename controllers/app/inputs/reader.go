// Package inputs reads the ConfigMaps and Secrets that Apps use, as the deployer of the App's project, once for each version that a watch
// shows. The values of Secrets are masked in the messages of the App that read them.
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
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/internal/sopskey"
)

// Secret and ConfigMap are the kinds that are read.
const (
	Secret    = "Secret"
	ConfigMap = "ConfigMap"
)

// ErrReading is wrapped by errors of the API server about a ConfigMap or Secret. Another try may succeed.
var ErrReading = errors.New("reading from the API server")

// Reader reads ConfigMaps and Secrets.
type Reader struct {
	// Version returns the resourceVersion of a ConfigMap, Secret or Flux source that the watch of its namespace's deployer last showed; ""
	// if there is no such object.
	Version func(ctx context.Context, namespace, kind, name string) (string, error)
	// Tenants reads Tenants, and TenantKeys the keys of those that have one.
	Tenants    client.Reader
	TenantKeys *sopskey.Keys

	contents contents
}

// Data returns the data of a ConfigMap or Secret of the App's namespace, or render.ErrMissing if it does not exist.
func (r *Reader) Data(ctx context.Context, s *subject.Subject, kind, name string) (map[string][]byte, error) {
	version, err := r.Version(ctx, s.App.Namespace, kind, name)
	if err != nil {
		return nil, err
	}
	if version == "" {
		return nil, missing(s, kind, name)
	}
	ref := references.Object{Namespace: s.App.Namespace, Kind: kind, Name: name}
	data, known := r.contents.get(ref, version)
	if !known {
		if data, err = read(ctx, s.Client, ref); err != nil {
			if apierrors.IsNotFound(err) {
				err = missing(s, kind, name)
			}
			return nil, err
		}
		r.contents.put(ref, version, data)
	}
	if kind == Secret {
		hide(s, data)
	}
	return data, nil
}

// Lookup returns Data as a function. All its errors except render.ErrMissing wrap ErrReading.
func (r *Reader) Lookup(ctx context.Context, s *subject.Subject) render.Lookup {
	return func(kind, name string) (map[string][]byte, error) {
		data, err := r.Data(ctx, s, kind, name)
		if err != nil && !errors.Is(err, render.ErrMissing) {
			err = fmt.Errorf("%w: %s %s: %w", ErrReading, kind, name, err)
		}
		return data, err
	}
}

// HideSecret reads a Secret of the App's namespace, without any cache, and masks its values in the App's messages. If the Secret does not
// exist, HideSecret does nothing.
func (r *Reader) HideSecret(ctx context.Context, s *subject.Subject, name string) error {
	data, err := read(ctx, s.Client, references.Object{Namespace: s.App.Namespace, Kind: Secret, Name: name})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Secret %s: %w", name, err)
	}
	hide(s, data)
	return nil
}

// Secrets returns a client that reads Secrets as the deployer, once for each version, because many Apps of a project may use the same
// credentials.
func (r *Reader) Secrets(s *subject.Subject) client.Reader { return secretReader{s.Client, r} }

type secretReader struct {
	client.Reader
	reader *Reader
}

// Get implements client.Reader. Objects of other kinds are read without the cache.
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

// hide masks the values of a Secret in the App's messages.
func hide(s *subject.Subject, data map[string][]byte) {
	for _, v := range data {
		s.Hide(Sensitive(v)...)
	}
}

// missing returns the render.ErrMissing of an object, and who creates it how: ConfigMaps come from Git, as other objects of apps do.
func missing(s *subject.Subject, kind, name string) error {
	if kind != Secret {
		return render.Missing(render.ErrMissing, "%v; an app of the project delivers it from Git", render.ErrMissing)
	}
	return render.Missing(render.ErrMissing, "%v; %s", render.ErrMissing, command.CreateSecret(s.App.Namespace, name))
}
