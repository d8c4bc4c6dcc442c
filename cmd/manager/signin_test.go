package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kubeop/kubeop/internal/config"
)

// TestAnIssuerThatIsDownIsNamedAndNothingElseFails at the start and later.
func TestAnIssuerThatIsDownIsNamedAndNothingElseFails(t *testing.T) {
	m, _, _ := start(t, &config.Manager{Signing: config.Signing{OIDC: config.OIDC{Issuers: []config.Issuer{{URL: "https://127.0.0.1:1", Audience: "x", UsernameClaim: "sub"}}}}})
	if missing := m.checks.Missing(t.Context()); !slices.Contains(missing, "issuer https://127.0.0.1:1") {
		t.Errorf("missing are %v", missing)
	}
	if out, err := check(t, "--url", "http://"+m.health.Listener.Addr().String()+"/readyz"); err != nil {
		t.Errorf("it is not ready: %v: %s", err, out)
	}
	wrong := &config.Manager{DataDir: t.TempDir(), Signing: config.Signing{OIDC: config.OIDC{Issuers: []config.Issuer{{URL: "https://a", CAFile: "/nowhere"}}}}}
	if _, err := listen(t.Context(), wrong, &rest.Config{Host: "http://127.0.0.1:1"}); err == nil || !strings.Contains(err.Error(), "/nowhere") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestTheManagerSignsJWTs with the file of keys, and says so when the file is not there.
func TestTheManagerSignsJWTs(t *testing.T) {
	s := newSealedStore(t)
	file := filepath.Join(s.dir, "keys")
	if _, err := listen(t.Context(), &config.Manager{DataDir: t.TempDir(), Signing: config.Signing{KeyFile: file}}, &rest.Config{Host: "http://127.0.0.1:1"}); err == nil || !strings.Contains(err.Error(), "KEY_FILE") {
		t.Errorf("without the file: %v", err)
	}
	s.keys(s.key("k"))
	m, _, _ := start(t, &config.Manager{Signing: config.Signing{KeyFile: file, PublicURL: "https://kubeop.example.com"}})
	for len(m.signing.Published()) == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	if m.signing.Issuer != "https://kubeop.example.com" {
		t.Errorf("the issuer is %s", m.signing.Issuer)
	}
	if missing := m.checks.Missing(t.Context()); slices.Contains(missing, "signing-keys") {
		t.Errorf("missing are %v", missing)
	}
}
