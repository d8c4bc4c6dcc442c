// Package config is the configuration of the operator, of the manager and of the command line. Nothing else reads the environment.
package config

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sethvargo/go-envconfig"
	"k8s.io/apimachinery/pkg/util/validation"
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
	// PlatformApps says where the apps of the platform itself may have objects: Off, Namespaced or ClusterAdmin. The chart gives their account
	// the rights for it.
	PlatformApps string   `env:"PLATFORM_APPS, default=Off"`
	Platform     Platform `env:", prefix=PLATFORM_"`
}

// Logging is the level and format of the log.
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
	// MetricsSecure serves MetricsAddr over TLS, and only to clients that the API server authenticates and authorizes for these paths.
	// MetricsCertDir is the folder with the certificate, tls.crt and tls.key. If it is "", the operator signs a new one at each start.
	MetricsSecure  bool   `env:"METRICS_SECURE, default=true"`
	MetricsCertDir string `env:"METRICS_CERT_DIR"`
	// PprofAddr serves /debug/pprof, the profiles of Go's runtime, without authentication. "", the default, turns it off.
	PprofAddr string `env:"PPROF_ADDR"`
}

// Process is where the operator runs, and how much work it does at once.
type Process struct {
	// DataDir holds the local stores of Git objects and charts. They may be lost, because the operator fetches again what is missing.
	DataDir string `env:"DATA_DIR, default=/data"`
	// Namespace is the operator's own namespace. It holds the credentials of repositories and the leader's lease.
	Namespace string `env:"OPERATOR_NAMESPACE, default=kubeop-system"`
	// ClusterName is the name of the cluster among those of clusters/ in the platform repository: the operator takes the projects that are placed on
	// it. "" for an operator that takes all projects, while the repository declares no clusters.
	ClusterName string `env:"CLUSTER_NAME"`
	// Deployment is the name of the operator's Deployment there. While that is being deleted or does not exist, the operator removes
	// nothing. "" means that the operator does not run in a Deployment.
	Deployment string `env:"OPERATOR_DEPLOYMENT"`
	// ManagerAccount is the name of the management API's service account there, which gets tokens for the kubeconfigs of people. "" means that people get none.
	ManagerAccount string `env:"MANAGER_ACCOUNT"`
	// Service is the host name of the operator's Service, such as kubeop.kubeop-system.svc. URLs of tenants may not reach it.
	Service string `env:"OPERATOR_SERVICE"`
	// Concurrency is how many objects of each kind are reconciled at once for one tenant. For all tenants together it is twice as many.
	// HelmWorkers is how many Helm actions run at once.
	Concurrency int `env:"CONCURRENCY, default=10"`
	HelmWorkers int `env:"HELM_WORKERS, default=8"`
	// GCPercent is Go's GOGC for a large heap: by how many percent of the memory in use the heap grows between two collections. From 48 to
	// 200 MiB it may grow by more, see internal/heap. The default is a third of Go's, because operators have a limit of memory, and the
	// API server slows them down more than garbage collection does.
	GCPercent int `env:"GOGC, default=30"`
	// GracefulTimeout is how long a stop waits for running work, such as Helm actions; at most 1h, because no Helm action takes longer.
	// It must be positive: the manager does not wait at all for 0, and waits for ever for a negative value.
	GracefulTimeout time.Duration `env:"GRACEFUL_TIMEOUT, default=10m"`
	// FlowControl gives each tenant FlowSchemas of its own. The API server must have the chart's priority levels.
	FlowControl bool `env:"FLOW_CONTROL, default=false"`
	// OwnerRequests lets owners with the roles edit and admin annotate their Repository. The API server must have the chart's policy
	// kubeop-requests, which limits them to the annotations that request something.
	OwnerRequests bool `env:"OWNER_REQUESTS, default=false"`
}

// Election configures the leader election.
type Election struct {
	// LeaderElect lets several operators run, of which one leads.
	LeaderElect bool `env:"LEADER_ELECT, default=true"`
	// LeaseDuration is how long other replicas wait after the leader last renewed its lease, in whole seconds, because the lease records
	// seconds. The leader itself stops writing after five sixths of it. RetryPeriod is the time between two renewals, at most a third of
	// LeaseDuration. RenewDeadline, at least LeaseDuration, is how long a leader keeps trying, without writing, while its renewals get no
	// answer. Then it ends. It does not end earlier, because the other replicas probably get no answer either.
	LeaseDuration time.Duration `env:"LEASE_DURATION, default=15s"`
	RenewDeadline time.Duration `env:"RENEW_DEADLINE, default=10m"`
	RetryPeriod   time.Duration `env:"RETRY_PERIOD, default=4s"`
}

