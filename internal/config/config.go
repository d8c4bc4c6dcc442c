// Package config is the operator's configuration. Nothing else reads the environment.
package config

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"github.com/sethvargo/go-envconfig"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Operator is the configuration of cmd/operator, from the environment.
type Operator struct {
	Logging
	Servers
	Process
	Election
	Evaluation
	Tenants
	Network
	Platform Platform `env:", prefix=PLATFORM_"`
}

// Logging is how the operator logs.
type Logging struct {
	// LogLevel is debug, info or error. LogFormat is json or console.
	LogLevel  string `env:"LOG_LEVEL, default=info"`
	LogFormat string `env:"LOG_FORMAT, default=json"`
}

// Servers are the addresses at which the operator serves; "0" turns one off.
type Servers struct {
	// MetricsAddr serves /metrics and /version; HealthAddr serves /healthz and /readyz; HookAddr serves /hook/<repository>.
	MetricsAddr string `env:"METRICS_ADDR, default=:8080"`
	HealthAddr  string `env:"HEALTH_ADDR, default=:8081"`
	HookAddr    string `env:"HOOK_ADDR, default=:9292"`
	// MetricsSecure serves MetricsAddr over TLS, and only to those whom the API server knows and lets get these paths. MetricsCertDir
	// holds the certificate, tls.crt and tls.key; "": one that the operator signs itself, new at each start.
	MetricsSecure  bool   `env:"METRICS_SECURE, default=true"`
	MetricsCertDir string `env:"METRICS_CERT_DIR"`
	// PprofAddr serves /debug/pprof, the profiles of Go's runtime, to whoever reaches it; "", the default, serves none.
	PprofAddr string `env:"PPROF_ADDR"`
}

// Process is where the operator runs, and how much it does at once.
type Process struct {
	// DataDir holds the local stores of Git objects and charts. They can be lost: what is missing is fetched again.
	DataDir string `env:"DATA_DIR, default=/data"`
	// Namespace is the operator's own, which holds the credentials of repositories and the leader's lease.
	Namespace string `env:"OPERATOR_NAMESPACE, default=kubeop-system"`
	// Deployment is the name of the operator's own Deployment there: while that is being deleted, or gone, the operator removes
	// nothing. "" where it runs as none.
	Deployment string `env:"OPERATOR_DEPLOYMENT"`
	// Service is the name of the operator's own Service, which no URL of a tenant may reach, such as kubeop.kubeop-system.svc.
	Service string `env:"OPERATOR_SERVICE"`
	// Concurrency is how many objects of each kind are reconciled at once for one tenant, and half of how many are for all; HelmWorkers
	// how many Helm actions run at once.
	Concurrency int `env:"CONCURRENCY, default=10"`
	HelmWorkers int `env:"HELM_WORKERS, default=8"`
	// GCPercent is how much a large heap may grow between two collections, in percent of what is in use, as Go's GOGC. From 48 to
	// 200 MiB it may grow by more, see internal/heap. Less than a third of Go's own default: the API server is slower than the
	// collector, and memory is what operators are limited by.
	GCPercent int `env:"GOGC, default=30"`
	// GracefulTimeout is how long a stop waits for running work, Helm actions above all; at most 1h, as no Helm action
	// takes longer. For the manager 0 would mean to wait for nothing, and less to wait for ever.
	GracefulTimeout time.Duration `env:"GRACEFUL_TIMEOUT, default=10m"`
	// FlowControl: the API server has the priority levels of the chart, and each tenant is given FlowSchemas of its own.
	FlowControl bool `env:"FLOW_CONTROL, default=false"`
}

// Election is how one of several operators leads.
type Election struct {
	// LeaderElect lets several operators run of which one works.
	LeaderElect bool `env:"LEADER_ELECT, default=true"`
	// LeaseDuration is how long the others wait after the leader last renewed its lease, in whole seconds, as the lease
	// records it; the leader itself writes nothing from a sixth before that on. RetryPeriod is the time between two renewals,
	// at most a third of it. RenewDeadline is how long a leader whose renewals get no answer stays, writing nothing, before it
	// ends: nobody else gets an answer either, and it goes on where it was. It is at least LeaseDuration.
	LeaseDuration time.Duration `env:"LEASE_DURATION, default=15s"`
	RenewDeadline time.Duration `env:"RENEW_DEADLINE, default=10m"`
	RetryPeriod   time.Duration `env:"RETRY_PERIOD, default=4s"`
}

