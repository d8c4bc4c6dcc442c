// Package kubeconfig has the commands by which people reach the cluster with the rights that a manager gives them: one writes a kubeconfig, and the other gets its tokens.
package kubeconfig

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/api/client"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/server"
)

// givesKubeconfigs is what these commands need a manager for.
const givesKubeconfigs = "gives kubeconfigs"

// Write returns the command kubeconfig.
func Write(c *call.Call) *cobra.Command {
	var role string
	command := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Write a kubeconfig with a context for each of your projects",
		Long: `Write a kubeconfig to standard output, with a context for each of your projects, named TENANT/PROJECT. It has no secret: kubectl and other programs
run kubeop token, which gets a token for a short time from the manager. So kubeop has to be in the PATH, with KUBEOP_TOKEN or KUBEOP_TOKEN_FILE.`,
		Example: `  # All projects, each with the highest role that you may have there
  kubeop kubeconfig --server https://kubeop.example.com > ~/.kube/kubeop
  kubectl --kubeconfig ~/.kube/kubeop --context acme/shop get pods

  # Those of one tenant, to read only
  kubeop kubeconfig --tenant acme --role view > ~/.kube/acme`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return write(cmd.Context(), c, role) },
	}
	command.Flags().StringVar(&role, "role", "", "role in each project: view, edit or admin (default: the highest that you may have)")
	return command
}

func write(ctx context.Context, c *call.Call, role string) error {
	manager, err := server.Connect(c.Manager, givesKubeconfigs)
	if err != nil {
		return err
	}
	if c.Project != "" {
		return errors.New("--project is not for this command: the file has all projects, or with --tenant those of one tenant")
	}
	answer, err := manager.GetKubeconfig(ctx, client.GetKubeconfigParams{Tenant: c.Tenant, Role: client.GetKubeconfigParamsRole(role)})
	if err != nil {
		return fmt.Errorf("getting the kubeconfig: %w", manager.Explained(err))
	}
	if len(answer.Body.Contexts) == 0 {
		return errors.New("there is no project in which you may have this role: `kubeop get projects` shows those that you may see")
	}
	_, err = io.WriteString(c.Data, answer.Body.Kubeconfig)
	return err
}
