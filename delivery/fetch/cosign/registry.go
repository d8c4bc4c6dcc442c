package cosign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

// Whoever may push to a repository decides what is found there as signatures. maxSignatures of each layout are read, each of at most maxSignature bytes,
// and a list of them of at most maxManifest.
const (
	maxSignatures = 32
	maxSignature  = 1 * limit.MiB
	maxManifest   = 1 * limit.MiB
)

// Media types and annotations of cosign.
const (
	payloadType   = "application/vnd.dev.cosign.simplesigning.v1+json"
	bundlePrefix  = "application/vnd.dev.sigstore.bundle"
	annSignature  = "dev.cosignproject.cosign/signature"
	annCert       = "dev.sigstore.cosign/certificate"
	annLogEntry   = "dev.sigstore.cosign/bundle"
	annTimestamp  = "dev.sigstore.cosign/rfc3161timestamp"
	digestAlgo    = "sha256:"
	taggedPattern = "sha256-%s.sig"
)

// signatures are those of one digest in a registry.
type signatures struct {
	*transport.Registry
	digest string
}

// tagged returns the signatures under the tag of the digest, as cosign 2 writes them.
func (r *signatures) tagged(ctx context.Context) ([]signature, error) {
	tag := fmt.Sprintf(taggedPattern, strings.TrimPrefix(r.digest, digestAlgo))
	about, body, err := r.FetchReference(ctx, tag)
	if errors.Is(err, errdef.ErrNotFound) {
		return nil, nil
	}
	if err := r.Failed(err, "tag "+tag+" with the signatures"); err != nil {
		return nil, err
	}
	layers, err := r.layers(about, body)
	if err != nil {
		return nil, err
	}
	var all []signature
	for _, layer := range layers {
		if layer.MediaType != payloadType || layer.Annotations[annSignature] == "" {
			continue
		}
		if len(all) == maxSignatures {
			break
		}
		payload, err := r.blob(ctx, layer)
		if err != nil {
			return nil, err
		}
		all = append(all, ofPayload(payload, layer.Annotations))
	}
	return all, nil
}

// errEnough ends a list of which no more is read.
var errEnough = errors.New("enough")

// referring returns the bundles that refer to the digest, as cosign 3 writes them.
func (r *signatures) referring(ctx context.Context) ([]signature, error) {
	var found []ocispec.Descriptor
	subject := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.Digest(r.digest)}
	err := r.Referrers(ctx, subject, "", func(page []ocispec.Descriptor) error {
		for _, d := range page {
			if !strings.HasPrefix(d.ArtifactType, bundlePrefix) {
				continue
			}
			if found = append(found, d); len(found) == maxSignatures {
				return errEnough
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, r.Failed(err, "list of signatures")
	}
	var all []signature
	for _, d := range found {
		about, body, err := r.FetchReference(ctx, d.Digest.String())
		if err := r.Failed(err, "signature"); err != nil {
			return nil, err
		}
		layers, err := r.layers(about, body)
		if err != nil {
			return nil, err
		}
		if len(layers) == 0 || !strings.HasPrefix(layers[0].MediaType, bundlePrefix) {
			continue
		}
		text, err := r.blob(ctx, layers[0])
		if err != nil {
			return nil, err
		}
		all = append(all, ofBundle(text))
	}
	return all, nil
}

// layers reads a manifest and returns its layers.
func (r *signatures) layers(about ocispec.Descriptor, body io.ReadCloser) ([]ocispec.Descriptor, error) {
	defer body.Close()
	raw, err := read(about, body, "the manifest of its signatures", maxManifest)
	if err != nil {
		return nil, err
	}
	var manifest ocispec.Manifest
	if err := json.Unmarshal(raw, &manifest); err != nil {
		return nil, failure.New(failure.ErrSignature, "the manifest of its signatures is not JSON")
	}
	return manifest.Layers, nil
}

// blob reads a layer.
func (r *signatures) blob(ctx context.Context, layer ocispec.Descriptor) ([]byte, error) {
	if layer.Size > maxSignature {
		return nil, failure.TooLarge("a signature of it", maxSignature)
	}
	body, err := r.Blob(ctx, layer)
	if err := r.Failed(err, "signature"); err != nil {
		return nil, err
	}
	defer body.Close()
	return read(layer, body, "a signature of it", maxSignature)
}

// read reads what a descriptor describes, and compares the digest.
func read(about ocispec.Descriptor, body io.Reader, what string, most int64) ([]byte, error) {
	if about.Size > most {
		return nil, failure.TooLarge(what, most)
	}
	raw, err := content.ReadAll(body, about)
	if err != nil {
		return nil, fmt.Errorf("%w: reading %s: %w", failure.ErrUnavailable, what, err)
	}
	return raw, nil
}
