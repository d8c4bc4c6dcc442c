package sops

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/getsops/sops/v3/shamir"
)

func splitKey() ([][]byte, error) { return shamir.Split(dataKey, 2, 2) }

// vaultFake decrypts with the transit engine, for one token.
func vaultFake(token string) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		var in struct{ Ciphertext string }
		err := json.NewDecoder(r.Body).Decode(&in)
		switch {
		case r.Method != http.MethodPut || r.URL.Path != "/v1/transit/decrypt/shop":
			http.Error(out, `{"errors": []}`, http.StatusNotFound)
		case r.Header.Get("X-Vault-Token") != token:
			http.Error(out, `{"errors": ["permission denied"]}`, http.StatusForbidden)
		case err != nil || in.Ciphertext != "vault:v1:"+string(enc):
			http.Error(out, `{"errors": ["invalid ciphertext: no prefix"]}`, http.StatusBadRequest)
		default:
			fmt.Fprintf(out, `{"request_id": "1", "data": {"plaintext": %q}}`, base64.StdEncoding.EncodeToString(dataKey))
		}
	})
}

const awsSecret = "aws_access_key_id: AKIDEXAMPLE\naws_secret_access_key: a secret access key\naws_session_token: a session\n"

// signed reports an error unless the request has the AWS signature, version 4, of these credentials.
func signed(t *testing.T, r *http.Request, body []byte, service string, with aws.Credentials) error {
	t.Helper()
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return err
	}
	got := r.Header.Get("Authorization")
	again := r.Clone(t.Context())
	_, names, _ := strings.Cut(got, "SignedHeaders=")
	names, _, _ = strings.Cut(names, ",")
	again.Header = http.Header{}
	for name := range strings.SplitSeq(names, ";") {
		if value := r.Header.Values(name); value != nil {
			again.Header[http.CanonicalHeaderKey(name)] = value
		}
	}
	again.ContentLength = int64(len(body))
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(t.Context(), with, again, hex.EncodeToString(sum[:]), service, "eu-west-1", at); err != nil {
		return err
	}
	if want := again.Header.Get("Authorization"); got != want || !strings.Contains(got, "Credential="+with.AccessKeyID+"/") {
		return fmt.Errorf("the request has the signature\n%s, not\n%s", got, want)
	}
	return nil
}

// awsFake is AWS KMS, for one key and these credentials.
func awsFake(t *testing.T, id, secret, token string) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var in struct {
			CiphertextBlob    []byte
			KeyID             string `json:"KeyId"`
			EncryptionContext map[string]string
		}
		err := json.Unmarshal(body, &in)
		out.Header().Set("Content-Type", "application/x-amz-json-1.1")
		if why := signed(t, r, body, "kms", aws.Credentials{AccessKeyID: id, SecretAccessKey: secret, SessionToken: token}); why != nil {
			t.Error(why)
			out.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(out, `{"__type": "InvalidSignatureException", "message": "The request signature we calculated does not match"}`)
			return
		}
		if err != nil || r.Header.Get("X-Amz-Target") != "TrentService.Decrypt" || in.KeyID != arn || in.EncryptionContext["stage"] != "prod" || !bytes.Equal(in.CiphertextBlob, enc) {
			out.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(out, `{"__type": "InvalidCiphertextException"}`)
			return
		}
		fmt.Fprintf(out, `{"KeyId": %q, "Plaintext": %q, "EncryptionAlgorithm": "SYMMETRIC_DEFAULT"}`, arn, base64.StdEncoding.EncodeToString(dataKey))
	})
}

