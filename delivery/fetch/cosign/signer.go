package cosign

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
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

// rule is a rule about signatures, read once for all signatures of an image.
type rule struct {
	// wanted names who has to sign.
	wanted string
	keys   []key
	// certified verifies certificates, which have to have one of the identities; nil for a rule without identities.
	certified  *verify.Verifier
	identities []verify.PolicyOption
	// faults are why some of its keys, or its identities, cannot be used.
	faults []error
	// why the last signature does not satisfy the rule; nil before the first.
	why error
}

// key verifies signatures by a key: with SHA-256, and with the hash that goes with the key if that is another.
type key []*verify.Verifier

// read reads rules.
func (v *Verifier) read(rules []v1alpha1.SignatureRule) (all []*rule) {
	known := map[string]key{}
	for i := range rules {
		r := &rule{wanted: wanted(&rules[i])}
		r.addKeys(rules[i].Keys, known)
		if len(rules[i].Identities) > 0 {
			var err error
			if r.certified, r.identities, err = v.identified(rules[i].Identities); err != nil {
				r.faults = append(r.faults, err)
			}
		}
		all = append(all, r)
	}
	return all
}

// addKeys adds the keys of a rule. known are those that were read before, by their text.
func (r *rule) addKeys(texts []string, known map[string]key) {
	for _, text := range texts {
		if known[text] == nil {
			read, err := keyOf(text)
			if err != nil {
				r.faults = append(r.faults, err)
				continue
			}
			known[text] = read
		}
		r.keys = append(r.keys, known[text])
	}
}

// keyOf reads a key. A signature by a key needs no log and no timestamp: whoever has the key decides.
func keyOf(text string) (key, error) {
	public, err := signer.Key(text)
	if err != nil {
		return nil, err
	}
	loaded, err := sigstore.LoadVerifier(public, crypto.SHA256)
	if err != nil {
		return nil, err
	}
	all := []sigstore.Verifier{loaded}
	if ec, is := public.(*ecdsa.PublicKey); !is || ec.Curve != elliptic.P256() { // Its own hash is SHA-256.
		if loaded, err := sigstore.LoadDefaultVerifier(public); err == nil { // An unusual key has no hash of its own.
			all = append(all, loaded)
		}
	}
	var read key
	for _, loaded := range all {
		trusted := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
			return root.NewExpiringKey(loaded, time.Time{}, time.Time{}), nil
		})
		verifier, err := verify.NewVerifier(trusted, verify.WithNoObserverTimestamps(), verify.WithoutStatementPredicate())
		if err != nil {
			return nil, err
		}
		read = append(read, verifier)
	}
	return read, nil
}

// identified returns what verifies certificates of the trusted root, and the identities of which a certificate has to have one.
func (v *Verifier) identified(identities []v1alpha1.SignerIdentity) (*verify.Verifier, []verify.PolicyOption, error) {
	if v.trusted == nil {
		return nil, nil, errors.New("kubeop has no trusted root for keyless signatures: an administrator sets sigstore.trustedRoot of the values of its chart")
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
		return nil, nil, err
	}
	var accepted []verify.PolicyOption
	for i := range identities {
		pattern, err := signer.Subject(&identities[i])
		if err != nil {
			return nil, nil, err
		}
		identity, err := verify.NewShortCertificateIdentity(identities[i].Issuer, "", identities[i].Subject, pattern)
		if err != nil {
			return nil, nil, err
		}
		accepted = append(accepted, verify.WithCertificateIdentity(identity))
	}
	return verifier, accepted, nil
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

// check returns nil if a signature is by one of the keys or identities of the rule, and is about the digest.
func (r *rule) check(digest string, s signature) (err error) {
	defer func() {
		// A library that cannot read what a registry serves must not end the process.
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("the signature cannot be read: %v", panicked)
		}
	}()
	all := slices.Clip(r.faults)
	for _, k := range r.keys {
		err := k.signed(digest, s)
		if err == nil {
			return nil
		}
		all = append(all, err)
	}
	if r.certified != nil {
		err := r.byIdentity(digest, s)
		if err == nil {
			return nil
		}
		all = append(all, err)
	}
	if len(all) == 0 {
		return errors.New("the policy names nobody whose signature counts")
	}
	return errors.Join(all...)
}

// signed returns nil if a signature is by the key and about the digest.
func (k key) signed(digest string, s signature) (first error) {
	if s.byKey == nil {
		return errors.New("it is by a certificate, not by a key")
	}
	for _, verifier := range k {
		err := s.verified(verifier, s.byKey, digest, verify.WithKey())
		if err == nil {
			return nil
		}
		first = cmp.Or(first, err)
	}
	return first
}

// byIdentity returns nil if a signature is by one of the identities, with a certificate of the trusted root, and is about the digest.
func (r *rule) byIdentity(digest string, s signature) error {
	if s.byCertificate == nil {
		return errors.New("it is by a key, not by a certificate")
	}
	return s.verified(r.certified, s.byCertificate, digest, r.identities...)
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
