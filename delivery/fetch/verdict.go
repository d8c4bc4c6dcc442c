package fetch

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/signature"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

// Verdict returns the reason that stands in a condition for an error of this package, and whether it is final: only a
// change of the source, or of what names it, can help.
func Verdict(err error) (reason string, final bool) {
	switch {
	case errors.Is(err, failure.ErrBusy):
		return v1alpha1.WaitingForTurnReason, false
	case errors.Is(err, failure.ErrNotReady):
		return v1alpha1.DependencyNotReadyReason, false
	case errors.Is(err, failure.ErrAuthentication):
		return v1alpha1.AuthenticationFailedReason, true
	case errors.Is(err, failure.ErrNotFound):
		return v1alpha1.SourceNotFoundReason, true
	case errors.Is(err, signature.Err):
		return v1alpha1.VerificationFailedReason, true
	case errors.Is(err, failure.ErrDigest):
		return v1alpha1.DigestMismatchReason, true
	case errors.Is(err, failure.ErrChartTooLarge):
		return v1alpha1.TooLargeReason, true
	case errors.Is(err, failure.ErrInvalid), errors.Is(err, failure.ErrTooLarge):
		return v1alpha1.InvalidSourceReason, true
	}
	return v1alpha1.FetchFailedReason, false
}

// ReadAuth reads the credentials a secretRef names, which may be nil. A Secret that does not exist is a transient error:
// it may be created a moment after what names it.
func ReadAuth(ctx context.Context, reader client.Reader, namespace string, ref *v1alpha1.LocalSecretReference) (transport.Auth, error) {
	if ref == nil {
		return transport.Auth{}, nil
	}
	secret := &corev1.Secret{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, secret)
	if apierrors.IsNotFound(err) {
		return transport.Auth{}, fmt.Errorf("secret %s/%s of secretRef does not exist: create it", namespace, ref.Name)
	}
	if err != nil {
		return transport.Auth{}, fmt.Errorf("reading secret %s/%s: %w", namespace, ref.Name, err)
	}
	auth, err := transport.AuthFromSecret(secret.Data)
	if err != nil {
		return transport.Auth{}, fmt.Errorf("secret %s/%s of secretRef: %w", namespace, ref.Name, err)
	}
	auth.Secret = namespace + "/" + ref.Name
	return auth, nil
}
