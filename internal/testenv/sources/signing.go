package sources

import (
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
	"testing"
)

// Signer is a key that signs as cosign does.
type Signer struct {
	t   testing.TB
	key *ecdsa.PrivateKey
}

// NewSigner returns a Signer with a new key.
func NewSigner(t testing.TB) *Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &Signer{t, key}
}

// Public returns the public key in PEM.
func (s *Signer) Public() string {
	s.t.Helper()
	der, err := x509.MarshalPKIXPublicKey(s.key.Public())
	if err != nil {
		s.t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func (s *Signer) sign(content []byte) string {
	s.t.Helper()
	sum := sha256.Sum256(content)
	raw, err := ecdsa.SignASN1(rand.Reader, s.key, sum[:])
	if err != nil {
		s.t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// Payload is what cosign 2 signs in place of a digest.
func Payload(digest string) []byte {
	return fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":"web"},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":null}`, digest)
}

// Annotations are those of a signature of a payload by the signer.
func (s *Signer) Annotations(payload []byte) map[string]string {
	return map[string]string{"dev.cosignproject.cosign/signature": s.sign(payload)}
}

// SignTagged adds a signature of the digest, as cosign 2 does.
func (s *OCIServer) SignTagged(t testing.TB, digest string, by *Signer) {
	t.Helper()
	payload := Payload(digest)
	s.PushPayloads(t, digest, Layer{payload, by.Annotations(payload)})
}

// Layer is a layer with a payload that is signed.
type Layer struct {
	Payload     []byte
	Annotations map[string]string
}

// PushPayloads stores payloads where cosign 2 looks for signatures of the digest.
func (s *OCIServer) PushPayloads(t testing.TB, digest string, payloads ...Layer) {
	t.Helper()
	var layers []map[string]any
	for _, p := range payloads {
		l := layer("application/vnd.dev.cosign.simplesigning.v1+json", p.Payload)
		l["annotations"] = p.Annotations
		layers = append(layers, l)
	}
	s.push(t, tagOf(digest)+".sig", nil, "application/vnd.oci.image.config.v1+json", layers...)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range payloads {
		s.Blobs[DigestOf(p.Payload)] = p.Payload
	}
}

// tagOf is the tag under which registries without referrers list what refers to a digest.
func tagOf(digest string) string { return strings.ReplaceAll(digest, ":", "-") }

// SignReferring adds a signature of the digest that refers to it, as cosign 3 does, with a statement of the predicate.
func (s *OCIServer) SignReferring(t testing.TB, digest, predicate string, by *Signer) {
	t.Helper()
	statement := fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":%q}}],"predicateType":%q,"predicate":{}}`,
		strings.TrimPrefix(digest, "sha256:"), predicate)
	const payloadType = "application/vnd.in-toto+json"
	signed := by.sign(fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(statement), statement))
	s.PushBundle(t, digest, fmt.Appendf(nil, `{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"publicKey":{"hint":"key"}},`+
		`"dsseEnvelope":{"payload":%q,"payloadType":%q,"signatures":[{"sig":%q}]}}`, base64.StdEncoding.EncodeToString(statement), payloadType, signed))
}

// PushBundle stores a bundle that refers to the digest.
func (s *OCIServer) PushBundle(t testing.TB, digest string, bundle []byte) {
	t.Helper()
	const bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	manifest := s.push(t, "bundle", bundle, "application/vnd.oci.empty.v1+json", layer(bundleType, bundle))
	const indexType = "application/vnd.oci.image.index.v1+json"
	refers := layer("application/vnd.oci.image.manifest.v1+json", manifest)
	refers["artifactType"] = bundleType
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": indexType, "manifests": []any{refers}})
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.Manifests, "bundle")
	s.Manifests[DigestOf(manifest)], s.Manifests[tagOf(digest)] = manifest, index
}
