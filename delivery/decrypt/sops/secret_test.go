package sops

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ProtonMail/go-crypto/openpgp"
	pgparmor "github.com/ProtonMail/go-crypto/openpgp/armor"

	"github.com/kubeop/kubeop/delivery/decrypt"
)

// armored writes an OpenPGP key, with its private part or without.
func armored(t *testing.T, entity *openpgp.Entity, private bool) []byte {
	t.Helper()
	var text bytes.Buffer
	kind := openpgp.PublicKeyType
	if private {
		kind = openpgp.PrivateKeyType
	}
	out, err := pgparmor.Encode(&text, kind, nil)
	if err != nil {
		t.Fatal(err)
	}
	if private {
		err = entity.SerializePrivateWithoutSigning(out, nil)
	} else {
		err = entity.Serialize(out)
	}
	if err = errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

func TestOpenPGPKeysThatCannotDecryptAreRefused(t *testing.T) {
	ring, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(keyData(t, "pgp.asc")))
	if err != nil {
		t.Fatal(err)
	}
	public := armored(t, ring[0], false)
	if err := ring[0].EncryptPrivateKeys([]byte("a passphrase"), nil); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		key  []byte
		want string
	}{
		"a public key":          {public, "key a.asc of Secret team/k holds a public OpenPGP key; it takes the private one; an administrator of the cluster may run: kubectl create secret generic k -n team"},
		"one with a passphrase": {armored(t, ring[0], true), "key a.asc of Secret team/k is protected by a passphrase; export the key without one; an administrator of the cluster may run: kubectl create secret generic k -n team"},
		"no key at all":         {nil, "key a.asc of Secret team/k holds no armored OpenPGP key"},
		"half of what it was":   {public[:len(public)/2], "key a.asc of Secret team/k holds no armored OpenPGP key"},
		"a key of another kind": {keyData(t, "one.agekey"), "key a.asc of Secret team/k holds no armored OpenPGP key"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New("team/k", map[string][]byte{"a.asc": tc.key}, nil)
			if !errors.Is(err, decrypt.ErrKeys) || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// TestADataKeyThatIsNoMessageIsOfNoKey: the file names the recipient, and what it holds for it is nothing.
func TestADataKeyThatIsNoMessageIsOfNoKey(t *testing.T) {
	d, err := New("k", map[string][]byte{"pgp.asc": keyData(t, "pgp.asc")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	data := bytes.ReplaceAll(read(t, "pgp.yaml"), []byte("-----BEGIN"), []byte("-----NOTHING"))
	if _, _, err := opened(d(decrypt.YAML, data)); !errors.Is(err, decrypt.ErrKeys) || !strings.Contains(err.Error(), "it is encrypted for OpenPGP") {
		t.Errorf("got %v", err)
	}
}

// panics stands for a client that cannot read an answer.
type panics struct{ asked int }

// RoundTrip implements http.RoundTripper.
func (p *panics) RoundTrip(*http.Request) (*http.Response, error) {
	p.asked++
	panic("an answer of a hundred pages")
}

func TestAnAnswerThatCannotBeReadIsAnErrorOfTheService(t *testing.T) {
	through := &panics{}
	d, err := New("keys", map[string][]byte{"sops.vault-token": []byte("s.right")}, through)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, _, err = opened(d(decrypt.YAML, sealedFor(t, ofVault("https://vault.example.com"))))
		if !errors.Is(err, decrypt.ErrService) || !strings.Contains(err.Error(), "(its answer cannot be read)") {
			t.Errorf("got %v", err)
		}
	}
	if through.asked != 1 {
		t.Errorf("it was asked %d times, want 1", through.asked)
	}
}

// TestTheMessageOfAServiceIsCut to a limit, and to one line.
func TestTheMessageOfAServiceIsCut(t *testing.T) {
	w := &world{t: t, servers: map[string]http.Handler{"vault.example.com": http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		out.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(out, `{"errors": ["a\n\tb %s"]}`, strings.Repeat("ä", 5000))
	})}}
	d, err := newDecrypter("keys", map[string][]byte{"sops.vault-token": []byte("s.right")}, w)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.decrypt(decrypt.YAML, sealedFor(t, ofVault("https://vault.example.com"))); !errors.Is(err, decrypt.ErrService) {
		t.Fatalf("got %v", err)
	}
	if len(d.services.failed) != 1 {
		t.Fatalf("failed are %v", d.services.failed)
	}
	for _, why := range d.services.failed {
		text := why.Error()
		if utf8.RuneCountInString(text) != maxReason || strings.ContainsAny(text, "\n\t") || !strings.Contains(text, "a b ä") || strings.ContainsRune(text, '\uFFFD') {
			t.Errorf("it is reported as %d characters: %q", utf8.RuneCountInString(text), text)
		}
	}
}

// TestAzureTakesACertificate instead of a password.
func TestAzureTakesACertificate(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	made, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made})) + string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	servers := azureFake()
	byPassword := servers["login.microsoftonline.com"]
	servers["login.microsoftonline.com"] = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.FormValue("client_assertion") == "" {
			byPassword.ServeHTTP(out, r)
			return
		}
		out.Header().Set("Content-Type", "application/json")
		fmt.Fprint(out, `{"access_token": "azure-token", "token_type": "Bearer", "expires_in": 3600}`)
	})
	yaml := "tenantId: 0000-1111\nclientId: kubeop\nclientCertificate: |\n  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
	w := &world{t: t, servers: servers}
	d, err := New("keys", map[string][]byte{"sops.azure-kv": []byte(yaml)}, w)
	if err != nil {
		t.Fatal(err)
	}
	if plain, _, err := opened(d(decrypt.YAML, sealedFor(t, ofAzure()))); err != nil || string(plain) != "a: hunter22\n" {
		t.Errorf("got %q, %v after %q", plain, err, w.asked)
	}
	for name, content := range map[string]string{
		"no YAML": "[", "no certificate": "tenantId: a\nclientId: b\nclientCertificate: none\n", "no tenant": "clientId: b\nclientSecret: c\n",
		"no client": "tenantId: a\nclientSecret: c\n", "no secret": "tenantId: a\nclientId: b\n", "no tenant of Azure": "tenantId: a b\nclientId: b\nclientSecret: c\n",
	} {
		_, err := New("keys", map[string][]byte{"sops.azure-kv": []byte(content)}, nil)
		if !errors.Is(err, decrypt.ErrKeys) || !strings.Contains(err.Error(), "key sops.azure-kv of Secret keys holds something else than tenantId, clientId and one of") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
