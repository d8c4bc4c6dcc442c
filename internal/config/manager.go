package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/sethvargo/go-envconfig"
	"k8s.io/apimachinery/pkg/util/validation"
)

// OperationTimeout is how long an operation of the management API may take. It is less than what the server waits for an answer, and than GRACEFUL_TIMEOUT, so that a late
// operation is answered.
const OperationTimeout = 15 * time.Second

// Manager is the configuration of cmd/manager, from the environment.
type Manager struct {
	Logging
	Signing
	Optional
	// APIAddr serves the management API. HealthAddr serves /healthz, /readyz, /version and /metrics without TLS, for probes and Prometheus.
	APIAddr    string `env:"API_ADDR, default=:8443"`
	HealthAddr string `env:"HEALTH_ADDR, default=:8081"`
	// TLSCertDir is the folder with tls.crt and tls.key, which are read again when they change. "" serves plain HTTP: something before the
	// manager, such as an ingress controller, has to end TLS, because callers send tokens.
	TLSCertDir string `env:"TLS_CERT_DIR"`
	// DataDir has the store, manager.db, and has to outlive the process, unless DatabaseURL is set.
	DataDir string `env:"DATA_DIR, default=/data"`
	Storage
	// Namespace is the operator's, which has the credentials of repositories.
	Namespace string `env:"OPERATOR_NAMESPACE, default=kubeop-system"`
	// AllowedAddresses are those that the URLs of repositories may lead to although the SSRF guard refuses them by default, as for the operator.
	AllowedAddresses []string `env:"ALLOWED_ADDRESSES"`
	// RequestsPerSecond is how many requests one address, and one token, may send, on average; Burst is how many at once.
	RequestsPerSecond float64 `env:"REQUESTS_PER_SECOND, default=50"`
	Burst             int     `env:"REQUEST_BURST, default=200"`
	// TrustedProxies are addresses or networks of proxies, such as an ingress controller, whose X-Forwarded-For says where a request came from.
	TrustedProxies []string `env:"TRUSTED_PROXIES"`
	// DrainDelay is how long a stopping manager still accepts requests while /readyz says that it stops, so that load balancers notice.
	// GracefulTimeout is how long it then waits for answers that have begun: longer than an operation may take.
	DrainDelay      time.Duration `env:"DRAIN_DELAY, default=5s"`
	GracefulTimeout time.Duration `env:"GRACEFUL_TIMEOUT, default=20s"`
}

// Storage is what the manager keeps, and where, besides DataDir.
type Storage struct {
	// DatabaseURL is the URL of a PostgreSQL database that has the store, for one manager or several. "": the file manager.db in DataDir has it, for one.
	DatabaseURL Secret `env:"DATABASE_URL"`
	// CacheDir has what was fetched of Git repositories, which may be lost. "" is a folder in DataDir.
	CacheDir string `env:"CACHE_DIR"`
	// UsageCluster is the name under which it measures what the apps of the cluster use, a DNS label. "": it measures nothing.
	UsageCluster string `env:"USAGE_CLUSTER"`
}

// Secret is a text that package fmt, encoding/json and loggers hide.
type Secret string

// String hides it.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "(hidden)"
}

// Format hides it from all verbs of package fmt.
func (s Secret) Format(to fmt.State, _ rune) { _, _ = io.WriteString(to, s.String()) }

// MarshalText hides it from encoders, and so from loggers.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Signing configures the signatures of the credentials that callers may use in place of tokens: JWTs and ID tokens.
type Signing struct {
	// KeyFile has the key-encryption keys of what the store keeps encrypted, as internal/kms reads them. "": the manager keeps nothing that it would have to encrypt.
	KeyFile string `env:"KEY_FILE"`
	// PublicURL is where callers reach the API. It is the issuer of the JWTs of projects; "" is kubeop-manager.
	PublicURL string `env:"PUBLIC_URL"`
	// OIDC is how people sign in, as JSON. Tokens work without it.
	OIDC OIDC `env:"OIDC"`
}

// Optional are the settings of what the manager does only if it is configured.
type Optional struct {
	Receivers
	Kubeconfigs
}

// Receivers is where the manager sends what happens, to webhooks.
type Receivers struct {
	// Webhooks says whether it sends anything.
	Webhooks bool `env:"WEBHOOKS"`
	// WebhookAddresses are those that webhooks may lead to although the SSRF guard refuses them by default: it refuses private ones, too.
	WebhookAddresses []string `env:"WEBHOOK_ALLOWED_ADDRESSES"`
	// WebhookPlainHTTP also allows URLs without TLS.
	WebhookPlainHTTP bool `env:"WEBHOOK_PLAIN_HTTP"`
}

