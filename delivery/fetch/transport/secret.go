package transport

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/command"
)

// ReadAuth reads the credentials that a secretRef names; it may be nil. A missing Secret is a transient error, because it may be created
// just after the object that names it.
func ReadAuth(ctx context.Context, reader client.Reader, namespace string, ref *v1alpha1.LocalSecretReference) (Auth, error) {
	if ref == nil {
		return Auth{}, nil
	}
	secret := &corev1.Secret{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, secret)
	if apierrors.IsNotFound(err) {
		return Auth{}, fmt.Errorf("secret %s/%s of secretRef does not exist: create it; %s", namespace, ref.Name,
			command.CreateSecret(namespace, ref.Name, "username", "password"))
	}
	if err != nil {
		return Auth{}, fmt.Errorf("reading secret %s/%s: %w", namespace, ref.Name, err)
	}
	auth, err := AuthFromSecret(namespace, ref.Name, secret.Data)
	if err != nil {
		return Auth{}, fmt.Errorf("secret %s/%s of secretRef: %w", namespace, ref.Name, err)
	}
	return auth, nil
}
