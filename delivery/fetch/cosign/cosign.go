// Package cosign verifies, with sigstore's library, who signed what is in OCI registries: images, charts and artifacts. It reads signatures as cosign
// writes them: up to version 2 under the tag sha256-<hex>.sig, and from version 3 on as bundles that refer to what they sign.
package cosign

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sigstore/sigstore-go/pkg/root"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

// Image is what has to be signed: an image, a chart or an artifact.
type Image struct {
	// Name is the repository with its registry, such as "registry.example.com/acme/web".
	Name string
	// Digest of its manifest, "sha256:<hex>".
	Digest string
	// Access says how the registry is reached.
	Access transport.Access
}

// Verifier verifies signatures. Safe for concurrent use.
type Verifier struct {
	network *transport.Network
	plain   []string
	trusted root.TrustedMaterial
	limits  transport.Timeouts
}

// NewVerifier returns a Verifier that connects to registries over the network and uses no TLS for the plain ones. trusted are the certificate authorities
// and logs of keyless signatures, which TrustedRoot reads; with nil, rules with identities are never satisfied.
func NewVerifier(network *transport.Network, plain []string, trusted root.TrustedMaterial) *Verifier {
	return &Verifier{network: network, plain: plain, trusted: trusted, limits: transport.DefaultTimeouts()}
}

// TrustedRoot reads a trusted root as "cosign trusted-root create" writes it. Without text it is nil.
func TrustedRoot(text string) (root.TrustedMaterial, error) {
	if text == "" {
		return nil, nil
	}
	trusted, err := root.NewTrustedRootFromJSON([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("reading the trusted root of sigstore: %w", err)
	}
	return trusted, nil
}

// Verify returns nil if the image has for each rule a signature that satisfies it. It always asks the registry. ctx bounds its time. A signature that
// cannot be read hides no other.
//
// Errors: ErrSignature, ErrAuthentication, ErrInvalid; any other is transient. They do not name the image.
func (v *Verifier) Verify(ctx context.Context, image Image, rules []v1alpha1.SignatureRule) error {
	_, err := transport.Within(ctx, v.limits, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, v.verify(ctx, image, rules)
	})
	return image.Access.Auth.NameSecret(err)
}

func (v *Verifier) verify(ctx context.Context, image Image, rules []v1alpha1.SignatureRule) error {
	host, _, _ := strings.Cut(image.Name, "/")
	access := image.Access
	access.Insecure = access.Insecure || slices.Contains(v.plain, host)
	repository, err := transport.OpenRegistry(v.network, image.Name, access)
	if err != nil {
		return err
	}
	defer repository.Close()
	from := &signatures{Registry: repository, search: search{digest: image.Digest, left: v.read(rules)}}
	if err := from.tagged(ctx); err != nil {
		return err
	}
	if len(from.left) > 0 {
		if err := from.referring(ctx); err != nil {
			return err
		}
	}
	return from.verdict()
}
