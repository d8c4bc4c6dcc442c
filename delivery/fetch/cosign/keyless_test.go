package cosign

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

const issuer, subject = "https://issuer.example.com", "https://github.com/acme/web/.github/workflows/release.yaml@refs/tags/v1"

// withoutCT is a sigstore whose certificates have no timestamps of a certificate log.
type withoutCT struct{ *ca.VirtualSigstore }

func (withoutCT) CTLogs() map[string]*root.TransparencyLog { return nil }

// keyless returns the annotations of a keyless signature of a payload, as cosign 2 writes them.
func keyless(t *testing.T, s *ca.VirtualSigstore, payload []byte) map[string]string {
	t.Helper()
	made, err := s.Sign(subject, issuer, payload)
	if err != nil {
		t.Fatal(err)
	}
	material, err := made.VerificationContent()
	if err != nil {
		t.Fatal(err)
	}
	content, err := made.SignatureContent()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := made.TlogEntries()
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	return map[string]string{
		annSignature: base64.StdEncoding.EncodeToString(content.Signature()),
		annCert:      string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: material.Certificate().Raw})),
		annLogEntry:  loggedAs(t, s, entries[0]),
	}
}

// loggedAs is the annotation with an entry of the log.
func loggedAs(t *testing.T, s *ca.VirtualSigstore, entry *tlog.Entry) string {
	t.Helper()
	of := entry.TransparencyLogEntry()
	id, err := s.RekorLogID()
	if err != nil {
		t.Fatal(err)
	}
	payload := tlog.RekorPayload{Body: base64.StdEncoding.EncodeToString(of.CanonicalizedBody), IntegratedTime: of.IntegratedTime, LogIndex: of.LogIndex, LogID: id}
	promise, err := s.RekorSignPayload(payload)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{"SignedEntryTimestamp": promise, "Payload": payload})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestKeylessSignaturesCountForTheirIdentity, with a certificate and a log of the trusted root.
func TestKeylessSignaturesCountForTheirIdentity(t *testing.T) {
	ours, err := ca.NewVirtualSigstore()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := ca.NewVirtualSigstore()
	if err != nil {
		t.Fatal(err)
	}
	payload := sources.Payload(signedDigest)
	good := keyless(t, ours, payload)
	without := func(annotation string) map[string]string {
		left := map[string]string{}
		for k, v := range good {
			if k != annotation {
				left[k] = v
			}
		}
		return left
	}
	for name, c := range map[string]struct {
		annotations map[string]string
		identity    v1alpha1.SignerIdentity
		says        string
	}{
		"the subject":                {good, v1alpha1.SignerIdentity{Issuer: issuer, Subject: subject}, ""},
		"an expression":              {good, v1alpha1.SignerIdentity{Issuer: issuer, SubjectRegExp: `https://github\.com/acme/.*`}, ""},
		"an expression of a part":    {good, v1alpha1.SignerIdentity{Issuer: issuer, SubjectRegExp: `github\.com/acme`}, "none of its 1 signatures is by one of the identities"},
		"another subject":            {good, v1alpha1.SignerIdentity{Issuer: issuer, Subject: subject + "x"}, "none of its 1 signatures is by one of the identities"},
		"another issuer":             {good, v1alpha1.SignerIdentity{Issuer: issuer + "x", Subject: subject}, "none of its 1 signatures is by one of the identities"},
		"of another sigstore":        {keyless(t, theirs, payload), v1alpha1.SignerIdentity{Issuer: issuer, Subject: subject}, "none of its 1 signatures is by one of the identities"},
		"not in the log":             {without(annLogEntry), v1alpha1.SignerIdentity{Issuer: issuer, Subject: subject}, "none of its 1 signatures is by one of the identities"},
		"without certificate":        {without(annCert), v1alpha1.SignerIdentity{Issuer: issuer, Subject: subject}, "it is by a key, not by a certificate"},
		"logged as something else":   {keyless(t, ours, bytes.ToUpper(payload)), v1alpha1.SignerIdentity{Issuer: issuer, Subject: subject}, "none of its 1 signatures is by one of the identities"},
		"an entry that is no object": {map[string]string{annSignature: good[annSignature], annCert: good[annCert], annLogEntry: "x"}, v1alpha1.SignerIdentity{Issuer: issuer, Subject: subject}, "reading the log entry"},
	} {
		t.Run(name, func(t *testing.T) {
			server, v, image := registry(t)
			v.trusted = withoutCT{ours}
			server.PushPayloads(t, signedDigest, sources.Layer{Payload: payload, Annotations: c.annotations})
			err := v.Verify(t.Context(), image, []v1alpha1.SignatureRule{{Images: []string{"*"}, Identities: []v1alpha1.SignerIdentity{c.identity}}})
			if c.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			sources.WantError(t, err, failure.ErrSignature, c.says)
		})
	}
	server, v, image := registry(t)
	v.trusted = ours
	server.PushPayloads(t, signedDigest, sources.Layer{Payload: payload, Annotations: good})
	rule := v1alpha1.SignatureRule{Images: []string{"*"}, Identities: []v1alpha1.SignerIdentity{{Issuer: issuer, Subject: subject}}}
	sources.WantError(t, v.Verify(t.Context(), image, []v1alpha1.SignatureRule{rule}), failure.ErrSignature, "signed certificate timestamp")
}

func TestATrustedRootIsReadOrRefused(t *testing.T) {
	if trusted, err := TrustedRoot(""); trusted != nil || err != nil {
		t.Error(trusted, err)
	}
	if _, err := TrustedRoot("{"); err == nil || !strings.Contains(err.Error(), "reading the trusted root of sigstore") {
		t.Error(err)
	}
	const empty = `{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`
	if trusted, err := TrustedRoot(empty); trusted == nil || err != nil {
		t.Error(trusted, err)
	}
}

// FuzzSignatures: whatever a registry serves, it is no signature of the key, and ends no process.
func FuzzSignatures(f *testing.F) {
	key := sources.NewSigner(f)
	rule := keyed(key)
	f.Add(sources.Payload(signedDigest), "AAAA", "x", "{}")
	f.Add([]byte(`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"publicKey":{}},"dsseEnvelope":{}}`), "", "", "")
	f.Add([]byte(`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"certificate":{"rawBytes":"AAAA"},"tlogEntries":[{}]},"dsseEnvelope":{"signatures":[{}]}}`), "", "", "")
	checked := NewVerifier(nil, nil, nil).read([]v1alpha1.SignatureRule{rule})[0]
	f.Fuzz(func(t *testing.T, text []byte, raw, certificate, entry string) {
		for _, s := range []signature{ofBundle(text), ofPayload(text, map[string]string{annSignature: raw, annCert: certificate, annLogEntry: entry})} {
			if err := checked.check(signedDigest, s); s.damaged == nil && err == nil {
				t.Errorf("%q is taken for a signature", text)
			}
		}
	})
}
