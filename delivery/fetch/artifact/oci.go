package artifact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/Masterminds/semver/v3"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"

	"github.com/kubeop/kubeop/delivery/fetch/chart/index"
	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/few"
)

// OCI is an artifact of manifests in a registry, with credentials.
type OCI struct {
	// URL is oci://host/path, without tag and credentials.
	URL string
	// Digest, SemVer and Tag choose the artifact; the first one that is set counts: the digest "sha256:<hex>" of a manifest, the highest
	// tag in a range of versions, or a tag. Default: the tag latest.
	Digest, SemVer, Tag string
	// Insecure connects to the registry without TLS.
	Insecure bool
	// Mirror is asked before the registry; nil is none.
	Mirror *transport.Mirror
	// Auth is sent only to the registry, or to the token service that checks it for the registry.
	Auth transport.Auth
	// Tenant is the tenant for whom the artifact is fetched, and whose share of the disk it uses.
	Tenant string
}

// tagged is a tag, and the digest of the manifest that the tag names now.
type tagged struct{ tag, digest string }

func (t tagged) revision() string {
	if t.tag == "" {
		return t.digest
	}
	return few.Quote(t.tag) + "@" + t.digest
}

// Fetch finds what src points to now, and downloads it unless it is on disk. If nothing changed, it makes one request to the registry, and
// none for a digest that is on disk. Equal concurrent requests share the answer (singleflight). ctx limits its time; a registry that stops
// answering ends it sooner (see limits).
//
// Errors: ErrNotFound, ErrAuthentication, ErrInvalid, ErrTooLarge; any other is transient.
func (s *Store) Fetch(ctx context.Context, src OCI) (Artifact, error) {
	s.Begin()
	arrived := s.arrivals.Add(1)
	artifact, err := transport.Within(ctx, s.limits.Timeouts, func(ctx context.Context) (Artifact, error) {
		return s.fetch(ctx, src, arrived)
	})
	if err != nil {
		return Artifact{}, fmt.Errorf("fetching %s: %w", transport.SafeURL(src.URL), src.Auth.NameSecret(err))
	}
	return artifact, nil
}

func (s *Store) fetch(ctx context.Context, src OCI, arrived int64) (Artifact, error) {
	at, err := src.check()
	if err != nil {
		return Artifact{}, err
	}
	repository, err := transport.OpenRegistry(s.network, at.Host+at.Path, transport.Access{Auth: src.Auth, Insecure: src.Insecure, Mirror: src.Mirror})
	if err != nil {
		return Artifact{}, err
	}
	defer repository.Close()
	from := &ociArtifact{repository}
	folder := filepath.Join(s.Dir, src.Auth.Digest(fmt.Sprintf("%s %t", at, src.Insecure)))
	now := tagged{digest: src.Digest}
	if src.Digest == "" {
		now, err = s.finds.Do(ctx, strings.Join([]string{folder, src.SemVer, src.Tag}, " "), arrived, func() (tagged, error) {
			return from.resolve(ctx, src)
		})
	}
	if err != nil {
		return Artifact{}, err
	}
	path, err := s.keep(ctx, archived{folder: folder, name: now.digest, tenant: src.Tenant, get: func(ctx context.Context) (io.ReadCloser, string, error) {
		layer, err := from.archive(ctx, now.digest, s.limits)
		if err != nil {
			return nil, "", err
		}
		body, err := from.Blob(ctx, layer)
		return body, layer.Digest.String(), from.Failed(err, "layer of the artifact")
	}})
	return Artifact{Revision: now.revision(), Digest: now.digest, path: path}, err
}

// check returns the URL without a slash at its end.
func (o OCI) check() (*url.URL, error) {
	at, err := url.Parse(o.URL)
	switch {
	case err != nil || at.Host == "" || at.Scheme != "oci":
		return nil, failure.New(failure.ErrInvalid, "the URL is not of the form oci://host/path")
	case at.User != nil:
		return nil, failure.New(failure.ErrInvalid, "the URL holds credentials: move them to a Secret and name it in secretRef in Git")
	case at.RawQuery != "" || at.Fragment != "":
		return nil, failure.New(failure.ErrInvalid, "the URL has a query or fragment")
	case o.Digest != "" && !disk.IsSHA256(strings.TrimPrefix(o.Digest, "sha256:")):
		return nil, failure.New(failure.ErrInvalid, "the digest %q is not of the form sha256:<64 hexadecimal digits>", few.Quote(o.Digest))
	}
	at.Path = strings.TrimSuffix(at.Path, "/")
	return at, o.Auth.Check()
}

