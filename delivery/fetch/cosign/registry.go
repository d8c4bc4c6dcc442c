package cosign

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/few"
)

// Whoever may push to a repository decides what is found there as signatures. maxSignatures of each layout are read, one after the other. A signature
// has at most maxSignature bytes: its payload or its bundle, which is about 11 KiB with a certificate and an entry in a log, and the same again for what
// a manifest says of it. The manifest that describes all signatures under a tag has at most maxManifest. The list of what refers to a digest has at most
// maxList, because the library that reads it holds up to forty times as much.
const (
	maxSignatures = 32
	maxSignature  = 64 * limit.KiB
	maxManifest   = 1 * limit.MiB
	maxList       = 256 * limit.KiB
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

// How messages name what is read.
const (
	aSignature  = "a signature of it"
	itsManifest = "the manifest of its signatures"
)

// signatures are those of one digest in a registry.
type signatures struct {
	*transport.Registry
	search
}

// tagged checks the signatures under the tag of the digest, as cosign 2 writes them, until all rules are satisfied.
func (r *signatures) tagged(ctx context.Context) error {
	raw, err := r.manifest(ctx, fmt.Sprintf(taggedPattern, strings.TrimPrefix(r.digest, digestAlgo)), maxManifest)
	switch {
	case errors.Is(err, failure.ErrNotFound):
		return nil
	case err != nil:
		return r.skip(ctx, err)
	}
	read := 0
	for layer, err := range layersOf(raw) {
		if err == nil && (layer.MediaType != payloadType || layer.Annotations[annSignature] == "") {
			continue
		}
		if read++; read > maxSignatures {
			break
		}
		var payload []byte
		if err == nil {
			payload, err = r.blob(ctx, layer)
		}
		if err != nil {
			err = r.skip(ctx, err)
		} else {
			err = r.take(ctx, ofPayload(payload, layer.Annotations))
		}
		if r.tried++; err != nil || len(r.left) == 0 {
			return err
		}
	}
	return nil
}

// errEnough ends a list of which no more is read.
var errEnough = errors.New("enough")

// referring checks the bundles that refer to the digest, as cosign 3 writes them, until all rules are satisfied.
func (r *signatures) referring(ctx context.Context) error {
	var found []digest.Digest
	subject := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.Digest(r.digest)}
	r.MaxMetadataBytes = maxList
	err := r.Referrers(ctx, subject, "", func(page []ocispec.Descriptor) error {
		for _, d := range page {
			if !strings.HasPrefix(d.ArtifactType, bundlePrefix) {
				continue
			}
			if found = append(found, d.Digest); len(found) == maxSignatures {
				return errEnough
			}
		}
		return nil
	})
	switch {
	case errors.Is(err, errdef.ErrSizeExceedsLimit):
		return r.skip(ctx, failure.TooLarge("the list of its signatures", maxList))
	case err != nil && !errors.Is(err, errEnough):
		return r.skip(ctx, r.Failed(err, "list of signatures"))
	}
	for _, d := range found {
		text, err := r.bundle(ctx, d)
		if err != nil {
			err = r.skip(ctx, err)
		} else {
			err = r.take(ctx, ofBundle(text))
		}
		if r.tried++; err != nil || len(r.left) == 0 {
			return err
		}
	}
	return nil
}

// bundle reads the bundle that a manifest has.
func (r *signatures) bundle(ctx context.Context, of digest.Digest) ([]byte, error) {
	raw, err := r.manifest(ctx, of.String(), maxSignature)
	if err != nil {
		return nil, err
	}
	for layer, err := range layersOf(raw) {
		switch {
		case err != nil:
			return nil, err
		case strings.HasPrefix(layer.MediaType, bundlePrefix):
			return r.blob(ctx, layer)
		}
	}
	return nil, failure.New(failure.ErrSignature, "%s has no bundle", itsManifest)
}

// manifest reads a manifest, of at most a number of bytes.
func (r *signatures) manifest(ctx context.Context, reference string, most int64) ([]byte, error) {
	about, body, err := r.FetchReference(ctx, reference)
	if err := r.Failed(err, reference+" with the signatures"); err != nil {
		return nil, err
	}
	defer body.Close()
	return read(about, body, itsManifest, most)
}

// layersOf returns the layers of a manifest. They are decoded one after the other, because somebody hostile may have written as many as fit in.
func layersOf(manifest []byte) iter.Seq2[ocispec.Descriptor, error] {
	return func(yield func(ocispec.Descriptor, error) bool) {
		var has struct{ Layers json.RawMessage }
		if err := json.Unmarshal(manifest, &has); err != nil {
			yield(ocispec.Descriptor{}, failure.New(failure.ErrSignature, "%s is not JSON", itsManifest))
			return
		}
		list := json.NewDecoder(bytes.NewReader(has.Layers))
		if start, err := list.Token(); err != nil || start != json.Delim('[') {
			return
		}
		for list.More() {
			var raw json.RawMessage
			err := list.Decode(&raw)
			if err != nil { // It was checked above.
				yield(ocispec.Descriptor{}, err)
				return
			}
			if !yield(layerOf(raw)) {
				return
			}
		}
	}
}

func layerOf(raw []byte) (layer ocispec.Descriptor, err error) {
	if len(raw) > maxSignature {
		return layer, failure.TooLarge("what "+itsManifest+" says of one", maxSignature)
	}
	if err := json.Unmarshal(raw, &layer); err != nil {
		return layer, failure.New(failure.ErrSignature, "%s describes one as nobody does: %s", itsManifest, few.Quote(err.Error()))
	}
	return layer, nil
}

// blob reads a layer.
func (r *signatures) blob(ctx context.Context, layer ocispec.Descriptor) ([]byte, error) {
	if layer.Size > maxSignature {
		return nil, failure.TooLarge(aSignature, maxSignature)
	}
	if layer.Digest.Validate() != nil {
		return nil, failure.New(failure.ErrSignature, "%s names one without a digest", itsManifest)
	}
	body, err := r.Blob(ctx, layer)
	if err := r.Failed(err, "signature"); err != nil {
		return nil, err
	}
	defer body.Close()
	return read(layer, body, aSignature, maxSignature)
}

// read reads what a descriptor describes, and compares the digest.
func read(about ocispec.Descriptor, body io.Reader, what string, most int64) ([]byte, error) {
	if about.Size > most {
		return nil, failure.TooLarge(what, most)
	}
	raw, err := content.ReadAll(body, about)
	switch {
	case errors.Is(err, content.ErrMismatchedDigest), errors.Is(err, content.ErrTrailingData), errors.Is(err, content.ErrInvalidDescriptorSize):
		return nil, failure.New(failure.ErrSignature, "%s is damaged in its registry", what)
	case err != nil:
		return nil, fmt.Errorf("%w: reading %s: %w", failure.ErrUnavailable, what, err)
	}
	return raw, nil
}
