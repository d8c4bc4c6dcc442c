// Package sopskey keeps the age keys of tenants whose spec.sops is Generated, each in a Secret of the operator's namespace. No tenant can read it
// there, whatever rights it has. Back the Secrets up: files that were encrypted for a key that is lost cannot be decrypted.
package sopskey

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// maxKeys is the highest number of a key, as in the CustomResourceDefinition.
const maxKeys = 16

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

	// known holds the private keys by the public ones. They never change.
	known sync.Map
}

// Name returns the name of the Secret with a tenant's key of this number.
func Name(tenant string, number int) string {
	if number == 1 {
		return "kubeop-sops-" + tenant
	}
	return fmt.Sprintf("kubeop-sops-%s.%d", tenant, number) // No tenant has a dot in its name.
}

// TenantOf returns the tenant with a key in the Secret of this name; "" for any other Secret.
func TenantOf(secret string) string {
	tenant, is := strings.CutPrefix(secret, Name("", 1))
	if !is {
		return ""
	}
	tenant, _, _ = strings.Cut(tenant, ".")
	return tenant
}

// Present returns the number of the key with which a tenant's files are to be encrypted.
func Present(tenant *v1alpha1.Tenant) int { return max(tenant.Spec.SopsKey, 1) }

// Ensure returns the public keys of a tenant. It makes the present one if the tenant never had it: what status.sops names was used, and is never
// replaced. A tenant without status, as after a restore, has the keys whose Secrets are there. With an unusable earlier key, it returns the status and an
// ErrUnusable.
func (k *Keys) Ensure(ctx context.Context, tenant *v1alpha1.Tenant) (*v1alpha1.SopsStatus, error) {
	status, was := &v1alpha1.SopsStatus{Number: Present(tenant)}, tenant.Status.Sops
	var err, lost error
	if status.Recipient, err = k.present(ctx, tenant); err != nil {
		return nil, err
	}
	for number := 1; number <= maxKeys; number++ {
		if number == status.Number || was != nil && recipientOf(was, number) == "" {
			continue
		}
		recipient, err := k.earlier(ctx, tenant, number)
		switch {
		case errors.Is(err, ErrUnusable):
			lost = errors.Join(lost, err)
			recipient = recipientOf(was, number)
		case err != nil:
			return nil, err
		}
		if recipient != "" {
			status.Earlier = append(status.Earlier, v1alpha1.SopsKey{Number: number, Recipient: recipient})
		}
	}
	return status, lost
}

// present returns the public key for which files are to be encrypted.
func (k *Keys) present(ctx context.Context, tenant *v1alpha1.Tenant) (string, error) {
	number := Present(tenant)
	was := recipientOf(tenant.Status.Sops, number)
	secret, err := k.read(ctx, tenant, number)
	if apierrors.IsNotFound(err) && was == "" {
		if secret, err = k.create(ctx, tenant, number); apierrors.IsAlreadyExists(err) { // An earlier leader created it.
			secret, err = k.read(ctx, tenant, number)
		}
	}
	if err != nil {
		return "", k.lost(tenant, number, err)
	}
	return k.check(secret, was)
}

// earlier returns the public key of another number; "" if the tenant never had it.
func (k *Keys) earlier(ctx context.Context, tenant *v1alpha1.Tenant, number int) (string, error) {
	was := recipientOf(tenant.Status.Sops, number)
	secret, err := k.read(ctx, tenant, number)
	switch {
	case was == "" && (apierrors.IsNotFound(err) || errors.Is(err, ErrUnusable)):
		return "", nil
	case err != nil:
		return "", k.lost(tenant, number, err)
	}
	return k.check(secret, was)
}

// recipientOf returns the public key of this number that a status names; "" if it names none.
func recipientOf(status *v1alpha1.SopsStatus, number int) string {
	for _, key := range all(status) {
		if key.Number == number {
			return key.Recipient
		}
	}
	return ""
}

// all returns the keys that a status names, the present one first.
func all(status *v1alpha1.SopsStatus) []v1alpha1.SopsKey {
	if status == nil {
		return nil
	}
	present := v1alpha1.SopsKey{Number: max(status.Number, 1), Recipient: status.Recipient}
	return append([]v1alpha1.SopsKey{present}, status.Earlier...)
}

