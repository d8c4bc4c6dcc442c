package config

import (
	"context"
	"fmt"

	"github.com/sethvargo/go-envconfig"
)

// CommandLine is what cmd/kubeop takes from the environment. Flags come first.
type CommandLine struct {
	// Server is the URL of a manager, to read through its API. "" reads the cluster of the kubeconfig.
	Server string `env:"KUBEOP_SERVER"`
	// ServerCA is a file with certificates of authorities, in PEM, of which the manager's may be besides those of the system.
	ServerCA string `env:"KUBEOP_SERVER_CA"`
	// Token is sent to the manager. TokenFile is a file with it that only its owner may read; Token comes first.
	Token     string `env:"KUBEOP_TOKEN"`
	TokenFile string `env:"KUBEOP_TOKEN_FILE"`
}

// LoadCommandLine reads the environment.
func LoadCommandLine() (CommandLine, error) {
	var c CommandLine
	if err := envconfig.ProcessWith(context.Background(), &envconfig.Config{Target: &c, Lookuper: envconfig.OsLookuper()}); err != nil {
		return c, fmt.Errorf("reading the environment: %w", err)
	}
	return c, nil
}
