package target

import (
	"cmp"

	"github.com/kubeop/kubeop/internal/config"
)

// Manager returns which manager to read from, by the flags, or else by the environment. Its Server is "" where commands read the cluster.
func (c *Connection) Manager() (config.CommandLine, error) {
	m, err := config.LoadCommandLine()
	m.Server, m.ServerCA = cmp.Or(c.Server, m.Server), cmp.Or(c.ServerCA, m.ServerCA)
	return m, err
}
