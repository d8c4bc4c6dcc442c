package cosign

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
)

// signature is a signature as a registry has it, in the form that sigstore's library verifies. Nothing of it is verified yet.
type signature struct {
	// byKey is it as one by a key, byCertificate as one by a certificate; nil if it is not.
	byKey, byCertificate verify.SignedEntity
	// payload is what cosign 2 signs in place of the digest, and about is the digest in it. Without a payload, the signed statement has the digest.
	payload []byte
	about   string
	// damaged is why it cannot be read.
	damaged error
}

// ofBundle reads a bundle.
func ofBundle(text []byte) (s signature) {
	defer func() {
		if r := recover(); r != nil {
			s = signature{damaged: fmt.Errorf("the bundle cannot be read: %v", r)}
		}
	}()
	read := &bundle.Bundle{}
	if err := read.UnmarshalJSON(text); err != nil {
		return signature{damaged: fmt.Errorf("reading the bundle: %w", err)}
	}
	if read.GetDsseEnvelope() == nil {
		return signature{damaged: fmt.Errorf("the bundle has no statement")}
	}
	if read.GetVerificationMaterial().GetPublicKey() != nil {
		return signature{byKey: read}
	}
	return signature{byCertificate: read}
}

// simpleSigning is the part of the payload that is used.
type simpleSigning struct {
	Critical struct {
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
	} `json:"critical"`
}

// ofPayload reads a signature of a payload, which annotations describe.
func ofPayload(payload []byte, annotations map[string]string) (s signature) {
	defer func() {
		if r := recover(); r != nil {
			s = signature{damaged: fmt.Errorf("the signature cannot be read: %v", r)}
		}
	}()
	var says simpleSigning
	if err := json.Unmarshal(payload, &says); err != nil {
		return signature{damaged: fmt.Errorf("reading what is signed: %w", err)}
	}
	raw, err := base64.StdEncoding.DecodeString(annotations[annSignature])
	if err != nil {
		return signature{damaged: fmt.Errorf("reading the signature: %w", err)}
	}
	s = signature{payload: payload, about: says.Critical.Image.Digest}
	material := &protobundle.VerificationMaterial{Content: &protobundle.VerificationMaterial_PublicKey{PublicKey: &protocommon.PublicKeyIdentifier{}}}
	if s.byKey, err = entityOf(payload, raw, material); err != nil {
		return signature{damaged: err}
	}
	if annotations[annCert] == "" {
		return s
	}
	if material, err = certified(annotations); err == nil {
		s.byCertificate, err = entityOf(payload, raw, material)
	}
	if err != nil {
		return signature{damaged: err}
	}
	return s
}

// entityOf returns a bundle of the first version, which needs no proof of inclusion in a log, as cosign 2 does not keep one.
func entityOf(payload, raw []byte, material *protobundle.VerificationMaterial) (verify.SignedEntity, error) {
	sum := sha256.Sum256(payload)
	made, err := bundle.NewBundle(&protobundle.Bundle{
		MediaType: "application/vnd.dev.sigstore.bundle+json;version=0.1", VerificationMaterial: material,
		Content: &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
			MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: sum[:]}, Signature: raw,
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("reading the signature: %w", err)
	}
	return made, nil
}

// certified returns the certificate, the entry in a log and the timestamp that annotations have.
func certified(annotations map[string]string) (*protobundle.VerificationMaterial, error) {
	certificates, err := cryptoutils.UnmarshalCertificatesFromPEM([]byte(annotations[annCert]))
	if err != nil || len(certificates) == 0 {
		return nil, fmt.Errorf("reading the certificate of the signature: %w", err)
	}
	material := &protobundle.VerificationMaterial{Content: &protobundle.VerificationMaterial_X509CertificateChain{
		X509CertificateChain: &protocommon.X509CertificateChain{Certificates: []*protocommon.X509Certificate{{RawBytes: certificates[0].Raw}}},
	}}
	if text := annotations[annLogEntry]; text != "" {
		entry, err := entryOf(text)
		if err != nil {
			return nil, err
		}
		material.TlogEntries = []*protorekor.TransparencyLogEntry{entry}
	}
	if text := annotations[annTimestamp]; text != "" {
		var stamp struct{ SignedRFC3161Timestamp []byte }
		if err := json.Unmarshal([]byte(text), &stamp); err != nil {
			return nil, fmt.Errorf("reading the timestamp of the signature: %w", err)
		}
		material.TimestampVerificationData = &protobundle.TimestampVerificationData{
			Rfc3161Timestamps: []*protocommon.RFC3161SignedTimestamp{{SignedTimestamp: stamp.SignedRFC3161Timestamp}},
		}
	}
	return material, nil
}

// logged is an entry in a log, as cosign 2 writes it.
type logged struct {
	SignedEntryTimestamp []byte
	Payload              struct {
		Body           []byte `json:"body"`
		IntegratedTime int64  `json:"integratedTime"`
		LogIndex       int64  `json:"logIndex"`
		LogID          string `json:"logID"`
	}
}

func entryOf(text string) (*protorekor.TransparencyLogEntry, error) {
	var entry logged
	if err := json.Unmarshal([]byte(text), &entry); err != nil {
		return nil, fmt.Errorf("reading the log entry of the signature: %w", err)
	}
	id, err := hex.DecodeString(entry.Payload.LogID)
	if err != nil {
		return nil, fmt.Errorf("reading the log of the signature: %w", err)
	}
	var kind struct{ Kind, APIVersion string }
	if err := json.Unmarshal(entry.Payload.Body, &kind); err != nil {
		return nil, fmt.Errorf("reading what the log has of the signature: %w", err)
	}
	return &protorekor.TransparencyLogEntry{
		LogIndex: entry.Payload.LogIndex, LogId: &protocommon.LogId{KeyId: id}, IntegratedTime: entry.Payload.IntegratedTime,
		KindVersion:       &protorekor.KindVersion{Kind: kind.Kind, Version: kind.APIVersion},
		InclusionPromise:  &protorekor.InclusionPromise{SignedEntryTimestamp: entry.SignedEntryTimestamp},
		CanonicalizedBody: entry.Payload.Body,
	}, nil
}
