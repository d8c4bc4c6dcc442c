// Command manager serves kubeop's management API. Its configuration is the environment; internal/config documents the variables.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"

	"github.com/fluxcd/pkg/runtime/logger"
	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/version"
)

//go:embed help.txt
var help string

func main() {
	if err := command().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use: "manager", Short: "Serve kubeop's management API", Long: help, Version: version.Version + " (" + version.Commit + ")",
		Args: cobra.NoArgs, SilenceErrors: true, SilenceUsage: true, CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context()) },
	}
	root.AddCommand(healthcheck(), newKey(), rewrap(), revokeJWTs(), backUp(), restore())
	return root
}

func run(ctx context.Context) error {
	c, err := config.LoadManager(ctx)
	if err != nil {
		return err
	}
	logger.SetLogger(logger.NewLogger(logger.Options{LogEncoding: c.LogFormat, LogLevel: c.LogLevel}))
	cluster, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	m, err := listen(ctx, c, cluster)
	if err != nil {
		return err
	}
	return m.serve(ctx)
}
