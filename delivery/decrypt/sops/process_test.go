package sops

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/getsops/sops/v3/hcvault"
	sopskeys "github.com/getsops/sops/v3/keys"
	"github.com/getsops/sops/v3/kms"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/build"
	"github.com/kubeop/kubeop/delivery/decrypt"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/trials"
	"github.com/kubeop/kubeop/internal/sandbox"
)

// TestMain also is the confined process, as cmd/decrypt is.
func TestMain(m *testing.M) {
	if err := Isolate(); err != nil {
		panic(err)
	}
	if len(os.Args) > 1 && os.Args[1] == sandbox.Command {
		os.Exit(sandbox.Serve(os.Args[2:], map[string]sandbox.Function{build.Decrypts: build.Decrypting(New)}))
	}
	os.Exit(m.Run())
}

// builder builds in a process that can open no connection; services are reached by the client.
func builder(t *testing.T, client func(*url.URL, []byte) (*http.Client, error)) *build.Builder {
	t.Helper()
	pool := sandbox.New(sandbox.Options{Processes: 1, Log: logr.Discard()})
	t.Cleanup(pool.Close)
	run := func(ctx context.Context, c apart.Call) ([]byte, error) {
		return pool.Call(ctx, sandbox.Call{Function: c.Name, Input: c.Input, NewHandler: c.NewHandler, Limits: sandbox.Limits{Questions: c.Questions}})
	}
	return &build.Builder{Apart: apart.Runner{Run: run}, Services: client, Now: time.Now, Trials: trials.New(t.TempDir(), "these files")}
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n    name: words\ndata:\n    password: hunter22\n"

// built builds a manifest that is encrypted for the keys, and returns the value in it.
func built(t *testing.T, b *build.Builder, secret map[string][]byte, keys ...sopskeys.MasterKey) (string, error) {
	t.Helper()
	files := fstest.MapFS{"app/a.yaml": {Data: sealedText(t, configMap, keys...)}}
	made, err := b.Build(t.Context(), build.Request{App: types.NamespacedName{Namespace: "team", Name: "web"}, Tenant: "acme", Input: t.Name(), Identity: "commit", Source: build.Source{
		Files: files, Git: &v1alpha1.GitSource{Path: "app"}, Keys: &build.Keys{Secret: "keys", Data: secret}, Limits: budget.App{Objects: 10, Bytes: 1 << 20, Values: 1000},
	}})
	if err != nil {
		return "", err
	}
	data, _ := made.Objects[0].Object["data"].(map[string]any)
	value, _ := data["password"].(string)
	return value, nil
}

// TestAProcessReachesTheServiceOfTheSecret: Vault by the operator's guarded transport.
func TestAProcessReachesTheServiceOfTheSecret(t *testing.T) {
	server := httptest.NewTLSServer(vaultFake("s.right"))
	defer server.Close()
	b := builder(t, func(origin *url.URL, ca []byte) (*http.Client, error) {
		allowed := &transport.Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
		return transport.NewClient(allowed, transport.Auth{CA: ca}, origin)
	})
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	secret := map[string][]byte{"sops.vault-token": []byte("s.right"), "ca.crt": ca}
	if got, err := built(t, b, secret, ofVault(server.URL)); err != nil || got != "hunter22" {
		t.Errorf("got %q, %v", got, err)
	}
	secret["sops.vault-token"] = []byte("s.wrong")
	_, err := built(t, b, secret, ofVault(server.URL))
	if !errors.Is(err, decrypt.ErrService) || errors.Is(err, build.ErrUnfit) || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("with a wrong token: %v", err)
	}
	_, err = built(t, b, secret, ofVault(strings.Replace(server.URL, "127.0.0.1", "169.254.169.254", 1)))
	if !errors.Is(err, decrypt.ErrService) || !strings.Contains(err.Error(), "169.254.169.254 is") {
		t.Errorf("at a metadata service: %v", err)
	}
	if got, err := built(t, b, map[string][]byte{"sops.vault-token": []byte("s.right"), "ca.crt": ca}, ofVault(server.URL)); err != nil || got != "hunter22" {
		t.Errorf("the next build: %q, %v", got, err)
	}
}