// Evaluation limits the separate processes that evaluate tenants' input. The container's memory limit must be enough for all of them and the
// operator.
type Evaluation struct {
	// EvaluateProcesses is how many processes run at once. Each call may use EvaluateMemoryMiB MiB of memory, EvaluateCPU of processor
	// time, and EvaluateTimeout of elapsed time.
	EvaluateProcesses int           `env:"EVALUATE_PROCESSES, default=2"`
	EvaluateMemoryMiB int64         `env:"EVALUATE_MEMORY_MIB, default=256"`
	EvaluateCPU       time.Duration `env:"EVALUATE_CPU, default=10s"`
	EvaluateTimeout   time.Duration `env:"EVALUATE_TIMEOUT, default=30s"`
}

// Tenants is the configuration of limits and networking for all tenants.
type Tenants struct {
	// TenantLimits are the default limits of tenants, in JSON with the fields of a Tenant's spec.limits. Fields that are missing have the
	// defaults of package delivery/budget.
	TenantLimits string `env:"TENANT_LIMITS"`
	// IngressNamespace is the namespace of the ingress controller, and MonitoringNamespace that of what scrapes metrics of pods, which may reach every
	// project's pods: each the name of one, or labels of several such as "use=monitoring"; "" is none.
	IngressNamespace    string `env:"INGRESS_NAMESPACE"`
	MonitoringNamespace string `env:"MONITORING_NAMESPACE"`
	// ClusterNetworkPolicies writes one for each project where the API server serves the kind.
	ClusterNetworkPolicies bool `env:"CLUSTER_NETWORK_POLICIES, default=true"`
	// Gateway is the Gateway of the Gateway API that serves the hosts of Image apps, as "namespace/name", or as
	// "namespace/name/section" to attach to one of its listeners. With "", the default, Ingresses serve them.
	Gateway string `env:"GATEWAY"`
	// IngressClass is the IngressClass of Image apps that name none. With "", the default, the cluster chooses. Not with a Gateway.
	IngressClass string `env:"INGRESS_CLASS"`
}

// Network configures which addresses the URLs of tenants and repositories may reach.
type Network struct {
	// PlainRegistries are the registries that image policies call over HTTP without TLS, as host or host:port, separated by commas.
	// They should be the same from which the nodes pull without TLS.
	PlainRegistries []string `env:"PLAIN_REGISTRIES"`
	// TrustedRoot is the trusted root of sigstore, in JSON: the certificate authorities and logs by which keyless signatures are verified. "" means that
	// none is.
	TrustedRoot string `env:"SIGSTORE_TRUSTED_ROOT"`
	// AllowedAddresses are addresses or networks, such as 10.0.0.5 or 127.0.0.0/8, that URLs may reach although the SSRF guard refuses
	// them by default: loopback, link-local and similar, and the cluster's own. See transport.Network.
	AllowedAddresses []string `env:"ALLOWED_ADDRESSES"`
	// ClusterNetworks are the networks of the cluster's pods, Services and nodes, such as 10.244.0.0/16. They count as the cluster's own in
	// addition to those of Nodes, ServiceCIDRs and API servers. If there are none, every private network counts, see clusternet.
	ClusterNetworks []string `env:"CLUSTER_NETWORKS"`
	// TokenServices names for a registry, as registry=host, another host that issues its tokens. That host receives the registry's credentials.
	TokenServices []string `env:"TOKEN_SERVICES"`
	// FluxArtifactHosts are the hosts from which artifacts of Flux's sources may be fetched. "*" stands for one label of a host name.
	FluxArtifactHosts []string `env:"FLUX_ARTIFACT_HOSTS, default=source-controller.*.svc,source-controller.*.svc.cluster.local"`
}

// Platform is the platform repository. If it has no URL, the operator does not manage the Repository named platform, and administrators may
// apply it.
type Platform struct {
	URL string `env:"URL"`
	// Branch to follow; "" follows the remote's HEAD.
	Branch string `env:"BRANCH"`
	// Path of the folder with kubeop.yaml.
	Path string `env:"PATH"`
	// Secret and HookSecret name Secrets in the operator's namespace.
	Secret     string `env:"SECRET"`
	HookSecret string `env:"HOOK_SECRET"`
	// Interval between two polls, at least 1s.
	Interval time.Duration `env:"INTERVAL, default=1m"`
	// VerifySecret names a Secret in the operator's namespace. If set, kubeop accepts only commits that a key in it has signed.
	VerifySecret string `env:"VERIFY_SECRET"`
	// History is FastForward or Any. "" keeps what the Repository has, which is FastForward at first.
	History string `env:"HISTORY"`
}

