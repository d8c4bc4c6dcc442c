package offline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/git"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
	"github.com/kubeop/kubeop/gitops/commit"
)

// Delete returns the command delete.
func Delete(c *call.Call) *cobra.Command {
	d := &destination{Call: c}
	command := &cobra.Command{
		Use:   "delete KIND NAME",
		Short: "Delete the folder of an app, project or tenant, or the file of a policy or a registry",
		Long: `Delete the folder that declares an app, a project or a tenant, with everything in it, or the file of a policy or a registry, from the
repository that the current folder is in. What has changes that are not committed is not deleted, so that Git has everything that is lost.
If others need what is deleted, such as tenants a policy, these problems are listed, and the exit code is 2.

What the cluster does is decided there: a commit that deletes a tenant, a project or volumes with data, a policy of tenants or a registry in
use, waits until kubeop confirm.

KIND is app, project, tenant, policy or registry. NAME is as in kubeop create.`,
		Example: `  # The files of the clone, to be looked at and committed
  kubeop delete app shop/web

  # As a pull request
  kubeop delete project shop --pull-request`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, kind := range []target.Kind{target.App, target.Project, target.Tenant, target.Policy, target.Registry} {
				if args[0] == kind.Singular() {
					return deleteFolder(cmd.Context(), d, kind, args[1])
				}
			}
			return fmt.Errorf("%q is no kind: write app, project, tenant, policy or registry", args[0])
		},
	}
	d.addFlags(command)
	return command
}

// deleteFolder deletes the folder of an object.
func deleteFolder(ctx context.Context, d *destination, kind target.Kind, name string) error {
	root, place, err := d.find(kind, name)
	if err != nil {
		return err
	}
	of := path.Dir(place)
	if fileOf[kind.Name] != nil {
		of = place
	}
	if !d.commits && !d.pullRequest {
		if _, err := os.Lstat(filepath.Join(root, filepath.FromSlash(of))); err != nil {
			return fmt.Errorf("no %s %s is declared here: %w", kind.Singular(), name, err)
		}
		if err := committed(ctx, root, of); err != nil {
			return err
		}
	}
	return d.write(ctx, change{
		root: root, place: place, title: "Delete " + kind.Singular() + " " + name, edits: []commit.Edit{commit.Delete{Path: of}},
	})
}

// committed checks that Git has everything in a folder.
func committed(ctx context.Context, root, folder string) error {
	if !git.Within(root) {
		return errors.New("this is no clone of a repository, so what is deleted could not be brought back: delete " + folder + " by hand")
	}
	changed, err := git.Line(ctx, root, "status", "--porcelain", "--ignored", "--", folder)
	if err != nil {
		return err
	}
	if changed != "" {
		return fmt.Errorf("%s has files or changes that are not committed (%s); commit or remove them first", folder, changed)
	}
	return nil
}
