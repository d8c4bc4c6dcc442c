package cosign

import (
	"context"
	"errors"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

const signedDigest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

var other = "sha256:" + strings.Repeat("b", 64)

// registry is a registry in a test, and the image web in it.
func registry(t *testing.T) (*sources.OCIServer, *Verifier, Image) {
	t.Helper()
	server := sources.ServeOCI(t, httptest.NewServer)
	network := &transport.Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	host := server.Listener.Addr().String()
	return server, NewVerifier(network, []string{host}, nil), Image{Name: host + "/charts/web", Digest: signedDigest}
}

func keyed(signers ...*sources.Signer) v1alpha1.SignatureRule {
	rule := v1alpha1.SignatureRule{Images: []string{"*"}}
	for _, s := range signers {
		rule.Keys = append(rule.Keys, s.Public())
	}
	return rule
}

// TestOnlySignaturesByTheKeysOfTheDigestCount, in both layouts of cosign.
func TestOnlySignaturesByTheKeysOfTheDigestCount(t *testing.T) {
	a, b := sources.NewSigner(t), sources.NewSigner(t)
	tagged := func(of string, by *sources.Signer) func(*sources.OCIServer) {
		return func(s *sources.OCIServer) { s.SignTagged(t, of, by) }
	}
	payloads := func(layers ...sources.Layer) func(*sources.OCIServer) {
		return func(s *sources.OCIServer) { s.PushPayloads(t, signedDigest, layers...) }
	}
	referring := func(predicate string, by *sources.Signer) func(*sources.OCIServer) {
		return func(s *sources.OCIServer) { s.SignReferring(t, signedDigest, predicate, by) }
	}
	bundled := func(text string) func(*sources.OCIServer) {
		return func(s *sources.OCIServer) { s.PushBundle(t, signedDigest, []byte(text)) }
	}
	right, wrong := sources.Payload(signedDigest), sources.Payload(other)
	for name, c := range map[string]struct {
		has   func(*sources.OCIServer)
		rules []v1alpha1.SignatureRule
		kind  error
		says  string
	}{
		"tagged, by the key":            {tagged(signedDigest, a), []v1alpha1.SignatureRule{keyed(a)}, nil, ""},
		"tagged, by one of two keys":    {tagged(signedDigest, b), []v1alpha1.SignatureRule{keyed(a, b)}, nil, ""},
		"tagged, one rule not met":      {tagged(signedDigest, a), []v1alpha1.SignatureRule{keyed(a), keyed(b)}, failure.ErrSignature, "none of its 1 signatures is by one of the keys of the policy"},
		"tagged, by another key":        {tagged(signedDigest, b), []v1alpha1.SignatureRule{keyed(a)}, failure.ErrSignature, "none of its 1 signatures is by one of the keys of the policy"},
		"tagged, of another digest":     {tagged(other, a), []v1alpha1.SignatureRule{keyed(a)}, failure.ErrSignature, "it has no signature in its registry"},
		"copied from another digest":    {payloads(sources.Layer{Payload: wrong, Annotations: a.Annotations(wrong)}), []v1alpha1.SignatureRule{keyed(a)}, failure.ErrSignature, "it is a signature of something else"},
		"of another payload":            {payloads(sources.Layer{Payload: right, Annotations: a.Annotations(wrong)}), []v1alpha1.SignatureRule{keyed(a)}, failure.ErrSignature, "none of its 1 signatures"},
		"two, the second by the key":    {payloads(sources.Layer{Payload: right, Annotations: b.Annotations(right)}, sources.Layer{Payload: right, Annotations: a.Annotations(right)}), []v1alpha1.SignatureRule{keyed(a)}, nil, ""},
		"garbage as payload":            {payloads(sources.Layer{Payload: []byte("{"), Annotations: a.Annotations([]byte("{"))}), []v1alpha1.SignatureRule{keyed(a)}, failure.ErrSignature, "reading what is signed"},
		"garbage as signature":          {payloads(sources.Layer{Payload: right, Annotations: map[string]string{annSignature: "%"}}), []v1alpha1.SignatureRule{keyed(a)}, failure.ErrSignature, "reading the signature"},
		"garbage as certificate":        {payloads(sources.Layer{Payload: right, Annotations: map[string]string{annSignature: "AAAA", annCert: "x"}}), []v1alpha1.SignatureRule{keyed(a)}, failure.ErrSignature, "reading the certificate"},
		"a payload that is huge":        {payloads(sources.Layer{Payload: make([]byte, maxSignature+1), Annotations: a.Annotations(nil)}), []v1alpha1.SignatureRule{keyed(a)}, failure.ErrSignature, "a signature of it is larger than the limit of 64 KiB"},
		"referring, by the key":         {referring(signPredicate, a), []v1alpha1.SignatureRule{keyed(a)}, nil, ""},
		"referring, by another key":     {referring(signPredicate, b), []v1alpha1.SignatureRule{keyed(a)}, failure.ErrSignature, "none of its 1 signatures"},
		"a statement about a weakness":  {referring("https://cosign.sigstore.dev/attestation/vuln/v1", a), []v1alpha1.SignatureRule{keyed(a)}, failure.ErrSignature, "it is a statement about something"},
		"garbage as bundle":             {bundled("{"), []v1alpha1.SignatureRule{keyed(a)}, failure.ErrSignature, "reading the bundle"},
		"a bundle without a statement":  {bundled(`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"publicKey":{}},"messageSignature":{}}`), []v1alpha1.SignatureRule{keyed(a)}, failure.ErrSignature, "the bundle has no statement"},
		"unsigned":                      {func(*sources.OCIServer) {}, []v1alpha1.SignatureRule{keyed(a)}, failure.ErrSignature, "it has no signature in its registry"},
		"by a key, wanted an identity":  {tagged(signedDigest, a), []v1alpha1.SignatureRule{{Identities: []v1alpha1.SignerIdentity{{Issuer: "i", Subject: "s"}}}}, failure.ErrSignature, "kubeop has no trusted root for keyless signatures"},
		"a key that nobody can sign by": {tagged(signedDigest, a), []v1alpha1.SignatureRule{{Keys: []string{"x"}}}, failure.ErrSignature, "must be a public key in PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			server, v, image := registry(t)
			c.has(server)
			err := v.Verify(t.Context(), image, c.rules)
			if c.kind == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			sources.WantError(t, err, c.kind, c.says)
		})
	}
}