// Load reads and checks the configuration. Errors name the variable and its valid values.
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
	if err := c.Logging.check(); err != nil {
		return err
	}
	switch {
	case c.Concurrency < 1 || c.Concurrency > 1000:
		return fmt.Errorf("CONCURRENCY is %d; it may be 1 to 1000", c.Concurrency)
	case c.ClusterName != "" && len(validation.IsDNS1123Label(c.ClusterName)) > 0:
		return fmt.Errorf("CLUSTER_NAME is %q; it may have lowercase letters, digits and dashes, at most 63", c.ClusterName)
	case c.HelmWorkers < 1 || c.HelmWorkers > 100:
		return fmt.Errorf("HELM_WORKERS is %d; it may be 1 to 100", c.HelmWorkers)
	case c.GCPercent < 10 || c.GCPercent > 1000:
		return fmt.Errorf("GOGC is %d; it may be 10 to 1000", c.GCPercent)
	case c.GracefulTimeout <= 0 || c.GracefulTimeout > time.Hour:
		return fmt.Errorf("GRACEFUL_TIMEOUT is %s; it must be more than 0s and at most 1h", c.GracefulTimeout)
	case !slices.Contains([]string{"Off", "Namespaced", "ClusterAdmin"}, c.PlatformApps):
		return fmt.Errorf("PLATFORM_APPS is %q; it may be Off, Namespaced or ClusterAdmin", c.PlatformApps)
	case !slices.Contains([]string{"", "FastForward", "Any"}, c.Platform.History):
		return fmt.Errorf("PLATFORM_HISTORY is %q; it may be FastForward or Any", c.Platform.History)
	case c.Platform.Interval < time.Second:
		return fmt.Errorf("PLATFORM_INTERVAL is %s; it must be at least 1s", c.Platform.Interval)
	}
	_, limits := c.Limits()
	return errors.Join(limits, c.checkEvaluation(), c.checkNetwork(), c.checkElection())
}

func (l *Logging) check() error {
	switch {
	case l.LogLevel != "debug" && l.LogLevel != "info" && l.LogLevel != "error":
		return fmt.Errorf("LOG_LEVEL is %q; it may be debug, info or error", l.LogLevel)
	case l.LogFormat != "json" && l.LogFormat != "console":
		return fmt.Errorf("LOG_FORMAT is %q; it may be json or console", l.LogFormat)
	}
	return nil
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
	if c.IngressClass != "" && c.Gateway != "" {
		return fmt.Errorf("INGRESS_CLASS is %q and GATEWAY is %q; set one: hosts are served by Ingresses or by a Gateway", c.IngressClass, c.Gateway)
	}
	if c.IngressClass != "" && len(validation.IsDNS1123Subdomain(c.IngressClass)) > 0 {
		return fmt.Errorf("INGRESS_CLASS is %q; it may be the name of an IngressClass", c.IngressClass)
	}
	_, allowed := c.Allowed()
	_, cluster := c.Cluster()
	_, tokens := c.Tokens()
	return errors.Join(allowed, cluster, tokens)
}

// Limits parses TenantLimits. It does not check the values of the limits; delivery/budget does.
func (c *Operator) Limits() (v1alpha1.TenantLimits, error) {
	limits := v1alpha1.TenantLimits{}
	if err := yaml.UnmarshalStrict([]byte(c.TenantLimits), &limits); err != nil {
		return limits, fmt.Errorf("TENANT_LIMITS is %s; it may be limits as in spec.limits of a Tenant, in JSON: %w", c.TenantLimits, err)
	}
	return limits, nil
}

// Allowed parses AllowedAddresses. A single address becomes a network that contains only it.
func (c *Operator) Allowed() ([]netip.Prefix, error) {
	return networks("ALLOWED_ADDRESSES", c.AllowedAddresses)
}

// Cluster parses ClusterNetworks. A single address becomes a network that contains only it.
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

// Tokens parses TokenServices: the host that issues tokens, by registry.
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

// checkElection checks that the times leave room to repeat a failed renewal, and for requests on their way to arrive.
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
