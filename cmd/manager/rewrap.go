package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/kms"
	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/sqlite"
)

func newKey() *cobra.Command {
	return &cobra.Command{
		Use: "key <id>", Short: "Print a new line for KEY_FILE", Args: cobra.ExactArgs(1),
		Long:    "key prints a new key-encryption key, as KEY_FILE has one on each line. The first line of the file encrypts, and all decrypt.",
		Example: "  manager key 2026-11",
		RunE: func(cmd *cobra.Command, arguments []string) error {
			line, err := kms.NewKey(arguments[0])
			if err == nil {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), line)
			}
			return err
		},
	}
}

func rewrap() *cobra.Command {
	return &cobra.Command{
		Use: "rewrap", Short: "Encrypt the secrets in the store by the first key of KEY_FILE", Args: cobra.NoArgs,
		Long: "rewrap encrypts each secret in the store anew, by the first key of KEY_FILE. The manager may run meanwhile. It may be interrupted, and then goes on where it was. " +
			"Once it says that all are encrypted by the first key, the other keys are needed for backups only. It reads the environment of the manager, so run it in its container.",
		Example: "  kubectl exec -n kubeop-system deploy/kubeop-manager -- /manager rewrap",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			c, err := config.LoadManager(cmd.Context())
			if err != nil {
				return err
			}
			if c.KeyFile == "" {
				return errors.New("set KEY_FILE to the file with the keys")
			}
			keys, err := kms.Read(c.KeyFile)
			if err != nil {
				return err
			}
			s, err := openStore(cmd.Context(), c)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.Close()) }()
			made, all, err := rewrapAll(cmd.Context(), s, keys)
			if err != nil {
				return fmt.Errorf("%w\n%d were encrypted anew before that. Run it again", err, made)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d of %d secrets were encrypted anew. All are encrypted by the key %s.\n", made, all, keys.First())
			return err
		},
	}
}

func openStore(ctx context.Context, c *config.Manager) (store.Store, error) {
	return sqlite.Open(ctx, filepath.Join(c.DataDir, "manager.db"))
}

func revokeJWTs() *cobra.Command {
	return &cobra.Command{
		Use: "revoke-jwts", Short: "Delete the keys that sign JWTs, so that no JWT is valid any more", Args: cobra.NoArgs,
		Long: "revoke-jwts deletes the keys that sign the JWTs of projects. A manager that runs notices it within a minute, and makes a new key: then no JWT from before is valid. " +
			"Others who verify JWTs take them until they read the public keys again. It reads the environment of the manager, so run it in its container.",
		Example: "  kubectl exec -n kubeop-system deploy/kubeop-manager -- /manager revoke-jwts",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			c, err := config.LoadManager(cmd.Context())
			if err != nil {
				return err
			}
			s, err := openStore(cmd.Context(), c)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.Close()) }()
			return s.DropSigningKeys(cmd.Context(), endOfTime)
		},
	}
}

// endOfTime is later than any key signs.
var endOfTime = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// rewrapPage is how many secrets are read at once.
const rewrapPage = 100

// rewrapAll rewraps all secrets, each in a write of its own. Those that cannot be decrypted do not keep others from it; they are the error.
func rewrapAll(ctx context.Context, secrets store.Secrets, keys *kms.Keys) (made, all int, err error) {
	var failed []error
	var after store.Sealed
	for {
		page, err := secrets.ListSealed(ctx, after, rewrapPage)
		if err != nil {
			return made, all, errors.Join(append(failed, err)...)
		}
		if len(page) == 0 {
			return made, all, errors.Join(failed...)
		}
		for _, was := range page {
			done, err := rewrapOne(ctx, secrets, keys, was)
			if ctx.Err() != nil {
				return made, all, errors.Join(append(failed, ctx.Err())...)
			}
			if err != nil {
				failed = append(failed, err)
			}
			if done {
				made++
			}
			all++
		}
		after = page[len(page)-1]
	}
}

func rewrapOne(ctx context.Context, secrets store.Secrets, keys *kms.Keys, was store.Sealed) (bool, error) {
	if was.Key == keys.First() {
		return false, nil
	}
	made, err := keys.Rewrap(kms.Place{Table: was.Kind, ID: was.ID}, kms.Sealed{Key: was.Key, Data: was.Data})
	if err != nil {
		return false, err
	}
	// If it is not as it was any more, the manager wrote or deleted it meanwhile.
	return secrets.ReplaceSealed(ctx, was, store.Sealed{Kind: was.Kind, ID: was.ID, Key: made.Key, Data: made.Data})
}
