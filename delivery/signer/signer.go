// Package signer reads who has to have signed images: the keys and identities in images.verify of Policies. It is pure.
package signer

import (
	"crypto"
	"errors"
	"fmt"
	"regexp"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Key reads a public key in PEM: ECDSA, RSA or Ed25519.
func Key(text string) (crypto.PublicKey, error) {
	key, err := cryptoutils.UnmarshalPEMToPublicKey([]byte(text))
	if err != nil {
		return nil, errors.New("must be a public key in PEM, as cosign.pub has it")
	}
	if err = cryptoutils.ValidatePubKey(key); err == nil { //nolint:staticcheck // its successor links a whole certificate authority, for checks of RSA keys that it signs
		_, err = signature.LoadVerifier(key, crypto.SHA256)
	}
	if err != nil {
		return nil, fmt.Errorf("must be a public key of the type ECDSA, RSA or Ed25519, and strong enough: %w", err)
	}
	return key, nil
}

// Subject returns the expression that the whole subject of an identity has to match; "" if the identity names its subject.
func Subject(identity *v1alpha1.SignerIdentity) (string, error) {
	if identity.SubjectRegExp == "" {
		return "", nil
	}
	pattern := "^(?:" + identity.SubjectRegExp + ")$"
	if _, err := regexp.Compile(pattern); err != nil {
		return "", errors.New("must be a regular expression of RE2, such as https://github\\.com/acme/.*")
	}
	return pattern, nil
}

// Fault is a field of a rule that can never be satisfied.
type Fault struct {
	// Field is below the list of rules, such as "[0].keys[1]".
	Field, Why string
}

// Check returns the faults of rules that the schema does not find.
func Check(rules []v1alpha1.SignatureRule) (faults []Fault) {
	for i := range rules {
		at := fmt.Sprintf("[%d]", i)
		for j, key := range rules[i].Keys {
			if _, err := Key(key); err != nil {
				faults = append(faults, Fault{fmt.Sprintf("%s.keys[%d]", at, j), err.Error()})
			}
		}
		for j := range rules[i].Identities {
			if _, err := Subject(&rules[i].Identities[j]); err != nil {
				faults = append(faults, Fault{fmt.Sprintf("%s.identities[%d].subjectRegExp", at, j), err.Error()})
			}
		}
	}
	return faults
}
