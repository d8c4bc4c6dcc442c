package stage

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
)

// Layer is a part of a manifest.
type Layer struct {
	MediaType   string
	Content     []byte
	Annotations map[string]string
}

// PushManifest pushes layers and a manifest with the media type of its configuration to the cluster's registry, and returns the manifest's digest.
func (s *Stage) PushManifest(ctx context.Context, repository, tag, config string, layers ...Layer) (string, error) {
	to, err := s.registryOf(repository)
	if err != nil {
		return "", err
	}
	manifest := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest}
	for i, l := range append([]Layer{{MediaType: config, Content: []byte("{}")}}, layers...) {
		blob := content.NewDescriptorFromBytes(l.MediaType, l.Content)
		if err := to.Blobs().Push(ctx, blob, bytes.NewReader(l.Content)); err != nil {
			return "", fmt.Errorf("pushing a part of %s:%s: %w", repository, tag, err)
		}
		blob.Annotations = l.Annotations
		if i == 0 {
			manifest.Config = blob
			continue
		}
		manifest.Layers = append(manifest.Layers, blob)
	}
	text, err := json.Marshal(manifest)
	if err != nil {
		return "", fmt.Errorf("writing the manifest of %s:%s: %w", repository, tag, err)
	}
	pushed := content.NewDescriptorFromBytes(manifest.MediaType, text)
	if err := to.PushReference(ctx, pushed, bytes.NewReader(text), tag); err != nil {
		return "", fmt.Errorf("pushing %s:%s: %w", repository, tag, err)
	}
	return pushed.Digest.String(), nil
}

// Digest returns the digest of a tag in the cluster's registry.
func (s *Stage) Digest(ctx context.Context, repository, tag string) (string, error) {
	from, err := s.registryOf(repository)
	if err != nil {
		return "", err
	}
	found, err := from.Resolve(ctx, tag)
	if err != nil {
		return "", fmt.Errorf("reading %s:%s: %w", repository, tag, err)
	}
	return found.Digest.String(), nil
}

func (s *Stage) registryOf(repository string) (*remote.Repository, error) {
	r, err := remote.NewRepository(s.Cluster.Registry.Host + "/" + repository)
	if err != nil {
		return nil, fmt.Errorf("naming the repository %s: %w", repository, err)
	}
	r.PlainHTTP = true
	return r, nil
}

// Signer signs what is in the cluster's registry, as "cosign sign --key" does.
type Signer struct{ key *ecdsa.PrivateKey }

// NewSigner returns a signer with a key of its own.
func NewSigner() (*Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return &Signer{key}, nil
}

// Public is the public key in PEM.
func (s *Signer) Public() (string, error) {
	der, err := x509.MarshalPKIXPublicKey(&s.key.PublicKey)
	if err != nil {
		return "", fmt.Errorf("writing the public key: %w", err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), nil
}

// Sign adds a signature of a digest in a repository.
func (s *Stage) Sign(ctx context.Context, repository, digest string, by *Signer) error {
	payload := fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":%q},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":null}`, repository, digest)
	sum := sha256.Sum256(payload)
	signature, err := ecdsa.SignASN1(rand.Reader, by.key, sum[:])
	if err != nil {
		return fmt.Errorf("signing %s: %w", digest, err)
	}
	_, err = s.PushManifest(ctx, repository, strings.ReplaceAll(digest, ":", "-")+".sig", ocispec.MediaTypeImageConfig, Layer{
		MediaType: "application/vnd.dev.cosign.simplesigning.v1+json", Content: payload,
		Annotations: map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(signature)},
	})
	return err
}
