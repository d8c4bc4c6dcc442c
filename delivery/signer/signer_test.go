package signer

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func inPEM(t *testing.T, key crypto.PublicKey, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func TestOnlyStrongKeysCanSign(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	p384 := inPEM(t, ec.Public(), err)
	edwards, _, err := ed25519.GenerateKey(rand.Reader)
	ed := inPEM(t, edwards, err)
	strong, err := rsa.GenerateKey(rand.Reader, 2048)
	rsa2048 := inPEM(t, strong.Public(), err)
	weak := "-----BEGIN PUBLIC KEY-----\nMFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAKj34GkxFhD90vcNLYLInFEX6Ppy1tPf\n9Cnzj4p4WGeKLs1Pt8QuKUpRKfFLfRYC9AIKjbJTWit+CqvjWYzvQwECAwEAAQ==\n-----END PUBLIC KEY-----\n"
	for name, c := range map[string]struct{ text, says string }{
		"ECDSA": {p384, ""}, "Ed25519": {ed, ""}, "RSA": {rsa2048, ""}, "RSA of 512 bits": {weak, "strong enough"},
		"nothing": {"", "in PEM"}, "a private key": {strings.ReplaceAll(ed, "PUBLIC", "PRIVATE"), "in PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Key(c.text)
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
	faults := Check([]v1alpha1.SignatureRule{{Keys: []string{ed}}, {Keys: []string{ed, "x"}, Identities: []v1alpha1.SignerIdentity{{Subject: "["}, {SubjectRegExp: "["}}}})
	var fields []string
	for _, f := range faults {
		fields = append(fields, f.Field)
	}
	if diff := cmp.Diff([]string{"[1].keys[1]", "[1].identities[1].subjectRegExp"}, fields); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if pattern, err := Subject(&v1alpha1.SignerIdentity{SubjectRegExp: "a|b"}); pattern != "^(?:a|b)$" || err != nil {
		t.Errorf("the whole subject has to match %q, %v", pattern, err)
	}
}