// Evaluation bounds the processes of their own in which what tenants wrote is evaluated. The container's limit of memory has to hold all of them
// and the operator.
type Evaluation struct {
	// EvaluateProcesses is how many run at once. Each call may take EvaluateMemoryMiB MiB of memory, EvaluateCPU of processor time and
	// EvaluateTimeout in all.
	EvaluateProcesses int           `env:"EVALUATE_PROCESSES, default=2"`
	EvaluateMemoryMiB int64         `env:"EVALUATE_MEMORY_MIB, default=256"`
	EvaluateCPU       time.Duration `env:"EVALUATE_CPU, default=10s"`
	EvaluateTimeout   time.Duration `env:"EVALUATE_TIMEOUT, default=30s"`
}

// Tenants is what tenants get.
type Tenants struct {
	// TenantLimits are the limits of tenants whose Tenant does not set them, as spec.limits there, in JSON. What is not in it has the
	// default of package delivery/budget.
	TenantLimits string `env:"TENANT_LIMITS"`
	// IngressNamespace is the namespace of the ingress controller, which may reach every project's pods.
	IngressNamespace string `env:"INGRESS_NAMESPACE"`
	// Gateway is the Gateway of the Gateway API that serves the hosts of Image apps, as "namespace/name", or as
	// "namespace/name/section" to attach to one of its listeners. "", the default, leaves them to an Ingress.
	Gateway string `env:"GATEWAY"`
}

// Network is what the URLs of tenants and repositories may reach.
type Network struct {
	// PlainRegistries are the registries that image policies ask over HTTP without TLS, as host or host:port, separated by
	// commas: the same that the nodes pull from without TLS.
	PlainRegistries []string `env:"PLAIN_REGISTRIES"`
	// AllowedAddresses are networks, such as 10.0.0.5 or 127.0.0.0/8, that the URLs may lead to although they are refused by default:
	// loopback, link-local and the like, and the cluster's own. See transport.Network.
	AllowedAddresses []string `env:"ALLOWED_ADDRESSES"`
	// ClusterNetworks are the networks of the cluster's pods, Services and nodes, such as 10.244.0.0/16. They count as the cluster's own
	// beside what Nodes, ServiceCIDRs and API servers tell. None: every private network does, see clusternet.
	ClusterNetworks []string `env:"CLUSTER_NETWORKS"`
	// TokenServices are registries, as registry=host, with the other host that gives tokens for them and is sent their credentials.
	TokenServices []string `env:"TOKEN_SERVICES"`
	// FluxArtifactHosts are the hosts from which artifacts of Flux's sources are fetched; "*" stands for one label of a name.
	FluxArtifactHosts []string `env:"FLUX_ARTIFACT_HOSTS, default=source-controller.*.svc,source-controller.*.svc.cluster.local"`
}

// Platform says where the platform repository is. Without a URL the operator leaves the Repository named platform to
// whoever applies it.
type Platform struct {
	URL string `env:"URL"`
	// Branch to follow; "" follows the remote's HEAD.
	Branch string `env:"BRANCH"`
	// Path of the folder that holds kubeop.yaml.
	Path string `env:"PATH"`
	// Secret and HookSecret name Secrets in the operator's namespace.
	Secret     string `env:"SECRET"`
	HookSecret string `env:"HOOK_SECRET"`
	// Interval between two polls, at least 1s.
	Interval time.Duration `env:"INTERVAL, default=1m"`
}

// Load reads and checks the configuration. Errors name the variable and what it may be.
func Load(ctx context.Context) (*Operator, error) {
	return load(ctx, envconfig.OsLookuper())
}

func load(ctx context.Context, from envconfig.Lookuper) (*Operator, error) {
	c := &Operator{}
	if err := envconfig.ProcessWith(ctx, &envconfig.Config{Target: c, Lookuper: from}); err != nil {
		return nil, fmt.Errorf("reading the environment: %w", err)
	}
	return c, c.check()
}

var gateway = regexp.MustCompile(`^([-a-z0-9]+/[-.a-z0-9]+(/[-.a-z0-9]+)?)?$`)

func (c *Operator) check() error {
	switch {
	case c.LogLevel != "debug" && c.LogLevel != "info" && c.LogLevel != "error":
		return fmt.Errorf("LOG_LEVEL is %q; it may be debug, info or error", c.LogLevel)
	case c.LogFormat != "json" && c.LogFormat != "console":
		return fmt.Errorf("LOG_FORMAT is %q; it may be json or console", c.LogFormat)
	case c.Concurrency < 1 || c.Concurrency > 1000:
		return fmt.Errorf("CONCURRENCY is %d; it may be 1 to 1000", c.Concurrency)
	case c.HelmWorkers < 1 || c.HelmWorkers > 100:
		return fmt.Errorf("HELM_WORKERS is %d; it may be 1 to 100", c.HelmWorkers)
	case c.GCPercent < 10 || c.GCPercent > 1000:
		return fmt.Errorf("GOGC is %d; it may be 10 to 1000", c.GCPercent)
	case c.GracefulTimeout <= 0 || c.GracefulTimeout > time.Hour:
		return fmt.Errorf("GRACEFUL_TIMEOUT is %s; it must be more than 0s and at most 1h", c.GracefulTimeout)
	case c.Platform.Interval < time.Second:
		return fmt.Errorf("PLATFORM_INTERVAL is %s; it must be at least 1s", c.Platform.Interval)
	}
	_, limits := c.Limits()
	return errors.Join(limits, c.checkEvaluation(), c.checkNetwork(), c.checkElection())
}