// Held are the private keys of a tenant for decryption.
type Held struct {
	// Secret is the "namespace/name" of the Secret with the present one.
	Secret string
	// Data has one of them in each value, under keys that a Secret of spec.decryption.secretRef may have, too.
	Data map[string][]byte
	// Recipient is the public key for which files are to be encrypted; "" if the tenant has one key only.
	Recipient string
}

// Data returns the keys of a tenant; nil if it has none.
func (k *Keys) Data(ctx context.Context, tenant *v1alpha1.Tenant) (*Held, error) {
	if tenant.Spec.Sops == "" || tenant.Status.Sops == nil {
		return nil, nil
	}
	keys := all(tenant.Status.Sops)
	held := &Held{Secret: k.Namespace + "/" + Name(tenant.Name, keys[0].Number), Data: map[string][]byte{}}
	for i, key := range keys {
		data, err := k.data(ctx, tenant, key)
		if i > 0 && errors.Is(err, ErrUnusable) {
			continue // The others decrypt all the same, and KeyReady of the Tenant names it.
		}
		if err != nil {
			return nil, err
		}
		name := field
		if key.Number > 1 {
			name = fmt.Sprintf("age-%d.agekey", key.Number)
		}
		held.Data[name] = data
	}
	if len(keys) > 1 {
		held.Recipient = keys[0].Recipient
	}
	return held, nil
}

// data returns one private key of a tenant.
func (k *Keys) data(ctx context.Context, tenant *v1alpha1.Tenant, key v1alpha1.SopsKey) ([]byte, error) {
	if known, is := k.known.Load(key.Recipient); is {
		return known.([]byte), nil
	}
	secret, err := k.read(ctx, tenant, key.Number)
	if err != nil {
		return nil, k.lost(tenant, key.Number, err)
	}
	if _, err := k.check(secret, key.Recipient); err != nil {
		return nil, err
	}
	k.known.Store(key.Recipient, secret.Data[field])
	return secret.Data[field], nil
}

// lost returns ErrUnusable if the Secret of a key that a tenant had does not exist, and err otherwise.
func (k *Keys) lost(tenant *v1alpha1.Tenant, number int, err error) error {
	was := recipientOf(tenant.Status.Sops, number)
	if !apierrors.IsNotFound(err) || was == "" {
		return err
	}
	return fmt.Errorf("%w: Secret %s/%s is gone, and files may be encrypted for %s: an administrator of the cluster restores it from a backup", ErrUnusable,
		k.Namespace, Name(tenant.Name, number), was)
}

// check returns the public key of the key in a Secret. That must be the one that the tenant had so far, if it had one.
func (k *Keys) check(secret *corev1.Secret, was string) (string, error) {
	identity, err := age.ParseX25519Identity(string(secret.Data[field]))
	if err != nil { // The error contains the key.
		return "", fmt.Errorf("%w: Secret %s/%s holds no age identity in %s: an administrator of the cluster restores it from a backup", ErrUnusable, k.Namespace, secret.Name, field)
	}
	recipient := identity.Recipient().String()
	if was != "" && was != recipient {
		return "", fmt.Errorf("%w: Secret %s/%s holds the key of %s, and files may be encrypted for %s: an administrator of the cluster restores it from a backup", ErrUnusable,
			k.Namespace, secret.Name, recipient, was)
	}
	return recipient, nil
}

// read reads the Secret with a key of a tenant, and checks that it is this tenant's: another one may have had the name before.
func (k *Keys) read(ctx context.Context, tenant *v1alpha1.Tenant, number int) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := k.Client.Get(ctx, client.ObjectKey{Namespace: k.Namespace, Name: Name(tenant.Name, number)}, secret); err != nil {
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

func (k *Keys) create(ctx context.Context, tenant *v1alpha1.Tenant, number int) (*corev1.Secret, error) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, fmt.Errorf("making the key of tenant %s: %w", tenant.Name, err)
	}
	immutable := true
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: k.Namespace, Name: Name(tenant.Name, number), Labels: map[string]string{"app.kubernetes.io/managed-by": "kubeop"},
			Annotations: map[string]string{v1alpha1.TenantUIDAnnotation: string(tenant.UID), v1alpha1.TenantIdentityAnnotation: k.Identity(tenant)},
		},
		Immutable: &immutable, Data: map[string][]byte{field: []byte(identity.String())},
	}
	if err := k.Client.Create(ctx, secret); err != nil {
		return nil, fmt.Errorf("keeping the key of tenant %s: %w", tenant.Name, err)
	}
	return secret, nil
}
