package repository

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/credentials"
	"github.com/kubeop/kubeop/controllers/repository/upstream"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

// secretVersions returns the versions of a repository's Secrets, to notice changes. A Secret that cannot be read has no version; the fetch
// reads it, too, and reports the error.
func (r *Reconciler) secretVersions(repository *v1alpha1.Repository) (versions string) {
	for _, name := range upstream.Secrets(repository) {
		secret := credentials.MetadataOnly()
		if err := r.Secrets.Get(context.Background(), client.ObjectKey{Namespace: r.Namespace, Name: name}, secret); err == nil {
			versions += " " + secret.ResourceVersion
		}
	}
	return versions
}

// names reports whether a Repository names a Secret.
func (r *Reconciler) names(ctx context.Context, secret string) bool {
	of := &v1alpha1.RepositoryList{}
	return r.Client.List(ctx, of, client.MatchingFields{bySecret: secret}, client.UnsafeDisableDeepCopy) == nil && len(of.Items) > 0
}

// naming maps a Secret of the operator's namespace to the Repositories that name it.
func (r *Reconciler) naming(ctx context.Context, secret client.Object) (requests []reconcile.Request) {
	r.credentials.Drop(secret.GetName())
	of := &v1alpha1.RepositoryList{}
	if secret.GetNamespace() != r.Namespace || r.Client.List(ctx, of, client.MatchingFields{bySecret: secret.GetName()}, client.UnsafeDisableDeepCopy) != nil {
		return nil // They will be fetched when their interval is over.
	}
	for i := range of.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&of.Items[i])})
	}
	return requests
}

// APIAuth reads the credentials with which the API of a repository's Git host is called.
func (r *Reconciler) APIAuth(ctx context.Context, repository *v1alpha1.Repository) (transport.Auth, error) {
	ref := repository.Spec.SecretRef
	if own := repository.Spec.CommitStatus; own != nil && own.SecretRef != nil {
		ref = own.SecretRef
	}
	return transport.ReadAuth(ctx, &r.credentials, r.Namespace, ref)
}

// Secret reads the data of a Secret in the operator's namespace, each version once.
func (r *Reconciler) Secret(ctx context.Context, name string) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	err := r.credentials.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("secret %s/%s does not exist: create it; %s", r.Namespace, name, command.CreateSecret(r.Namespace, name, "address", "token"))
	}
	if err != nil {
		return nil, fmt.Errorf("reading secret %s/%s: %w", r.Namespace, name, err)
	}
	return secret.Data, nil
}
