package sops

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sopslib "github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/azkv"
	"github.com/getsops/sops/v3/config"
	"github.com/getsops/sops/v3/gcpkms"
	"github.com/getsops/sops/v3/hcvault"
	sopskeys "github.com/getsops/sops/v3/keys"
	"github.com/getsops/sops/v3/kms"
	"github.com/getsops/sops/v3/stores/yaml"

	"github.com/kubeop/kubeop/delivery/decrypt"
)

// world are servers by host. It fails a test in which another is asked.
type world struct {
	t       *testing.T
	servers map[string]http.Handler
	asked   []string
}

// RoundTrip implements http.RoundTripper.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	w.asked = append(w.asked, r.Method+" "+r.URL.Host+r.URL.Path)
	server := w.servers[r.URL.Host]
	if server == nil || r.URL.Scheme != "https" {
		w.t.Errorf("%s is asked", r.URL)
		return nil, errors.New("there is no such host")
	}
	out := httptest.NewRecorder()
	server.ServeHTTP(out, r)
	answer := out.Result()
	answer.Request = r
	return answer, nil
}

const (
	arn      = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
	resource = "projects/acme/locations/global/keyRings/apps/cryptoKeys/shop"
)

// enc is what each service decrypts to dataKey.
var enc = []byte("an encrypted data key")

func ofAWS() *kms.MasterKey {
	at := "prod"
	return &kms.MasterKey{Arn: arn, EncryptedKey: base64.StdEncoding.EncodeToString(enc), EncryptionContext: map[string]*string{"stage": &at}, AwsProfile: "default"}
}

func ofVault(address string) *hcvault.MasterKey {
	return &hcvault.MasterKey{VaultAddress: address, EnginePath: "transit", KeyName: "shop", EncryptedKey: "vault:v1:" + string(enc)}
}

func ofGCP() *gcpkms.MasterKey {
	return &gcpkms.MasterKey{ResourceID: resource, EncryptedKey: base64.StdEncoding.EncodeToString(enc)}
}

func ofAzure() *azkv.MasterKey {
	return &azkv.MasterKey{VaultURL: "https://shop.vault.azure.net", Name: "sops", Version: "0123", EncryptedKey: base64.RawURLEncoding.EncodeToString(enc)}
}

func TestServicesDecryptWithTheCredentialsOfTheSecret(t *testing.T) {
	role := ofAWS()
	role.Role = "arn:aws:iam::111122223333:role/deploy"
	account, gcp := gcpFake(t)
	tests := map[string]struct {
		key     sopskeys.MasterKey
		secret  map[string]string
		servers map[string]http.Handler
	}{
		"Vault":           {ofVault("https://vault.example.com:8200"), map[string]string{"sops.vault-token": "s.right\n"}, map[string]http.Handler{"vault.example.com:8200": vaultFake("s.right")}},
		"AWS KMS":         {ofAWS(), map[string]string{"sops.aws-kms": awsSecret}, map[string]http.Handler{"kms.eu-west-1.amazonaws.com": awsFake(t, "AKIDEXAMPLE", "a secret access key", "a session")}},
		"AWS with a role": {role, map[string]string{"sops.aws-kms": awsSecret}, map[string]http.Handler{"sts.eu-west-1.amazonaws.com": stsFake(t), "kms.eu-west-1.amazonaws.com": awsFake(t, "ASIAROLE", "secret of the role", "session of the role")}},
		"GCP KMS":         {ofGCP(), map[string]string{"sops.gcp-kms": account}, gcp},
		"Azure Key Vault": {ofAzure(), map[string]string{"sops.azure-kv": "tenantId: 0000-1111\nclientId: kubeop\nclientSecret: a client secret\n"}, azureFake()},
		"Azure as az":     {ofAzure(), map[string]string{"sops.azure-kv": `{"tenant": "0000-1111", "appId": "kubeop", "password": "a client secret"}`}, azureFake()},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := &world{t: t, servers: tc.servers}
			d, err := New("keys", bytesOf(tc.secret), w)
			if err != nil {
				t.Fatal(err)
			}
			plain, _, err := opened(d(decrypt.YAML, sealedFor(t, tc.key)))
			if err != nil || string(plain) != "a: hunter22\n" {
				t.Errorf("got %q, %v", plain, err)
			}
			t.Log(strings.Join(w.asked, "\n"))
		})
	}
}

func bytesOf(secret map[string]string) map[string][]byte {
	data := map[string][]byte{}
	for key, value := range secret {
		data[key] = []byte(value)
	}
	return data
}

func sealedFor(t *testing.T, keys ...sopskeys.MasterKey) []byte {
	t.Helper()
	return sealedText(t, "a: hunter22\n", keys...)
}

