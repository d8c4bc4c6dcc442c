package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kubeop/kubeop/internal/config"
)

// TestTheHelpHasEveryVariable compares the help with the fields of the configuration.
func TestTheHelpHasEveryVariable(t *testing.T) {
	var read []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[config.Manager]()) {
		if name, _, _ := strings.Cut(field.Tag.Get("env"), ","); name != "" {
			read = append(read, name)
		}
	}
	var named []string
	for _, line := range regexp.MustCompile(`(?m)^  ([A-Z_]+)(?: |$)`).FindAllStringSubmatch(help, -1) {
		named = append(named, line[1])
	}
	slices.Sort(read)
	slices.Sort(named)
	if diff := cmp.Diff(read, named); diff != "" {
		t.Errorf("variables, and those of the help (-read +named):\n%s", diff)
	}
}

// start serves a manager on free ports until it is stopped, and sends how it ended.
func start(t *testing.T, c *config.Manager) (m *manager, stop func(), ended <-chan error) {
	t.Helper()
	c.APIAddr, c.HealthAddr, c.GracefulTimeout, c.RequestsPerSecond, c.Burst = "127.0.0.1:0", "127.0.0.1:0", time.Minute, 100, 100
	c.DataDir = t.TempDir()
	m, err := listen(t.Context(), c, &rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	returned := make(chan error, 1)
	go func() { returned <- m.serve(ctx) }()
	t.Cleanup(cancel)
	return m, cancel, returned
}

// check runs `manager healthcheck`.
func check(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := command()
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(append([]string{"healthcheck", "--timeout", "1m"}, arguments...))
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// TestAStoppingManagerIsNotReadyAndStillAnswers stops a manager that drains for as long as the test wants.
func TestAStoppingManagerIsNotReadyAndStillAnswers(t *testing.T) {
	m, stop, _ := start(t, &config.Manager{DrainDelay: 5 * time.Minute})
	health := "http://" + m.health.Listener.Addr().String()
	if out, err := check(t, "--url", health+"/readyz"); err != nil {
		t.Fatalf("a healthcheck of a manager that runs: %v: %s", err, out)
	}
	stop()
	for {
		_, err := check(t, "--url", health+"/readyz")
		if err == nil {
			continue // The stop is on its way.
		}
		if !strings.Contains(err.Error(), "503") || !strings.Contains(err.Error(), "Not ready: stopping.") {
			t.Fatalf("it is not ready by %v", err)
		}
		break
	}
	answer, err := http.Get("http://" + m.api.Listener.Addr().String() + "/version")
	if err != nil {
		t.Fatalf("while it drains it answers %v", err)
	}
	answer.Body.Close()
	if out, err := check(t, "--url", health+"/healthz"); err != nil {
		t.Errorf("while it drains it is alive, but: %v: %s", err, out)
	}
}

func TestAStopClosesBothAddresses(t *testing.T) {
	m, stop, ended := start(t, &config.Manager{})
	stop()
	if err := <-ended; err != nil {
		t.Fatalf("the stop failed: %v", err)
	}
	for _, address := range []string{m.api.Listener.Addr().String(), m.health.Listener.Addr().String()} {
		if _, err := check(t, "--url", "http://"+address+"/healthz"); err == nil {
			t.Errorf("%s is still served", address)
		}
	}
}

func TestAnAddressThatFailsEndsTheManager(t *testing.T) {
	for name, of := range map[string]func(*manager) error{
		"the API":            func(m *manager) error { return m.api.Listener.Close() },
		"the health address": func(m *manager) error { return m.health.Listener.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			m, _, ended := start(t, &config.Manager{})
			if err := of(m); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err == nil {
				t.Error("the manager ended without an error")
			}
		})
	}
}

func TestAnAddressInUseIsNamed(t *testing.T) {
	m, _, _ := start(t, &config.Manager{})
	taken := m.api.Listener.Addr().String()
	if _, err := listen(t.Context(), &config.Manager{DataDir: t.TempDir(), APIAddr: taken, HealthAddr: "127.0.0.1:0"}, &rest.Config{Host: "http://127.0.0.1:1"}); err == nil || !strings.Contains(err.Error(), "API_ADDR "+taken) {
		t.Errorf("API_ADDR: %v", err)
	}
	if _, err := listen(t.Context(), &config.Manager{DataDir: t.TempDir(), APIAddr: "127.0.0.1:0", HealthAddr: taken}, &rest.Config{Host: "http://127.0.0.1:1"}); err == nil || !strings.Contains(err.Error(), "HEALTH_ADDR "+taken) {
		t.Errorf("HEALTH_ADDR: %v", err)
	}
}

func TestTheAPIIsServedOverTLS(t *testing.T) {
	dir := t.TempDir()
	certificate, key, err := cert.GenerateSelfSignedCertKey("manager.example", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := listen(t.Context(), &config.Manager{DataDir: t.TempDir(), TLSCertDir: dir, APIAddr: "127.0.0.1:0"}, &rest.Config{Host: "http://127.0.0.1:1"}); err == nil || !strings.Contains(err.Error(), "TLS_CERT_DIR") {
		t.Errorf("an empty folder: %v", err)
	}
	for name, data := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m, stop, ended := start(t, &config.Manager{TLSCertDir: dir})
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(certificate)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, ServerName: "manager.example"}}}
	answer, err := client.Get("https://" + m.api.Listener.Addr().String() + "/version")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("it answers %s", answer.Status)
	}
	// A renewal that fails leaves the certificate as it is, and is counted. All managers of a process count together.
	failures := regexp.MustCompile(`(?m)^certwatcher_read_certificate_errors_total \d+`)
	before := failures.FindString(metricsOf(t, m))
	if err := os.WriteFile(filepath.Join(dir, "tls.crt"), []byte("half a certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for failures.FindString(metricsOf(t, m)) == before {
		time.Sleep(20 * time.Millisecond)
	}
	if answer, err = client.Get("https://" + m.api.Listener.Addr().String() + "/version"); err != nil {
		t.Fatalf("after a renewal that failed: %v", err)
	}
	answer.Body.Close()
	client.CloseIdleConnections()
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the stop failed: %v", err)
	}
}

