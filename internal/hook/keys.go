package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// tokenKey is the Secret's key that holds the signing key.
const tokenKey = "token"

// helmRecords are the Secrets with Helm's records of this installation. They are large and hold no signing key.
const helmRecords = "helm.sh/release.v1"

// Keys is a cache of the Secrets of a namespace, for Server.Keys. It keeps only their name, version and key "token".
type Keys struct{ cache.Cache }

// NewKeys returns Keys that have not been started.
func NewKeys(config *rest.Config, shared *http.Client, mapper meta.RESTMapper, namespace string) (*Keys, error) {
	keys, err := cache.New(config, cache.Options{
		HTTPClient: shared, Mapper: mapper,
		ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {
			Namespaces: map[string]cache.Config{namespace: {FieldSelector: fields.OneTermNotEqualSelector("type", helmRecords)}},
			Transform:  onlyKey,
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache of the push hook's keys: %w", err)
	}
	// The cache watches kinds that were requested before its start.
	if _, err := keys.GetInformer(context.Background(), &corev1.Secret{}, cache.BlockUntilSynced(false)); err != nil {
		return nil, fmt.Errorf("watching the push hook's keys: %w", err)
	}
	return &Keys{keys}, nil
}

func onlyKey(object any) (any, error) {
	secret, ok := object.(*corev1.Secret)
	if !ok {
		return object, nil
	}
	slim := &corev1.Secret{TypeMeta: secret.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: secret.Namespace, Name: secret.Name, UID: secret.UID, ResourceVersion: secret.ResourceVersion,
	}}
	if token, ok := secret.Data[tokenKey]; ok {
		slim.Data = map[string][]byte{tokenKey: bytes.TrimRight(token, "\r\n")} // A file ends in a line break, and the key at the Git host does not.
	}
	return slim, nil
}

// key returns the signing key of a repository's calls. It reads a watched cache and makes no API request.
func (s *Server) key(ctx context.Context, name string) ([]byte, error) {
	repository := &v1alpha1.Repository{}
	if err := s.Client.Get(ctx, client.ObjectKey{Name: name}, repository); err != nil {
		return nil, fmt.Errorf("reading repository %s: %w", name, err)
	}
	ref := repository.Spec.HookSecretRef
	if ref == nil {
		return nil, errors.New("the repository has no hookSecretRef")
	}
	secret := &corev1.Secret{}
	if err := s.Keys.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: ref.Name}, secret); err != nil {
		return nil, fmt.Errorf("reading secret %s/%s: %w", s.Namespace, ref.Name, err)
	}
	if len(secret.Data[tokenKey]) == 0 {
		return nil, fmt.Errorf("secret %s/%s has no key %s", s.Namespace, ref.Name, tokenKey)
	}
	return secret.Data[tokenKey], nil
}
