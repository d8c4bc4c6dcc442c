package source

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/inputs"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/reference"
	"github.com/kubeop/kubeop/delivery/render"
)

// registries returns the Registries by which the App's source may be fetched: that of its host, unless the App names a Secret of its own; all
// for a chart in a folder, whose dependencies may be in any.
func (p *pass) registries() []v1alpha1.PullSecret {
	spec := &p.App.Spec
	switch {
	case spec.Image != nil && spec.Image.Policy != nil:
		return p.registriesOf(reference.Host(spec.Image.Reference))
	case spec.Git != nil && spec.Git.OCI != nil && spec.Git.OCI.SecretRef == nil:
		return p.registriesOf(registryHost(spec.Git.OCI.URL))
	case spec.Helm != nil && spec.Helm.Repository != "" && spec.Helm.SecretRef == nil:
		return p.registriesOf(registryHost(spec.Helm.Repository))
	case spec.Helm != nil && spec.Helm.Repository == "":
		return p.PullSecrets
	}
	return nil
}

// involved returns the Registries by which the App's source may be fetched, and those of their mirrors.
func (p *pass) involved() []v1alpha1.PullSecret {
	own := p.registries()
	all := slices.Clone(own)
	for _, registry := range own {
		if registry.Mirror == "" {
			continue
		}
		for _, mirror := range p.registriesOf(reference.Host(registry.Mirror + "/")) {
			if !slices.Contains(all, mirror) {
				all = append(all, mirror)
			}
		}
	}
	return all
}

// registriesOf returns the Registry of a host; nil if the project has none.
func (p *pass) registriesOf(host string) []v1alpha1.PullSecret {
	at := slices.IndexFunc(p.PullSecrets, func(s v1alpha1.PullSecret) bool { return s.Host == host })
	if at < 0 {
		return nil
	}
	return p.PullSecrets[at : at+1]
}

// registryHost returns the host of an oci:// URL as Registries have it; "" for any other URL.
func registryHost(raw string) string {
	at, err := url.Parse(raw)
	if err != nil || at.Scheme != "oci" || at.Host == "" {
		return ""
	}
	return reference.Host(at.Host + "/")
}

// access returns how the registry of an oci:// URL, or the host of a Helm repository, is reached: with the Secret that the App names or, without
// one, by the Registry of the host.
func (f *Fetcher) access(ctx context.Context, p *pass, ref *v1alpha1.LocalSecretReference, raw string, insecure bool) (transport.Access, error) {
	if ref == nil {
		for _, registry := range p.registriesOf(registryHost(raw)) {
			return f.accessBy(ctx, p, registry, insecure)
		}
	}
	auth, err := transport.ReadAuth(ctx, f.Inputs.Secrets(p.Subject), p.App.Namespace, ref)
	return transport.Access{Auth: p.ofRegistry(auth, ref), Insecure: insecure}, err
}

// ofRegistry names the Registry in the credentials of a Secret that the App names, if it is a copy of that one's.
func (p *pass) ofRegistry(auth transport.Auth, ref *v1alpha1.LocalSecretReference) transport.Auth {
	for _, registry := range p.PullSecrets {
		if ref != nil && registry.Name() == ref.Name {
			auth.Registry = registry.Registry
		}
	}
	return auth
}

// accessBy returns how a Registry is reached: with the copy of its credentials in the App's namespace, which is read as the project's deployer. So
// whoever changed the copy gets no more than what it now holds, and only for this project. insecure is what the App says.
func (f *Fetcher) accessBy(ctx context.Context, p *pass, registry v1alpha1.PullSecret, insecure bool) (transport.Access, error) {
	if insecure && !registry.Insecure {
		return transport.Access{}, failure.New(failure.ErrInvalid, "insecure: the credentials of Registry %s are not sent to %s without TLS: take insecure out of app.yaml in Git, name a Secret of your own in it, "+
			"or ask %s to set spec.insecure of the Registry in Git", registry.Registry, registry.Host, command.Administrator)
	}
	data, err := f.Inputs.Data(ctx, p.Subject, inputs.Secret, registry.Name())
	if errors.Is(err, render.ErrMissing) {
		return transport.Access{}, fmt.Errorf("secret %s/%s with the credentials of Registry %s for %s is gone: kubeop writes it again, and tries again then", p.App.Namespace, registry.Name(), registry.Registry, registry.Host)
	}
	if err != nil {
		return transport.Access{}, fmt.Errorf("reading secret %s/%s with the credentials of Registry %s for %s: %w", p.App.Namespace, registry.Name(), registry.Registry, registry.Host, err)
	}
	auth, err := transport.AuthFromSecret(p.App.Namespace, registry.Name(), data)
	if err != nil {
		return transport.Access{}, fmt.Errorf("secret %s/%s with the credentials of Registry %s for %s: %w", p.App.Namespace, registry.Name(), registry.Registry, registry.Host, err)
	}
	access := transport.Access{Auth: auth.OfRegistry(registry.Registry), Insecure: registry.Insecure}
	access.Mirror, err = f.mirrorOf(ctx, p, registry)
	return access, err
}

// mirrorOf returns how the mirror of a Registry is reached: by the Registry of its host, or without credentials. That one's own mirror is not
// asked.
func (f *Fetcher) mirrorOf(ctx context.Context, p *pass, registry v1alpha1.PullSecret) (*transport.Mirror, error) {
	if registry.Mirror == "" {
		return nil, nil
	}
	mirror := &transport.Mirror{At: registry.Mirror, Tenant: p.Owner.Tenant}
	for _, of := range p.registriesOf(reference.Host(registry.Mirror + "/")) {
		of.Mirror = ""
		access, err := f.accessBy(ctx, p, of, false)
		if err != nil {
			return nil, fmt.Errorf("mirror %s of %s: %w", registry.Mirror, registry.Host, err)
		}
		mirror.Access = access
	}
	return mirror, nil
}

// settings identifies how a Registry is reached, beside its credentials.
func settings(registry v1alpha1.PullSecret) (settings string) {
	if registry.Insecure {
		settings = " insecure"
	}
	if registry.Mirror != "" {
		settings += " mirror " + registry.Mirror
	}
	return settings
}

// accesses returns how the Registries of the project are reached, by their hosts.
func (f *Fetcher) accesses(ctx context.Context, p *pass) (map[string]transport.Access, error) {
	all := map[string]transport.Access{}
	for _, registry := range p.PullSecrets {
		access, err := f.accessBy(ctx, p, registry, false)
		if err != nil {
			return nil, err
		}
		all[registry.Host] = access
	}
	return all, nil
}

// nameOf returns the name of a Secret that may be named; "" if it is not.
func nameOf(secret *v1alpha1.LocalSecretReference) string {
	if secret == nil {
		return ""
	}
	return secret.Name
}