func metricsOf(t *testing.T, m *manager) string {
	t.Helper()
	answer, err := http.Get("http://" + m.health.Listener.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "certwatcher_read_certificate_errors_total") {
		t.Fatalf("the metrics are\n%s", text)
	}
	return string(text)
}

func TestAWrongConfigurationIsNamed(t *testing.T) {
	t.Setenv("REQUEST_BURST", "0")
	if err := run(t.Context()); err == nil || !strings.Contains(err.Error(), "REQUEST_BURST is 0; it may be 1 to 1000000") {
		t.Errorf("run returned %v", err)
	}
}

// TestAnInvalidAllowedAddressOpensNoRepository: the SSRF guard would be another one than the configuration says.
func TestAnInvalidAllowedAddressOpensNoRepository(t *testing.T) {
	got, err := openRepositories(&config.Manager{AllowedAddresses: []string{"everywhere"}}, &rest.Config{}, nil)
	if got != nil || err == nil || !strings.HasPrefix(err.Error(), "ALLOWED_ADDRESSES") {
		t.Errorf("got %v, %v", got, err)
	}
}

// logged is what the tests of this package log.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) write(_, line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.WriteString(line)
}

func (l *logged) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

var log logged

// controller-runtime takes one logger, and none any more after 30 seconds, so a test that sets it comes too late on a slow machine. The program sets its own.
func init() {
	if os.Getenv(asManager) == "" {
		ctrl.SetLogger(funcr.New(log.write, funcr.Options{}))
	}
}

// TestTheFirstAdministratorIsAskedForUntilThereIsOne reads the code in the log, claims it, and starts the manager again.
func TestTheFirstAdministratorIsAskedForUntilThereIsOne(t *testing.T) {
	c := &config.Manager{DataDir: t.TempDir(), APIAddr: "127.0.0.1:0", HealthAddr: "127.0.0.1:0", RequestsPerSecond: 100, Burst: 100}
	offered := func() string {
		log.Reset()
		m, err := listen(t.Context(), c, &rest.Config{Host: "http://127.0.0.1:1"})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := errors.Join(m.api.Listener.Close(), m.health.Listener.Close(), m.store.Close()); err != nil {
				t.Error(err)
			}
		}()
		if err := m.offerSetup(t.Context()); err != nil {
			t.Fatal(err)
		}
		code := regexp.MustCompile(`setup_[A-Za-z0-9_-]{43}`).FindString(log.String())
		if code != "" {
			answer := httptest.NewRecorder()
			m.api.Handler.ServeHTTP(answer, httptest.NewRequest("POST", "/v1/setup", strings.NewReader(`{"name":"me","code":"`+code+`"}`)))
			if answer.Code != http.StatusCreated {
				t.Fatalf("the claim is answered by %d %s", answer.Code, answer.Body)
			}
		}
		return code
	}
	people := config.OIDC{Issuers: []config.Issuer{{URL: "https://127.0.0.1:1", Audience: "x", UsernameClaim: "sub"}}}
	people.Admins.Users = []string{"ann"}
	c.OIDC = people
	if code := offered(); code != "" {
		t.Errorf("an issuer has an administrator, and the log has %s", code)
	}
	c.OIDC.Admins.Users = nil
	if offered() == "" {
		t.Errorf("the log has no code: %s", log.String())
	}
	if code := offered(); code != "" {
		t.Errorf("there is an administrator, and the log has %s", code)
	}
}

func TestAStoreThatFailsEndsTheStart(t *testing.T) {
	m, err := listen(t.Context(), &config.Manager{DataDir: t.TempDir(), APIAddr: "127.0.0.1:0", HealthAddr: "127.0.0.1:0", RequestsPerSecond: 1, Burst: 1}, &rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := m.serve(t.Context()); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("serve returned %v", err)
	}
}
