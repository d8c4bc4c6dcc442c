package registry

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/credentials"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/pullsecret"
)

// bySecret is the cache's index of Registries by the Secret that they name.
const bySecret = "secret"

// Secrets reads the Secrets that Registries name, in the operator's namespace. It reads each version of a Secret once, however many projects
// have a copy.
type Secrets struct {
	client    client.Client
	namespace string
	cache     credentials.Cache
}

// NewSecrets returns Secrets of a namespace. cached reads kubeop's kinds, direct reads Secrets without a cache, and metadata has the
// metadata of all Secrets of the namespace.
func NewSecrets(cached client.Client, direct, metadata client.Reader, namespace string, c clock.PassiveClock) *Secrets {
	s := &Secrets{client: cached, namespace: namespace}
	s.cache = credentials.Cache{Reader: direct, Metadata: metadata, Named: s.named, Clock: c}
	return s
}

// Content returns the data of a pull Secret with the credentials of the registry's host, see pullsecret.Content. An error that only people
// can solve ends the step, with the reason SecretMissing or SecretInvalid.
func (s *Secrets) Content(ctx context.Context, registry *v1alpha1.Registry) (map[string][]byte, error) {
	name, secret, field := registry.Spec.SecretRef.Name, &corev1.Secret{}, fieldOf(registry)
	err := s.cache.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, step.Stop(v1alpha1.SecretMissingReason, fmt.Errorf("secret %s/%s of %s does not exist: create it, or name another one in Git; copies in projects stay as they are; %s",
			s.namespace, name, field, command.CreateSecret(s.namespace, name, "username", "password")))
	case err != nil:
		return nil, fmt.Errorf("reading secret %s/%s of %s: %w", s.namespace, name, field, err)
	}
	content, err := pullsecret.Content(s.namespace, name, registry.Spec.Host, secret.Data)
	if errors.Is(err, failure.ErrInvalid) {
		return nil, step.Stop(v1alpha1.SecretInvalidReason, fmt.Errorf("secret %s/%s of %s cannot be used, and copies in projects stay as they are: %w", s.namespace, name, field, err))
	}
	return content, err
}

// fieldOf names the field that names the Secret, with its place in the platform repository if the Registry comes from there.
func fieldOf(registry *v1alpha1.Registry) string {
	if at := registry.Annotations[v1alpha1.SecretRefAnnotation]; at != "" {
		return "spec.secretRef, at " + at + " of the platform repository,"
	}
	return "spec.secretRef"
}

// named reports whether a Registry names a Secret.
func (s *Secrets) named(ctx context.Context, secret string) bool {
	return len(s.naming(ctx, secret)) > 0
}

// naming returns the Registries that name a Secret. If listing them fails, the error is logged, and they are reconciled at their interval.
func (s *Secrets) naming(ctx context.Context, secret string) []v1alpha1.Registry {
	of := &v1alpha1.RegistryList{}
	if err := s.client.List(ctx, of, client.MatchingFields{bySecret: secret}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the Registries that name a Secret; they are reconciled at their interval", "secret", secret)
	}
	return of.Items
}

// Changed returns the Registries that name a Secret of the operator's namespace, which changed.
func (s *Secrets) Changed(ctx context.Context, secret client.Object) []v1alpha1.Registry {
	s.cache.Drop(secret.GetName())
	return s.naming(ctx, secret.GetName())
}

// changed is Changed for the controller of Registries.
func (s *Secrets) changed(ctx context.Context, secret client.Object) (requests []reconcile.Request) {
	for _, registry := range s.Changed(ctx, secret) {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Name: registry.Name}})
	}
	return requests
}
