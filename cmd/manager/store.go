package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/postgres"
	"github.com/kubeop/kubeop/internal/store/sqlite"
)

// openStore opens the store that the configuration names.
func openStore(ctx context.Context, c *config.Manager) (store.Store, error) {
	if c.DatabaseURL != "" {
		return postgres.Open(ctx, string(c.DatabaseURL))
	}
	return sqlite.Open(ctx, storeFile(c))
}

func storeFile(c *config.Manager) string { return filepath.Join(c.DataDir, "manager.db") }

// onStore runs a command with the store that the environment of the manager names.
func onStore(do func(*cobra.Command, *config.Manager, store.Store) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		c, err := config.LoadManager(cmd.Context())
		if err != nil {
			return err
		}
		s, err := openStore(cmd.Context(), c)
		if err != nil {
			return err
		}
		return errors.Join(do(cmd, c, s), s.Close())
	}
}
