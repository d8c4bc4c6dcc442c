package inputs

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/internal/sopskey"
)

// ErrNoKeys is wrapped when there are no keys for decryption. When the Secret is created, or the tenant gets a key, the App is woken.
var ErrNoKeys = errors.New("nothing is decrypted without it")

// Keys returns the private keys for decryption: those of the Secret that the App names, or else the tenant's own.
func (r *Reader) Keys(ctx context.Context, s *subject.Subject, with *v1alpha1.Decryption) (*sopskey.Held, error) {
	name := with.SecretRef.Name
	if name == "" {
		return r.ofTenant(ctx, s)
	}
	data, err := r.Lookup(ctx, s)(Secret, name)
	if errors.Is(err, render.ErrMissing) {
		return nil, fmt.Errorf("decryption.secretRef: Secret %s %w; %w", name, err, ErrNoKeys)
	}
	if err != nil {
		return nil, fmt.Errorf("decryption.secretRef: %w", err)
	}
	return &sopskey.Held{Secret: s.App.Namespace + "/" + name, Data: data}, nil
}

func (r *Reader) ofTenant(ctx context.Context, s *subject.Subject) (*sopskey.Held, error) {
	tenant := &v1alpha1.Tenant{}
	if err := r.Tenants.Get(ctx, client.ObjectKey{Name: s.Owner.Tenant}, tenant); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("%w: tenant %s: %w", ErrReading, s.Owner.Tenant, err)
	}
	held, err := r.TenantKeys.Data(ctx, tenant)
	switch {
	case errors.Is(err, sopskey.ErrUnusable):
		return nil, fmt.Errorf("decryption: the key of tenant %s cannot be used: kubectl get tenant %s says why, and administrators of the cluster restore it; %w",
			s.Owner.Tenant, s.Owner.Tenant, ErrNoKeys)
	case err != nil:
		return nil, fmt.Errorf("%w: decryption: %w", ErrReading, err)
	case held == nil:
		return nil, fmt.Errorf("decryption has no secretRef, and tenant %s has no key: name a Secret with keys in app.yaml, or have administrators set spec.sops of the Tenant to Generated; %w",
			s.Owner.Tenant, ErrNoKeys)
	}
	hide(s, held.Data)
	return held, nil
}
