package repository

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// secretMetadata is a Secret without what it holds.
func secretMetadata() *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return o
}

// secretsOf are the names of the Secrets that a repository names.
func secretsOf(repository *v1alpha1.Repository) []string {
	refs := []*v1alpha1.LocalSecretReference{repository.Spec.SecretRef, repository.Spec.HookSecretRef}
	if repository.Spec.Verify != nil {
		refs = append(refs, &repository.Spec.Verify.SecretRef)
	}
	var names []string
	for _, ref := range refs {
		if ref != nil {
			names = append(names, ref.Name)
		}
	}
	return names
}

// secretVersions tell the Secrets of a repository from what they were. One that cannot be looked up has none: the fetch, which reads
// it, says why.
func (r *Reconciler) secretVersions(repository *v1alpha1.Repository) (versions string) {
	for _, name := range secretsOf(repository) {
		secret := secretMetadata()
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

// naming maps a Secret of the operator's namespace to the repositories that name it.
func (r *Reconciler) naming(ctx context.Context, secret *metav1.PartialObjectMetadata) []reconcile.Request {
	r.credentials.drop(secret.Name)
	of := &v1alpha1.RepositoryList{}
	if secret.Namespace != r.Namespace || r.Client.List(ctx, of, client.MatchingFields{bySecret: secret.Name}, client.UnsafeDisableDeepCopy) != nil {
		return nil // They ask when their interval is over.
	}
	var requests []reconcile.Request
	for i := range of.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&of.Items[i])})
	}
	return requests
}
