package repository

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
)

// secretsOf returns the names of the Secrets that a repository names.
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

// secretVersions returns the versions of a repository's Secrets, to notice changes. A Secret that cannot be read has no version; the fetch
// reads it, too, and reports the error.
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

// hookNote returns the condition HookClosed. The Secret is read only when a push is reported, so until then it is not known whether it has
// a key.
func (r *Reconciler) hookNote(ctx context.Context, repository *v1alpha1.Repository) step.Note {
	note := step.Note{Condition: v1alpha1.HookClosedCondition}
	ref := repository.Spec.HookSecretRef
	if ref == nil || !apierrors.IsNotFound(r.Secrets.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: ref.Name}, secretMetadata())) {
		return note
	}
	note.Status, note.Reason, note.Event = metav1.ConditionTrue, v1alpha1.SecretMissingReason, corev1.EventTypeWarning
	note.Message = fmt.Sprintf("there is no Secret %s/%s, which spec.hookSecretRef names: reports of pushes are refused, and pushes are found by polling only, every %s. Make it with: "+
		"kubectl create secret generic %s -n %s --from-literal=token=<the key that the Git host signs with>",
		r.Namespace, ref.Name, repository.Spec.Every(), ref.Name, r.Namespace)
	return note
}

// naming maps a Secret of the operator's namespace to the Repositories that name it.
func (r *Reconciler) naming(ctx context.Context, secret *metav1.PartialObjectMetadata) []reconcile.Request {
	r.credentials.drop(secret.Name)
	of := &v1alpha1.RepositoryList{}
	if secret.Namespace != r.Namespace || r.Client.List(ctx, of, client.MatchingFields{bySecret: secret.Name}, client.UnsafeDisableDeepCopy) != nil {
		return nil // They will be fetched when their interval is over.
	}
	var requests []reconcile.Request
	for i := range of.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&of.Items[i])})
	}
	return requests
}
