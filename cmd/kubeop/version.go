package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/internal/version"
)

func versionCommand(c *call.Call) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program",
		Long:  `Show the version of this program, its commit, and the version of Go that built it. It asks no cluster.`,
		Example: `  # For a bug report
  kubeop version

  # As a plugin of kubectl
  kubectl kubeop version`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(c.Out, "kubeop %s (commit %s, %s)\n", version.Version, version.Commit, runtime.Version())
			return err
		},
	}
}
