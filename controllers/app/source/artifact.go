package source

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/artifact"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/guardrails"
)

// pull returns the files of an artifact from an OCI registry.
func (f *Fetcher) pull(ctx context.Context, p *pass, spec *v1alpha1.OCISource) (Files, error) {
	from := artifact.OCI{URL: spec.URL, Digest: spec.Digest, SemVer: spec.SemVer, Tag: spec.Tag, Tenant: p.Owner.Tenant}
	if pinned := p.pinnedDigest(); pinned != "" {
		from.Digest = pinned
	}
	what, secret := fmt.Sprintf("oci %q %t", []string{spec.URL, from.Digest, spec.SemVer, spec.Tag}, spec.Insecure), nameOf(spec.SecretRef)
	for _, registry := range p.registries() {
		what, secret = what+settings(registry), registry.Name()
	}
	find := func() (artifact.Artifact, error) {
		return shared(ctx, f, p, query[artifact.Artifact]{of: f.Answers.Pulled, what: what, secret: secret, host: transport.HostOf(spec.URL), prepare: func() (cache.Fetcher[artifact.Artifact], error) {
			access, err := f.access(ctx, p, spec.SecretRef, spec.URL, spec.Insecure)
			from := from
			from.Auth, from.Insecure, from.Mirror = access.Auth, access.Insecure, access.Mirror
			return func(ctx context.Context) (artifact.Artifact, error) { return f.Artifacts.Fetch(ctx, from) }, err
		}})
	}
	files, err := f.unpacked(find, func() { p.last.question = cache.Question{Request: "swept"} })
	if err == nil {
		err = f.allowSigned(ctx, p, guardrails.Source{Type: guardrails.OCIRepository, URL: spec.URL}, files.Digest, func() (transport.Access, error) {
			return f.access(ctx, p, spec.SecretRef, spec.URL, spec.Insecure)
		})
	}
	if err != nil {
		return Files{}, err
	}
	if from.Digest != spec.Digest {
		files.Revision = p.pin // As the tag named it.
	}
	return files, nil
}

// unpacked opens the files of an artifact. If they are no longer on the disk, it fetches the artifact again.
func (f *Fetcher) unpacked(find func() (artifact.Artifact, error), forget func()) (Files, error) {
	found, err := find()
	if err != nil {
		return Files{}, err
	}
	files, err := f.Artifacts.Files(found)
	if errors.Is(err, failure.ErrNotFound) {
		forget()
		if found, err = find(); err == nil {
			files, err = f.Artifacts.Files(found)
		}
	}
	return Files{FS: files, Revision: found.Revision, Digest: found.Digest}, err
}