// TestABundleOfAnotherDigestDoesNotCount: the index of what refers to a digest is only a list that anybody with the right to push wrote.
func TestABundleOfAnotherDigestDoesNotCount(t *testing.T) {
	a := sources.NewSigner(t)
	server, v, image := registry(t)
	server.SignReferring(t, other, signPredicate, a)
	server.Manifests["sha256-"+signedDigest[7:]] = server.Manifests["sha256-"+other[7:]]
	sources.WantError(t, v.Verify(t.Context(), image, []v1alpha1.SignatureRule{keyed(a)}), failure.ErrSignature, "none of its 1 signatures")
}

// TestOnlySoManySignaturesAreRead: whoever may push could make every verification endless.
func TestOnlySoManySignaturesAreRead(t *testing.T) {
	a, b := sources.NewSigner(t), sources.NewSigner(t)
	server, v, image := registry(t)
	payload := sources.Payload(signedDigest)
	var layers []sources.Layer
	for range maxSignatures {
		layers = append(layers, sources.Layer{Payload: payload, Annotations: b.Annotations(payload)})
	}
	server.PushPayloads(t, signedDigest, append(layers, sources.Layer{Payload: payload, Annotations: a.Annotations(payload)})...)
	sources.WantError(t, v.Verify(t.Context(), image, []v1alpha1.SignatureRule{keyed(a)}), failure.ErrSignature, "none of its 32 signatures")
	server.PushPayloads(t, signedDigest, append(layers[1:], sources.Layer{Payload: payload, Annotations: a.Annotations(payload)})...)
	if err := v.Verify(t.Context(), image, []v1alpha1.SignatureRule{keyed(a)}); err != nil {
		t.Error(err)
	}
}

// TestOnlySoManyBundlesAreRead, of which other things that refer to the digest are none.
func TestOnlySoManyBundlesAreRead(t *testing.T) {
	a, b := sources.NewSigner(t), sources.NewSigner(t)
	server, v, image := registry(t)
	index := "sha256-" + signedDigest[7:]
	server.SignReferring(t, signedDigest, signPredicate, a)
	byA := server.Manifests[index]
	delete(server.Manifests, index)
	server.SignReferring(t, signedDigest, signPredicate, b)
	byB := server.Manifests[index]
	all := []byte(strings.Replace(string(byB), bundlePrefix, "application/x", 1))
	for range maxSignatures - 1 {
		all = joined(t, all, byB)
	}
	rules := []v1alpha1.SignatureRule{keyed(a)}
	server.Manifests[index] = joined(t, joined(t, all, byA), byB)
	if err := v.Verify(t.Context(), image, rules); err != nil {
		t.Error(err)
	}
	server.Manifests[index] = joined(t, joined(t, all, byB), byA)
	sources.WantError(t, v.Verify(t.Context(), image, rules), failure.ErrSignature, "none of its 32 signatures")
}

// TestOnlyLayersOfCosignAreSignatures, of which the manifest under the tag may have others.
func TestOnlyLayersOfCosignAreSignatures(t *testing.T) {
	a, b := sources.NewSigner(t), sources.NewSigner(t)
	server, v, image := registry(t)
	payload := sources.Payload(signedDigest)
	layer := sources.Layer{Payload: payload, Annotations: b.Annotations(payload)}
	server.PushPayloads(t, signedDigest, sources.Layer{Payload: payload, Annotations: a.Annotations(payload)}, layer, sources.Layer{Payload: payload, Annotations: map[string]string{"note": "x"}})
	server.Manifests[tagged] = []byte(strings.Replace(string(server.Manifests[tagged]), payloadType, "application/x", 1))
	sources.WantError(t, v.Verify(t.Context(), image, []v1alpha1.SignatureRule{keyed(a)}), failure.ErrSignature, "none of its 1 signatures")
}

// TestARegistryThatDoesNotAnswerIsNoVerdict: it is tried again.
func TestARegistryThatDoesNotAnswerIsNoVerdict(t *testing.T) {
	server, v, image := registry(t)
	v.limits.Answer = 50 * time.Millisecond
	slow := httptest.NewServer(sources.Hang("", ""))
	t.Cleanup(slow.Close)
	host := slow.Listener.Addr().String()
	image.Name, v.plain = host+"/charts/web", append(v.plain, host)
	sources.WantError(t, v.Verify(t.Context(), image, []v1alpha1.SignatureRule{keyed(sources.NewSigner(t))}), failure.ErrSlow, "gave no answer within")

	server.Close()
	image.Name = server.Listener.Addr().String() + "/charts/web"
	rules := []v1alpha1.SignatureRule{keyed(sources.NewSigner(t))}
	sources.WantError(t, v.Verify(t.Context(), image, rules), failure.ErrUnavailable, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := v.Verify(ctx, image, rules); err == nil || errors.Is(err, failure.ErrSignature) {
		t.Error("verified without a registry")
	}
}