func (c *Operator) checkEvaluation() error {
	switch {
	case c.EvaluateProcesses < 1 || c.EvaluateProcesses > 64:
		return fmt.Errorf("EVALUATE_PROCESSES is %d; it may be 1 to 64", c.EvaluateProcesses)
	case c.EvaluateMemoryMiB < 64 || c.EvaluateMemoryMiB > 16<<10:
		return fmt.Errorf("EVALUATE_MEMORY_MIB is %d; it may be 64 to 16384", c.EvaluateMemoryMiB)
	case c.EvaluateCPU < time.Second || c.EvaluateCPU > c.EvaluateTimeout:
		return fmt.Errorf("EVALUATE_CPU is %s; it must be at least 1s and at most EVALUATE_TIMEOUT", c.EvaluateCPU)
	case c.EvaluateTimeout > 10*time.Minute:
		return fmt.Errorf("EVALUATE_TIMEOUT is %s; it may be 10m at most", c.EvaluateTimeout)
	}
	return nil
}

func (c *Operator) checkNetwork() error {
	if !gateway.MatchString(c.Gateway) {
		return fmt.Errorf("GATEWAY is %q; it may be namespace/name or namespace/name/section", c.Gateway)
	}
	_, allowed := c.Allowed()
	_, cluster := c.Cluster()
	_, tokens := c.Tokens()
	return errors.Join(allowed, cluster, tokens)
}

// Limits are the TenantLimits. Whether each may be what it is, is for who uses them to say.
func (c *Operator) Limits() (v1alpha1.TenantLimits, error) {
	limits := v1alpha1.TenantLimits{}
	if err := yaml.UnmarshalStrict([]byte(c.TenantLimits), &limits); err != nil {
		return limits, fmt.Errorf("TENANT_LIMITS is %s; it may be limits as in spec.limits of a Tenant, in JSON: %w", c.TenantLimits, err)
	}
	return limits, nil
}

// Allowed are the AllowedAddresses; a single address is a network of one.
func (c *Operator) Allowed() ([]netip.Prefix, error) {
	return networks("ALLOWED_ADDRESSES", c.AllowedAddresses)
}

// Cluster are the ClusterNetworks; a single address is a network of one.
func (c *Operator) Cluster() ([]netip.Prefix, error) {
	return networks("CLUSTER_NETWORKS", c.ClusterNetworks)
}

func networks(setting string, written []string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, text := range written {
		text = strings.TrimSpace(text)
		network, err := netip.ParsePrefix(text)
		if one, also := netip.ParseAddr(text); err != nil && also == nil {
			network, err = one.Prefix(one.BitLen())
		}
		if err != nil {
			return nil, fmt.Errorf("%s holds %q; it may be addresses and networks such as 10.0.0.5 and 127.0.0.0/8, with commas between them", setting, text)
		}
		all = append(all, network)
	}
	return all, nil
}

var hostAndPort = regexp.MustCompile(`^[-.a-z0-9]+(:[0-9]+)?$`)

// Tokens are the TokenServices by registry.
func (c *Operator) Tokens() (map[string]string, error) {
	services := map[string]string{}
	for _, text := range c.TokenServices {
		registry, service, _ := strings.Cut(strings.TrimSpace(text), "=")
		if !hostAndPort.MatchString(registry) || !hostAndPort.MatchString(service) {
			return nil, fmt.Errorf("TOKEN_SERVICES holds %q; it may be pairs such as registry.example.com=gitlab.example.com, each host with or without a port, with commas between them", text)
		}
		services[registry] = service
	}
	return services, nil
}

// checkElection leaves a renewal that fails time to be tried again, and requests that are under way time to arrive.
func (c *Operator) checkElection() error {
	switch {
	case c.LeaseDuration < time.Second || c.LeaseDuration%time.Second != 0:
		return fmt.Errorf("LEASE_DURATION is %s; it must be whole seconds and at least 1s", c.LeaseDuration)
	case c.RenewDeadline < c.LeaseDuration:
		return fmt.Errorf("RENEW_DEADLINE is %s; it must be at least LEASE_DURATION", c.RenewDeadline)
	case c.RetryPeriod <= 0 || c.RetryPeriod > c.LeaseDuration/3:
		return fmt.Errorf("RETRY_PERIOD is %s; it must be more than 0s and at most a third of LEASE_DURATION", c.RetryPeriod)
	}
	return nil
}