// stsFake is AWS STS, which gives the credentials of a role to those of the Secret.
func stsFake(t *testing.T) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if why := signed(t, r, body, "sts", aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "a secret access key", SessionToken: "a session"}); why != nil {
			t.Error(why)
		}
		if !bytes.Contains(body, []byte("Action=AssumeRole&")) || !bytes.Contains(body, []byte("role%2Fdeploy")) {
			t.Errorf("STS is asked for %s", body)
		}
		fmt.Fprint(out, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials><AccessKeyId>ASIAROLE</AccessKeyId>`+
			`<SecretAccessKey>secret of the role</SecretAccessKey><SessionToken>session of the role</SessionToken><Expiration>2100-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`)
	})
}

// gcpFake is GCP's token service and KMS, and the key of the service account for which they work.
func gcpFake(t *testing.T) (account string, servers map[string]http.Handler) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "sops@acme.iam.gserviceaccount.com", "private_key_id": "1", "token_uri": "https://evil.example.com/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if err != nil {
		t.Fatal(err)
	}
	tokens := func(out http.ResponseWriter, r *http.Request) {
		parts := strings.Split(r.FormValue("assertion"), ".")
		signature, err := base64.RawURLEncoding.DecodeString(parts[len(parts)-1])
		sum := sha256.Sum256([]byte(strings.Join(parts[:len(parts)-1], ".")))
		if err != nil || r.URL.Path != "/token" || rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, sum[:], signature) != nil {
			http.Error(out, `{"error": "invalid_grant"}`, http.StatusBadRequest)
			return
		}
		out.Header().Set("Content-Type", "application/json")
		fmt.Fprint(out, `{"access_token": "gcp-token", "token_type": "Bearer", "expires_in": 3600}`)
	}
	kms := func(out http.ResponseWriter, r *http.Request) {
		var in struct{ Ciphertext []byte }
		err := json.NewDecoder(r.Body).Decode(&in)
		out.Header().Set("Content-Type", "application/json")
		if err != nil || r.URL.Path != "/v1/"+resource+":decrypt" || r.Header.Get("Authorization") != "Bearer gcp-token" || !bytes.Equal(in.Ciphertext, enc) {
			http.Error(out, `{"error": {"code": 403, "message": "denied", "status": "PERMISSION_DENIED"}}`, http.StatusForbidden)
			return
		}
		fmt.Fprintf(out, `{"plaintext": %q}`, base64.StdEncoding.EncodeToString(dataKey))
	}
	return string(text), map[string]http.Handler{"oauth2.googleapis.com": http.HandlerFunc(tokens), "cloudkms.googleapis.com": http.HandlerFunc(kms)}
}

// azureFake is the login of Azure and one Key Vault.
func azureFake() map[string]http.Handler {
	const login = "https://login.microsoftonline.com/0000-1111"
	logins := func(out http.ResponseWriter, r *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/.well-known/openid-configuration"):
			fmt.Fprintf(out, `{"token_endpoint": "%s/oauth2/v2.0/token", "authorization_endpoint": "%[1]s/oauth2/v2.0/authorize", "issuer": "%[1]s/v2.0"}`, login)
		case r.FormValue("client_id") == "kubeop" && r.FormValue("client_secret") == "a client secret" && strings.Contains(r.FormValue("scope"), "https://vault.azure.net/.default"):
			fmt.Fprint(out, `{"access_token": "azure-token", "token_type": "Bearer", "expires_in": 3600}`)
		default:
			http.Error(out, `{"error": "invalid_client"}`, http.StatusUnauthorized)
		}
	}
	vault := func(out http.ResponseWriter, r *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") != "Bearer azure-token" {
			out.Header().Set("WWW-Authenticate", `Bearer authorization="`+login+`", resource="https://vault.azure.net"`)
			out.WriteHeader(http.StatusUnauthorized)
			return
		}
		var in struct{ Alg, Value string }
		err := json.NewDecoder(r.Body).Decode(&in)
		if err != nil || r.URL.Path != "/keys/sops/0123/decrypt" || in.Alg != "RSA-OAEP-256" || in.Value != base64.RawURLEncoding.EncodeToString(enc) {
			http.Error(out, `{"error": {"code": "BadParameter"}}`, http.StatusBadRequest)
			return
		}
		fmt.Fprintf(out, `{"kid": "https://shop.vault.azure.net/keys/sops/0123", "value": %q}`, base64.RawURLEncoding.EncodeToString(dataKey))
	}
	return map[string]http.Handler{"login.microsoftonline.com": http.HandlerFunc(logins), "shop.vault.azure.net": http.HandlerFunc(vault)}
}
