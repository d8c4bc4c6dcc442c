// Package config is the operator's configuration. Nothing else reads the environment.
package config

import (
	"context"
	"fmt"
	"time"

	"github.com/sethvargo/go-envconfig"
)

// Operator is the configuration of cmd/operator, from the environment.
type Operator struct {
	// LogLevel is debug, info or error. LogFormat is json or console.
	LogLevel  string `env:"LOG_LEVEL, default=info"`
	LogFormat string `env:"LOG_FORMAT, default=json"`

	// MetricsAddr serves /metrics and /version; HealthAddr serves /healthz and /readyz; HookAddr serves
	// /hook/<repository>. "0" turns one off.
	MetricsAddr string `env:"METRICS_ADDR, default=:8080"`
	HealthAddr  string `env:"HEALTH_ADDR, default=:8081"`
	HookAddr    string `env:"HOOK_ADDR, default=:9292"`

	// DataDir holds the local stores of Git objects and charts. They can be lost: what is missing is fetched again.
	DataDir string `env:"DATA_DIR, default=/data"`
	// Namespace is the operator's own, which holds the credentials of repositories and the leader's lease.
	Namespace string `env:"OPERATOR_NAMESPACE, default=kubeop-system"`
	// LeaderElect lets several operators run of which one works.
	LeaderElect bool `env:"LEADER_ELECT, default=true"`

	// Concurrency is how many objects of each kind are reconciled at once; HelmWorkers how many Helm actions run at once.
	Concurrency int `env:"CONCURRENCY, default=10"`
	HelmWorkers int `env:"HELM_WORKERS, default=4"`
	// GracefulTimeout is how long a stop waits for running work, Helm actions above all; at most 1h, as no Helm action
	// takes longer. For the manager 0 would mean to wait for nothing, and less to wait for ever.
	GracefulTimeout time.Duration `env:"GRACEFUL_TIMEOUT, default=10m"`

	// IngressNamespace is the namespace of the ingress controller, which may reach every project's pods.
	IngressNamespace string `env:"INGRESS_NAMESPACE"`

	Platform Platform `env:", prefix=PLATFORM_"`
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
	case c.GracefulTimeout <= 0 || c.GracefulTimeout > time.Hour:
		return fmt.Errorf("GRACEFUL_TIMEOUT is %s; it must be more than 0s and at most 1h", c.GracefulTimeout)
	case c.Platform.Interval < time.Second:
		return fmt.Errorf("PLATFORM_INTERVAL is %s; it must be at least 1s", c.Platform.Interval)
	}
	return nil
}
