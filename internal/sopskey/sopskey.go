// Package sopskey keeps the age keys of tenants whose spec.sops is Generated, each in a Secret of the operator's namespace. No tenant can read it
// there, whatever rights it has. Back the Secrets up: files that were encrypted for a key that is lost cannot be decrypted.
package sopskey

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// field is the key of the Secret's data. It is one that a Secret of spec.decryption.secretRef may have, too.
const field = "age.agekey"

// ErrUnusable is wrapped by errors that only people can solve: the Secret is gone, is another tenant's, or holds another key than before.
var ErrUnusable = errors.New("the tenant's key cannot be used")

// Keys reads and makes keys. It is safe for concurrent use.
type Keys struct {
	// Client must not read from a cache.
	Client client.Client
	// Namespace is the operator's.
	Namespace string
	// Identity returns a digest of a tenant's lasting identity, which stays the same when a restored backup changes its UID; "" if there is none.
	Identity func(*v1alpha1.Tenant) string

	// known holds the data of Secrets by the public key. They never change.
	known sync.Map
}

// Name returns the name of the Secret with a tenant's key.
func Name(tenant string) string { return "kubeop-sops-" + tenant }

// Ensure returns the public key of a tenant. It makes a key if the tenant never had one: what status.sops names was used, and is never replaced.
func (k *Keys) Ensure(ctx context.Context, tenant *v1alpha1.Tenant) (recipient string, err error) {
	secret, err := k.read(ctx, tenant)
	if apierrors.IsNotFound(err) && tenant.Status.Sops == nil {
		if secret, err = k.create(ctx, tenant); apierrors.IsAlreadyExists(err) { // An earlier leader created it.
			secret, err = k.read(ctx, tenant)
		}
	}
	if err != nil {
		return "", k.lost(tenant, err)
	}
	return k.recipientOf(tenant, secret)
}

// Data returns the data of the Secret with a tenant's key, for decryption, and its "namespace/name". ok is false if the tenant has no key.
func (k *Keys) Data(ctx context.Context, tenant *v1alpha1.Tenant) (name string, data map[string][]byte, ok bool, err error) {
	if tenant.Spec.Sops == "" || tenant.Status.Sops == nil {
		return "", nil, false, nil
	}
	name = k.Namespace + "/" + Name(tenant.Name)
	if known, is := k.known.Load(tenant.Status.Sops.Recipient); is {
		return name, known.(map[string][]byte), true, nil
	}
	secret, err := k.read(ctx, tenant)
	if err != nil {
		return "", nil, false, k.lost(tenant, err)
	}
	recipient, err := k.recipientOf(tenant, secret)
	if err != nil {
		return "", nil, false, err
	}
	k.known.Store(recipient, secret.Data)
	return name, secret.Data, true, nil
}

// lost returns ErrUnusable if the Secret of a tenant that had a key does not exist, and err otherwise.
func (k *Keys) lost(tenant *v1alpha1.Tenant, err error) error {
	if !apierrors.IsNotFound(err) || tenant.Status.Sops == nil {
		return err
	}
	return fmt.Errorf("%w: Secret %s/%s is gone, and files may be encrypted for %s: an administrator of the cluster restores it from a backup", ErrUnusable,
		k.Namespace, Name(tenant.Name), tenant.Status.Sops.Recipient)
}

// recipientOf returns the public key of the key in a Secret, which must be the one that the tenant had so far.
func (k *Keys) recipientOf(tenant *v1alpha1.Tenant, secret *corev1.Secret) (string, error) {
	identity, err := age.ParseX25519Identity(string(secret.Data[field]))
	if err != nil { // The error contains the key.
		return "", fmt.Errorf("%w: Secret %s/%s holds no age identity in %s: an administrator of the cluster restores it from a backup", ErrUnusable, k.Namespace, secret.Name, field)
	}
	recipient := identity.Recipient().String()
	if was := tenant.Status.Sops; was != nil && was.Recipient != recipient {
		return "", fmt.Errorf("%w: Secret %s/%s holds the key of %s, and files may be encrypted for %s: an administrator of the cluster restores it from a backup", ErrUnusable,
			k.Namespace, secret.Name, recipient, was.Recipient)
	}
	return recipient, nil
}

// read reads the Secret of a tenant, and checks that it is this tenant's: another one may have had the name before.
func (k *Keys) read(ctx context.Context, tenant *v1alpha1.Tenant) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := k.Client.Get(ctx, client.ObjectKey{Namespace: k.Namespace, Name: Name(tenant.Name)}, secret); err != nil {
		return nil, fmt.Errorf("reading the key of tenant %s: %w", tenant.Name, err)
	}
	identity := k.Identity(tenant)
	same := secret.Annotations[v1alpha1.TenantUIDAnnotation] == string(tenant.UID) || identity != "" && secret.Annotations[v1alpha1.TenantIdentityAnnotation] == identity
	if !same {
		return nil, fmt.Errorf("%w: Secret %s/%s is of an earlier tenant of this name: an administrator of the cluster keeps a copy and runs: kubectl delete secret %s -n %s",
			ErrUnusable, k.Namespace, secret.Name, secret.Name, k.Namespace)
	}
	return secret, nil
}

func (k *Keys) create(ctx context.Context, tenant *v1alpha1.Tenant) (*corev1.Secret, error) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, fmt.Errorf("making the key of tenant %s: %w", tenant.Name, err)
	}
	immutable := true
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: k.Namespace, Name: Name(tenant.Name), Labels: map[string]string{"app.kubernetes.io/managed-by": "kubeop"},
			Annotations: map[string]string{v1alpha1.TenantUIDAnnotation: string(tenant.UID), v1alpha1.TenantIdentityAnnotation: k.Identity(tenant)},
		},
		Immutable: &immutable, Data: map[string][]byte{field: []byte(identity.String())},
	}
	if err := k.Client.Create(ctx, secret); err != nil {
		return nil, fmt.Errorf("keeping the key of tenant %s: %w", tenant.Name, err)
	}
	return secret, nil
}