// ociArtifact is an artifact in an OCI registry.
type ociArtifact struct{ *transport.Registry }

// resolve returns the manifest that a tag names.
func (r *ociArtifact) resolve(ctx context.Context, src OCI) (tagged, error) {
	tag := src.Tag
	if src.SemVer != "" {
		var err error
		if tag, err = r.highest(ctx, src.SemVer); err != nil {
			return tagged{}, err
		}
	}
	if tag == "" {
		tag = "latest"
	}
	about, err := r.Resolve(ctx, tag)
	if err := r.Failed(err, "tag "+few.Quote(tag)+" of the artifact"); err != nil {
		return tagged{}, err
	}
	if !disk.IsSHA256(strings.TrimPrefix(about.Digest.String(), "sha256:")) {
		return tagged{}, failure.New(failure.ErrInvalid, "the registry names the artifact by %s, and only sha256 is known here", few.Quote(about.Digest.String()))
	}
	return tagged{tag: tag, digest: about.Digest.String()}, nil
}

// highest returns the highest tag in a range of versions.
func (r *ociArtifact) highest(ctx context.Context, expression string) (string, error) {
	wanted, err := semver.NewConstraint(expression)
	if err != nil {
		return "", failure.New(failure.ErrInvalid, "semver %q is not a range of versions, such as \">=1.2.0 <2.0.0\"", few.Quote(expression))
	}
	var tags []index.Version
	err = r.Tags(ctx, "", func(page []string) error {
		for _, tag := range page {
			tags = append(tags, index.Version{Name: tag})
		}
		return nil
	})
	if err := r.Failed(err, "artifact"); err != nil {
		return "", err
	}
	for _, v := range index.NewestFirst(tags) {
		if wanted.Check(v.Parsed) {
			return v.Name, nil
		}
	}
	return "", failure.New(failure.ErrNotFound, "none of the artifact's %d tags matches semver %q", len(tags), few.Quote(expression))
}

// archive reads a manifest and returns the layer with the archive: the first layer that is a tar compressed with gzip.
func (r *ociArtifact) archive(ctx context.Context, digest string, l limits) (ocispec.Descriptor, error) {
	about, body, err := r.FetchReference(ctx, digest)
	if err := r.Failed(err, "artifact "+digest); err != nil {
		return ocispec.Descriptor{}, err
	}
	defer body.Close()
	if about.Size > 4*limit.MiB {
		return ocispec.Descriptor{}, failure.TooLarge("the artifact's manifest", 4*limit.MiB)
	}
	raw, err := content.ReadAll(body, about)
	switch {
	case errors.Is(err, content.ErrMismatchedDigest), err == nil && about.Digest.String() != digest:
		return ocispec.Descriptor{}, failure.New(failure.ErrServer, "what the registry serves as the manifest has another digest than %s", digest)
	case err != nil:
		return ocispec.Descriptor{}, fmt.Errorf("%w: reading the artifact's manifest: %w", failure.ErrUnavailable, err)
	}
	var manifest ocispec.Manifest
	if err := json.Unmarshal(raw, &manifest); err != nil {
		return ocispec.Descriptor{}, failure.New(failure.ErrInvalid, "the artifact's manifest is not JSON")
	}
	for _, layer := range manifest.Layers {
		if !strings.HasSuffix(layer.MediaType, "tar+gzip") && !strings.HasSuffix(layer.MediaType, "tar.gzip") {
			continue
		}
		if layer.Size > l.archive {
			return ocispec.Descriptor{}, failure.TooLarge("the artifact", l.archive)
		}
		return layer, nil
	}
	return ocispec.Descriptor{}, failure.New(failure.ErrInvalid, "the artifact has no layer whose type ends in tar+gzip: publish it as \"flux push artifact\" does")
}
