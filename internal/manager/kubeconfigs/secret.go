package kubeconfigs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/internal/store"
)

// makeSecret makes the Secret that the tokens of a kubeconfig are bound to, and returns its UID.
func (o *Operations) makeSecret(ctx context.Context, k store.Kubeconfig) (string, error) {
	made, err := o.Cluster.Secrets(namespaceOf(k)).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: secretPrefix + k.ID}, Type: secretType, Immutable: new(true),
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("making the Secret that revokes a kubeconfig: %w", err)
	}
	return string(made.UID), nil
}

// revoke deletes that Secret, and with it the tokens. One of its name with another UID is none of its. In the namespace of a project that is gone, or is being deleted, the
// manager has no rights once the operator has removed the accounts, with which all tokens end.
func (o *Operations) revoke(ctx context.Context, k store.Kubeconfig) error {
	options := metav1.DeleteOptions{}
	if k.SecretUID != "" {
		uid := types.UID(k.SecretUID)
		options.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	err := o.Cluster.Secrets(namespaceOf(k)).Delete(ctx, secretPrefix+k.ID, options)
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if apierrors.IsForbidden(err) {
		projects, unknown := o.Projects(ctx, k.Tenant)
		if unknown == nil && !slices.Contains(projects, k.Project) {
			return nil
		}
	}
	return fmt.Errorf("deleting the Secret of kubeconfig %s of %s/%s: %w", k.ID, k.Tenant, k.Project, err)
}

// isGone reports whether a token is refused because the Secret that it would be bound to is not there any more, or another one is.
func isGone(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) || status.Status().Details == nil {
		return false
	}
	return strings.HasPrefix(strings.ToLower(status.Status().Details.Kind), "secret")
}