func sealedText(t *testing.T, text string, keys ...sopskeys.MasterKey) []byte {
	t.Helper()
	return sealed(t, yaml.NewStore(&config.YAMLStoreConfig{}), text, nil, keys...)
}

// TestAServiceWithoutCredentialsIsNotCalled: the message says what to add to the Secret.
func TestAServiceWithoutCredentialsIsNotCalled(t *testing.T) {
	secret, _ := identity(t)
	for name, tc := range map[string]struct {
		key  sopskeys.MasterKey
		want string
	}{
		"Vault": {ofVault("https://vault.example.com"), `Vault "https://vault.example.com/v1/transit/keys/shop" (it takes sops.vault-token in the Secret)`},
		"AWS":   {ofAWS(), `AWS KMS "` + arn + `" (it takes sops.aws-kms in the Secret)`},
		"GCP":   {ofGCP(), `GCP KMS "` + resource + `" (it takes sops.gcp-kms in the Secret)`},
		"Azure": {ofAzure(), `Azure Key Vault "https://shop.vault.azure.net/keys/sops" (it takes sops.azure-kv in the Secret)`},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := New("kubeop-acme-shop/keys", secret, &world{t: t})
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = opened(d(decrypt.YAML, sealedFor(t, tc.key)))
			want := "no key in Secret kubeop-acme-shop/keys decrypts it; it is encrypted for " + tc.want + "; an owner of the tenant with the role admin, or an administrator of the cluster, may run: " +
				"kubectl create secret generic keys -n kubeop-acme-shop --from-literal=KEY=... --dry-run=client -o yaml | kubectl apply -f -: cannot be decrypted"
			if err == nil || err.Error() != want || !errors.Is(err, decrypt.ErrKeys) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

// TestErrorsOfAServiceAreReportedWithoutCredentials, of a kind that is tried again, and the service is asked once.
func TestErrorsOfAServiceAreReportedWithoutCredentials(t *testing.T) {
	w := &world{t: t, servers: map[string]http.Handler{"vault.example.com": http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		out.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(out, `{"errors": ["permission denied for %s"]}`, r.Header.Get("X-Vault-Token"))
	})}}
	d, err := New("keys", map[string][]byte{"sops.vault-token": []byte("s.wrong-token")}, w)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, _, err = opened(d(decrypt.YAML, sealedFor(t, ofVault("https://vault.example.com"))))
		if !errors.Is(err, decrypt.ErrService) || !strings.Contains(err.Error(), "permission denied for ***") || strings.Contains(err.Error(), "s.wrong") {
			t.Errorf("got %v", err)
		}
	}
	if len(w.asked) != 1 {
		t.Errorf("asked: %s", w.asked)
	}
	if _, _, err = opened(d(decrypt.YAML, sealedFor(t, ofVault("unix:///run/vault.sock")))); err == nil || !strings.Contains(err.Error(), "does not begin with https://") {
		t.Errorf("by a socket: %v", err)
	}
}

// TestKeyGroupsMayBeOfServices: a part by Vault and a part by age.
func TestKeyGroupsMayBeOfServices(t *testing.T) {
	secret, master := identity(t)
	secret["sops.vault-token"] = []byte("s.right")
	parts := map[string][]byte{}
	data := sealedInParts(t, parts, master)
	w := &world{t: t, servers: map[string]http.Handler{"vault.example.com": http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(out, `{"data": {"plaintext": %q}}`, base64.StdEncoding.EncodeToString(parts["vault"]))
	})}}
	d, err := New("keys", secret, w)
	if err != nil {
		t.Fatal(err)
	}
	if plain, _, err := opened(d(decrypt.YAML, data)); err != nil || string(plain) != "a: hunter22\n" {
		t.Errorf("got %q, %v", plain, err)
	}
	parts["vault"] = bytes.Repeat([]byte("x"), keyBytes) // Of the length of a whole key.
	if _, _, err := opened(d(decrypt.YAML, data)); !errors.Is(err, decrypt.ErrService) || !strings.Contains(err.Error(), "decrypt 1 of its 2 key groups") {
		t.Errorf("got %v", err)
	}
}

func sealedInParts(t *testing.T, parts map[string][]byte, master sopskeys.MasterKey) []byte {
	t.Helper()
	split, err := splitKey()
	if err != nil {
		t.Fatal(err)
	}
	parts["vault"] = split[0]
	if err := master.Encrypt(split[1]); err != nil {
		t.Fatal(err)
	}
	return sealed(t, yaml.NewStore(&config.YAMLStoreConfig{}), "a: hunter22\n", func(m *sopslib.Metadata) {
		m.KeyGroups, m.ShamirThreshold = []sopslib.KeyGroup{{ofVault("https://vault.example.com")}, {master}}, 2
	})
}
