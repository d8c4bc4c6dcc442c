package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/kms"
	"github.com/kubeop/kubeop/internal/store"
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
		RunE: onStore(func(cmd *cobra.Command, c *config.Manager, s store.Store) error {
			if c.KeyFile == "" {
				return errors.New("set KEY_FILE to the file with the keys")
			}
			keys, err := kms.Read(c.KeyFile)
			if err != nil {
				return err
			}
			made, all, err := rewrapAll(cmd.Context(), s, keys)
			if err != nil {
				return fmt.Errorf("%w\n%d were encrypted anew before that. Run it again", err, made)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d of %d secrets were encrypted anew. All are encrypted by the key %s.\n", made, all, keys.First())
			return err
		}),
	}
}

func revokeJWTs() *cobra.Command {
	return &cobra.Command{
		Use: "revoke-jwts", Short: "Delete the keys that sign JWTs, so that no JWT is valid any more", Args: cobra.NoArgs,
		Long: "revoke-jwts deletes the keys that sign the JWTs of projects. A manager that runs notices it within a minute, and makes a new key: then no JWT from before is valid. " +
			"Others who verify JWTs take them until they read the public keys again. It reads the environment of the manager, so run it in its container.",
		Example: "  kubectl exec -n kubeop-system deploy/kubeop-manager -- /manager revoke-jwts",
		RunE: onStore(func(cmd *cobra.Command, _ *config.Manager, s store.Store) error {
			return s.DropSigningKeys(cmd.Context(), endOfTime)
		}),
	}
}

// endOfTime is later than any key signs.
var endOfTime = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// rewrapPage is how many secrets are read at once.
const rewrapPage = 100

// maxPasses is how often all secrets are read while the manager writes some by another key.
const maxPasses = 10

// rewrapAll rewraps all secrets, each in a write of its own, until it finds none of another key: a manager with an older KEY_FILE may have written some meanwhile. Those that
// cannot be decrypted do not keep others from it; they are the error.
func rewrapAll(ctx context.Context, secrets store.Secrets, keys *kms.Keys) (made, all int, err error) {
	for range maxPasses {
		pass := rewrapping{secrets: secrets, keys: keys}
		err := pass.run(ctx)
		made, all = made+pass.made, pass.all
		if err != nil || pass.others == 0 {
			return made, all, err
		}
	}
	return made, all, errors.New("something keeps writing secrets by another key: the manager has to run with the new KEY_FILE")
}

// rewrapping is one pass over all secrets. others are those of another key than the first, and made those of them that were encrypted anew.
type rewrapping struct {
	secrets           store.Secrets
	keys              *kms.Keys
	made, all, others int
}

func (r *rewrapping) run(ctx context.Context) error {
	var failed []error
	var after store.Sealed
	for {
		page, err := r.secrets.ListSealed(ctx, after, rewrapPage)
		if err != nil {
			return errors.Join(append(failed, err)...)
		}
		if len(page) == 0 {
			return errors.Join(failed...)
		}
		for _, was := range page {
			if err := r.one(ctx, was); ctx.Err() != nil {
				return errors.Join(append(failed, ctx.Err())...)
			} else if err != nil {
				failed = append(failed, err)
			}
		}
		after = page[len(page)-1]
	}
}

func (r *rewrapping) one(ctx context.Context, was store.Sealed) error {
	r.all++
	if was.Key == r.keys.First() {
		return nil
	}
	r.others++
	made, err := r.keys.Rewrap(kms.Place{Table: was.Kind, ID: was.ID}, kms.Sealed{Key: was.Key, Data: was.Data})
	if err != nil {
		return err
	}
	// If it is not as it was any more, the manager wrote or deleted it meanwhile, and the next pass looks again.
	replaced, err := r.secrets.ReplaceSealed(ctx, was, store.Sealed{Kind: was.Kind, ID: was.ID, Key: made.Key, Data: made.Data})
	if replaced {
		r.made++
	}
	return err
}