// ambient sets credentials in the environment and the home of this process, which stands for the operator, and returns how often somebody
// asked the services that they name.
func ambient(t *testing.T) *atomic.Int64 {
	t.Helper()
	asked := &atomic.Int64{}
	metadata := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(metadata.Close)
	home := t.TempDir()
	account, err := json.Marshal(map[string]any{"type": "external_account", "token_url": metadata.URL, "credential_source": map[string]string{"url": metadata.URL}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{".vault-token": "s.operator", "gcp.json": string(account), "credentials": "[default]\naws_access_key_id = OPERATOR\naws_secret_access_key = operator\n"} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{
		"HOME": home, "AWS_ACCESS_KEY_ID": "OPERATOR", "AWS_SECRET_ACCESS_KEY": "operator", "AWS_SHARED_CREDENTIALS_FILE": filepath.Join(home, "credentials"),
		"AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata.URL, "AWS_CONTAINER_CREDENTIALS_FULL_URI": metadata.URL, "AWS_ENDPOINT_URL": metadata.URL,
		"GOOGLE_APPLICATION_CREDENTIALS": filepath.Join(home, "gcp.json"), "GOOGLE_CREDENTIALS": filepath.Join(home, "gcp.json"), "GCE_METADATA_HOST": metadata.Listener.Addr().String(),
		"GOOGLE_OAUTH_ACCESS_TOKEN": "operator", "SOPS_GCP_KMS_ENDPOINT": metadata.URL,
		"VAULT_TOKEN": "s.operator", "VAULT_ADDR": metadata.URL, "VAULT_AGENT_ADDR": metadata.URL,
		"AZURE_TENANT_ID": "operator", "AZURE_CLIENT_ID": "operator", "AZURE_CLIENT_SECRET": "operator", "IDENTITY_ENDPOINT": metadata.URL, "MSI_ENDPOINT": metadata.URL,
		"SOPS_AGE_KEY_CMD": "touch " + filepath.Join(home, "ran"),
	} {
		t.Setenv(name, value)
	}
	t.Cleanup(func() {
		if _, err := os.Stat(filepath.Join(home, "ran")); err == nil {
			t.Error("a command of the environment ran")
		}
	})
	return asked
}

// TestCredentialsOfTheOperatorAreNeverUsed, neither those of its environment, nor of files, nor of metadata services.
func TestCredentialsOfTheOperatorAreNeverUsed(t *testing.T) {
	asked := ambient(t)
	b := builder(t, func(origin *url.URL, _ []byte) (*http.Client, error) {
		t.Errorf("%s is asked", origin)
		return nil, errors.New("no network")
	})
	secret, _ := identity(t)
	for what, key := range map[string]sopskeys.MasterKey{"sops.vault-token": ofVault("https://vault.example.com"), "sops.aws-kms": ofAWS(), "sops.gcp-kms": ofGCP(), "sops.azure-kv": ofAzure()} {
		_, err := built(t, b, secret, key)
		if !errors.Is(err, decrypt.ErrKeys) || !strings.Contains(err.Error(), "(it takes "+what+" in the Secret)") {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("what the environment names was asked %d times, want 0", n)
	}
}

// TestCredentialsOfTheSecretAreUsedBesideThoseOfTheOperator with all of them there.
func TestCredentialsOfTheSecretAreUsedBesideThoseOfTheOperator(t *testing.T) {
	asked := ambient(t)
	account, gcp := gcpFake(t)
	hosts := map[string]http.Handler{"vault.example.com": vaultFake("s.right"), "kms.eu-west-1.amazonaws.com": awsFake(t, "AKIDEXAMPLE", "a secret access key", "a session")}
	for _, of := range []map[string]http.Handler{gcp, azureFake()} {
		for host, server := range of {
			hosts[host] = server
		}
	}
	b := builder(t, func(origin *url.URL, _ []byte) (*http.Client, error) { return byName(t, hosts[origin.Host]), nil })
	secret := bytesOf(map[string]string{"sops.aws-kms": awsSecret, "sops.vault-token": "s.right", "sops.gcp-kms": account, "sops.azure-kv": "tenantId: 0000-1111\nclientId: kubeop\nclientSecret: a client secret\n"})
	for name, key := range map[string]sopskeys.MasterKey{"AWS": ofAWS(), "Vault": ofVault("https://vault.example.com"), "GCP": ofGCP(), "Azure": ofAzure()} {
		if got, err := built(t, b, secret, key); err != nil || got != "hunter22" {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("what the environment names was asked %d times, want 0", n)
	}
}

// byName is a client that reaches a server on loopback by whatever name.
func byName(t *testing.T, handler http.Handler) *http.Client {
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		},
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // it stands for hosts of other names
	}}
}

// TestOtherHostsAreRefused, whatever host a file names.
func TestOtherHostsAreRefused(t *testing.T) {
	b := builder(t, func(origin *url.URL, _ []byte) (*http.Client, error) {
		t.Errorf("%s is asked", origin)
		return nil, errors.New("no network")
	})
	secret := bytesOf(map[string]string{"sops.aws-kms": awsSecret, "sops.vault-token": "s.right", "sops.vault-address": "https://vault.example.com"})
	elsewhere := &kms.MasterKey{Arn: "arn:aws:kms:x.evil.com/#:1:key/1", EncryptedKey: "eA=="}
	for name, key := range map[string]sopskeys.MasterKey{"AWS": elsewhere, "Vault": &hcvault.MasterKey{VaultAddress: "https://vault.evil.com", EnginePath: "transit", KeyName: "a", EncryptedKey: "vault:v1:x"}} {
		if _, err := built(t, b, secret, key); !errors.Is(err, decrypt.ErrService) {
			t.Errorf("%s: got %v", name, err)
		} else {
			t.Log(err)
		}
	}
}
