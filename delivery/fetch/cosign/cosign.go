// Package cosign verifies, with sigstore's library, who signed what is in OCI registries: images, charts and artifacts. It reads signatures as cosign
// writes them: up to version 2 under the tag sha256-<hex>.sig, and from version 3 on as bundles that refer to what they sign.
package cosign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sigstore/sigstore-go/pkg/root"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
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

// Verify returns nil if the image has for each rule a signature that satisfies it. It always asks the registry. ctx bounds its time.
//
// Errors: ErrSignature, ErrAuthentication, ErrInvalid, ErrTooLarge; any other is transient. They do not name the image.
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
	from := &signatures{Registry: repository, digest: image.Digest}
	tagged, err := from.tagged(ctx)
	if err != nil {
		return err
	}
	left, _ := v.unsatisfied(rules, image.Digest, tagged)
	if len(left) == 0 {
		return nil
	}
	referring, err := from.referring(ctx)
	if err != nil {
		return err
	}
	all := append(tagged, referring...)
	left, why := v.unsatisfied(left, image.Digest, all)
	switch {
	case len(left) == 0:
		return nil
	case len(all) == 0:
		return failure.New(failure.ErrSignature, "it has no signature in its registry")
	}
	return failure.New(failure.ErrSignature, "none of its %d signatures is %s: %s", len(all), wanted(&left[0]), failure.Printable(why.Error()))
}

// unsatisfied returns the rules that no signature satisfies, and why the last signature does not satisfy the first of them.
func (v *Verifier) unsatisfied(rules []v1alpha1.SignatureRule, digest string, all []signature) (left []v1alpha1.SignatureRule, why error) {
	for i := range rules {
		satisfied := func(s signature) bool {
			err := v.check(&rules[i], digest, s)
			if err != nil && len(left) == 0 {
				why = err
			}
			return err == nil
		}
		if !slices.ContainsFunc(all, satisfied) {
			left = append(left, rules[i])
		}
	}
	return left, why
}

// wanted names who has to sign.
func wanted(rule *v1alpha1.SignatureRule) string {
	switch {
	case len(rule.Identities) == 0:
		return "by one of the keys of the policy"
	case len(rule.Keys) == 0:
		return "by one of the identities of the policy"
	}
	return "by one of the keys and identities of the policy"
}

// check returns nil if a signature is by one of the keys or identities of a rule, and is about the digest.
func (v *Verifier) check(rule *v1alpha1.SignatureRule, digest string, s signature) (err error) {
	defer func() {
		// A library that cannot read what a registry serves must not end the process.
		if r := recover(); r != nil {
			err = fmt.Errorf("the signature cannot be read: %v", r)
		}
	}()
	if s.damaged != nil {
		return s.damaged
	}
	var all []error
	for _, key := range rule.Keys {
		err := byKey(key, digest, s)
		if err == nil {
			return nil
		}
		all = append(all, err)
	}
	if len(rule.Identities) > 0 {
		err := v.byIdentity(rule.Identities, digest, s)
		if err == nil {
			return nil
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}
