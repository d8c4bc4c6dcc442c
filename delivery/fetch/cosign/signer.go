package cosign

import (
	"bytes"
	"crypto"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	sigstore "github.com/sigstore/sigstore/pkg/signature"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/signer"
)

// signPredicate is the predicate of statements that only say that somebody signed something. Others, such as those about vulnerabilities, are no
// signatures: they may say that something is wrong.
const signPredicate = "https://sigstore.dev/cosign/sign/v1"

// byKey returns nil if a signature is by a key and about the digest. A signature by a key needs no log and no timestamp: whoever has the key decides.
func byKey(text, digest string, s signature) error {
	if s.byKey == nil {
		return errors.New("it is by a certificate, not by a key")
	}
	key, err := signer.Key(text)
	if err != nil {
		return err
	}
	var all []error
	for _, load := range []func() (sigstore.Verifier, error){
		func() (sigstore.Verifier, error) { return sigstore.LoadVerifier(key, crypto.SHA256) },
		func() (sigstore.Verifier, error) { return sigstore.LoadDefaultVerifier(key) }, // The hash that goes with the curve.
	} {
		loaded, err := load()
		if err != nil {
			return err
		}
		trusted := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
			return root.NewExpiringKey(loaded, time.Time{}, time.Time{}), nil
		})
		verifier, err := verify.NewVerifier(trusted, verify.WithNoObserverTimestamps(), verify.WithoutStatementPredicate())
		if err != nil {
			return err
		}
		if err = s.verified(verifier, s.byKey, digest, verify.WithKey()); err == nil {
			return nil
		}
		all = append(all, err)
	}
	return all[0]
}

// byIdentity returns nil if a signature is by one of the identities, with a certificate of the trusted root, and is about the digest.
func (v *Verifier) byIdentity(identities []v1alpha1.SignerIdentity, digest string, s signature) error {
	if v.trusted == nil {
		return errors.New("kubeop has no trusted root for keyless signatures: an administrator sets sigstore.trustedRoot of the values of its chart")
	}
	if s.byCertificate == nil {
		return errors.New("it is by a key, not by a certificate")
	}
	options := []verify.VerifierOption{verify.WithObserverTimestamps(1), verify.WithoutStatementPredicate()}
	if len(v.trusted.RekorLogs()) > 0 {
		options = append(options, verify.WithTransparencyLog(1))
	}
	if len(v.trusted.CTLogs()) > 0 {
		options = append(options, verify.WithSignedCertificateTimestamps(1))
	}
	verifier, err := verify.NewVerifier(v.trusted, options...)
	if err != nil {
		return err
	}
	var any []verify.PolicyOption
	for _, i := range identities {
		pattern, err := signer.Subject(&i)
		if err != nil {
			return err
		}
		identity, err := verify.NewShortCertificateIdentity(i.Issuer, "", i.Subject, pattern)
		if err != nil {
			return err
		}
		any = append(any, verify.WithCertificateIdentity(identity))
	}
	return s.verified(verifier, s.byCertificate, digest, any...)
}

// verified returns nil if the verifier accepts a signature as one about the digest.
func (s *signature) verified(verifier *verify.Verifier, entity verify.SignedEntity, digest string, who ...verify.PolicyOption) error {
	if s.payload != nil {
		if s.about != digest {
			return errors.New("it is a signature of something else")
		}
		_, err := verifier.Verify(entity, verify.NewPolicy(verify.WithArtifact(bytes.NewReader(s.payload)), who...))
		return err
	}
	sum, err := hex.DecodeString(strings.TrimPrefix(digest, "sha256:"))
	if err != nil {
		return fmt.Errorf("reading the digest: %w", err)
	}
	result, err := verifier.Verify(entity, verify.NewPolicy(verify.WithArtifactDigest("sha256", sum), who...))
	switch {
	case err != nil:
		return err
	case result.Statement == nil || result.Statement.GetPredicateType() != signPredicate:
		return errors.New("it is a statement about something, not a signature as cosign sign makes it")
	}
	return nil
}
