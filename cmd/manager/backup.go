package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/store/backup"
	"github.com/kubeop/kubeop/internal/store/database"
	"github.com/kubeop/kubeop/internal/store/postgres"
	"github.com/kubeop/kubeop/internal/store/sqlite"
	"github.com/kubeop/kubeop/internal/store/sqlstore"
	"github.com/kubeop/kubeop/internal/version"
)

// standard stands for the standard input and output.
const standard = "-"

func backUp() *cobra.Command {
	return &cobra.Command{
		Use: "backup <file>", Short: "Write all that the store has into a file, or to the standard output (-)", Args: cobra.ExactArgs(1),
		Long: "backup writes all rows of the store, as they are at one moment, into a new file, or to the standard output if the file is -. The manager may run meanwhile. The file ends with a checksum, so a " +
			"restore notices whether it is whole. Secrets stay encrypted in it: back the keys of KEY_FILE up apart from it. The hashes of tokens, the audit log and the names of all tenants can be read, so keep it as " +
			"you keep the database. It reads the environment of the manager, so run it in its container.",
		Example: "  (umask 077; kubectl exec -n kubeop-system deploy/kubeop-manager -- /manager backup - > kubeop-manager.backup)",
		RunE: func(cmd *cobra.Command, arguments []string) error {
			c, err := config.LoadManager(cmd.Context())
			if err != nil {
				return err
			}
			db, err := connect(cmd.Context(), c)
			if err != nil {
				return err
			}
			defer db.Close()
			rows, err := writeBackup(cmd, db, arguments[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.ErrOrStderr(), "The backup is complete: it has %d rows.\n", rows)
			return err
		},
	}
}

// connect opens the store that the configuration names, as it is. It has to be there.
func connect(ctx context.Context, c *config.Manager) (*database.DB, error) {
	if c.DatabaseURL != "" {
		return postgres.Connect(ctx, string(c.DatabaseURL))
	}
	if _, err := os.Stat(storeFile(c)); err != nil {
		return nil, fmt.Errorf("DATA_DIR has no store: %w", err)
	}
	return sqlite.Connect(storeFile(c))
}

// writeBackup writes a file that is there only if it is whole.
func writeBackup(cmd *cobra.Command, db *database.DB, path string) (rows int64, err error) {
	if path == standard {
		return backup.Write(cmd.Context(), db, cmd.OutOrStdout(), version.Version)
	}
	if _, err := os.Lstat(path); err == nil {
		return 0, fmt.Errorf("%s is there already; name a new file", path)
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return 0, err
	}
	rows, err = backup.Write(cmd.Context(), db, file, version.Version)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return 0, errors.Join(err, os.Remove(file.Name()))
	}
	return rows, syncFolder(filepath.Dir(path))
}

// syncFolder has the new name of a file outlive a loss of power.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

func restore() *cobra.Command {
	setAside := false
	cmd := &cobra.Command{
		Use: "restore <file>", Short: "Read a backup into an empty store", Args: cobra.ExactArgs(1),
		Long: "restore reads a backup from a file, or from the standard input if the file is -, into the store that the environment of the manager names: an empty database of DATABASE_URL, or a new file in DATA_DIR. " +
			"The backup may be of the other kind of store, and of an older version of the manager. Stop all managers before. If anything is wrong with the backup, the store stays as it was.\n\n" +
			"What happened after the backup is lost: tokens that were revoked since are valid again, so revoke them again; those that were created since are unknown. IDs of events are given out again from where " +
			"the backup ends, so programs that export the audit log have to begin there.",
		Example: "  manager restore kubeop-manager.backup\n  DATABASE_URL=postgres://kubeop:…@db.example.com/kubeop manager restore kubeop-manager.backup",
		RunE: func(cmd *cobra.Command, arguments []string) error {
			c, err := config.LoadManager(cmd.Context())
			if err != nil {
				return err
			}
			from := cmd.InOrStdin()
			if arguments[0] != standard {
				file, err := os.Open(arguments[0])
				if err != nil {
					return err
				}
				defer file.Close()
				from = file
			}
			if c.DatabaseURL != "" {
				return restoreDatabase(cmd, c, from)
			}
			return restoreFile(cmd, c, from, setAside)
		},
	}
	cmd.Flags().BoolVar(&setAside, "set-aside", false, "if DATA_DIR has a store, whole or broken, keep its files under another name; not for DATABASE_URL, for which you make a new database")
	return cmd
}

func restoreDatabase(cmd *cobra.Command, c *config.Manager, from io.Reader) error {
	db, err := postgres.Connect(cmd.Context(), string(c.DatabaseURL))
	if err != nil {
		return err
	}
	defer db.Close()
	restored, err := restoreInto(cmd.Context(), db, from)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(cmd.ErrOrStderr(), restored)
	return err
}

func restoreFile(cmd *cobra.Command, c *config.Manager, from io.Reader, setAside bool) error {
	var restored string
	kept, err := sqlite.Replace(storeFile(c), setAside, func(db *database.DB) (err error) {
		restored, err = restoreInto(cmd.Context(), db, from)
		return err
	})
	if err != nil {
		return err
	}
	if kept != "" {
		restored += fmt.Sprintf("The store from before is %s, with the files whose names begin so.\n", kept)
	}
	_, err = fmt.Fprint(cmd.ErrOrStderr(), restored)
	return err
}

// restoreInto returns the text to print once the database is in its place.
func restoreInto(ctx context.Context, db *database.DB, from io.Reader) (string, error) {
	header, rows, err := backup.Restore(ctx, db, from, sqlstore.Migrations())
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Restored %d rows of the backup that manager %s made at %s.\n", rows, header.Version, header.Created.Format("2006-01-02 15:04:05 MST")), nil
}