// Kubeconfigs is how people reach the API server, for kubeconfigs.
type Kubeconfigs struct {
	// KubeconfigServer is the URL of the API server for people, without a path. "": they get no kubeconfigs.
	KubeconfigServer string `env:"KUBECONFIG_SERVER"`
	// KubeconfigCAFile has the authority of its certificate, in PEM; "" for a public one.
	KubeconfigCAFile string `env:"KUBECONFIG_CA_FILE"`
}

func (c *Kubeconfigs) check(publicURL string) error {
	u, err := url.Parse(c.KubeconfigServer)
	switch {
	case c.KubeconfigServer == "":
		return nil
	case err != nil, u.Host == "", u.Scheme != "https", u.Path+u.RawQuery+u.Fragment != "", u.User != nil:
		return fmt.Errorf("KUBECONFIG_SERVER is %q; it may be a URL such as https://kubernetes.example.com:6443, without a path", c.KubeconfigServer)
	case publicURL == "":
		return errors.New("KUBECONFIG_SERVER needs PUBLIC_URL, at which kubeconfigs ask for tokens")
	}
	return nil
}

// LoadManager reads and checks the configuration. Errors name the variable and its valid values.
func LoadManager(ctx context.Context) (*Manager, error) {
	return loadManager(ctx, envconfig.OsLookuper())
}

func loadManager(ctx context.Context, from envconfig.Lookuper) (*Manager, error) {
	c := &Manager{}
	if err := envconfig.ProcessWith(ctx, &envconfig.Config{Target: c, Lookuper: from}); err != nil {
		return nil, fmt.Errorf("reading the environment: %w", err)
	}
	return c, c.check()
}

func (c *Manager) check() error {
	if err := c.Logging.check(); err != nil {
		return err
	}
	switch {
	case !(c.RequestsPerSecond > 0 && c.RequestsPerSecond <= 1_000_000):
		return fmt.Errorf("REQUESTS_PER_SECOND is %g; it must be more than 0 and at most 1000000", c.RequestsPerSecond)
	case c.Burst < 1 || c.Burst > 1_000_000:
		return fmt.Errorf("REQUEST_BURST is %d; it may be 1 to 1000000", c.Burst)
	case c.DrainDelay < 0 || c.DrainDelay > 5*time.Minute:
		return fmt.Errorf("DRAIN_DELAY is %s; it may be 0s to 5m", c.DrainDelay)
	case c.GracefulTimeout <= OperationTimeout || c.GracefulTimeout > 5*time.Minute:
		return fmt.Errorf("GRACEFUL_TIMEOUT is %s; it must be more than the %s that an operation may take, and at most 5m", c.GracefulTimeout, OperationTimeout)
	}
	if faults := validation.IsDNS1123Label(c.UsageCluster); c.UsageCluster != "" && len(faults) > 0 {
		return fmt.Errorf("USAGE_CLUSTER is %q: %s", c.UsageCluster, faults[0])
	}
	_, proxies := c.Proxies()
	_, allowed := c.Allowed()
	_, receivers := c.AllowedReceivers()
	if c.Webhooks && c.KeyFile == "" {
		return errors.New("WEBHOOKS needs KEY_FILE, by which the manager encrypts the secrets of webhooks")
	}
	return errors.Join(c.checkURL(), c.Kubeconfigs.check(c.PublicURL), c.OIDC.check(c.PublicURL), proxies, allowed, receivers)
}

func (c *Signing) checkURL() error {
	u, err := url.Parse(c.PublicURL)
	switch {
	case c.PublicURL == "":
		return nil
	case err != nil, u.Host == "", u.Scheme != "https" && u.Scheme != "http", strings.HasSuffix(c.PublicURL, "/"), u.RawQuery+u.Fragment != "", u.User != nil:
		return fmt.Errorf("PUBLIC_URL is %q; it may be a URL such as https://kubeop.example.com, without a slash at its end", c.PublicURL)
	}
	return nil
}

// Allowed parses AllowedAddresses. A single address becomes a network that contains only it.
func (c *Manager) Allowed() ([]netip.Prefix, error) {
	return networks("ALLOWED_ADDRESSES", c.AllowedAddresses)
}

// AllowedReceivers parses WebhookAddresses. A single address becomes a network that contains only it.
func (c *Receivers) AllowedReceivers() ([]netip.Prefix, error) {
	return networks("WEBHOOK_ALLOWED_ADDRESSES", c.WebhookAddresses)
}

// Proxies parses TrustedProxies. A single address becomes a network that contains only it.
func (c *Manager) Proxies() ([]netip.Prefix, error) {
	all, err := networks("TRUSTED_PROXIES", c.TrustedProxies)
	for _, network := range all {
		if network.Bits() == 0 {
			return nil, fmt.Errorf("TRUSTED_PROXIES holds %s; whoever is a proxy names the caller, so it may not be everyone", network)
		}
		if network.Addr().Is4In6() {
			return nil, fmt.Errorf("TRUSTED_PROXIES holds %s, an IPv4 address in the form of IPv6, which no connection has; write it as IPv4", network)
		}
	}
	return all, err
}
