package act

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
)

// Confirm returns the command confirm.
func Confirm(c *call.Call) *cobra.Command {
	var token string
	command := &cobra.Command{
		Use:   "confirm [KIND] NAME",
		Short: "Confirm deletions that kubeop holds, after listing them",
		Long: `Confirm deletions that kubeop holds because data or many objects would be lost. The command lists them and asks; the answer is the token, which is
valid for exactly this list. It needs the role admin of the tenant, and for the platform repository an administrator of the cluster.`,
		Example: `  # See what a commit would delete, and decide
  kubeop confirm repository acme

  # In a script that knows the list it confirms
  kubeop confirm acme/shop/web --token 1a2b3c4d`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: c.CompleteObject(target.App, target.Repository),
		RunE:              func(cmd *cobra.Command, args []string) error { return confirm(cmd.Context(), c, args, token) },
	}
	command.Flags().StringVar(&token, "token", "", "confirm the list that has this token, without asking")
	return command
}

func confirm(ctx context.Context, c *call.Call, args []string, token string) error {
	of, err := c.Object(args)
	if err != nil {
		return err
	}
	object, err := c.Read(ctx, of)
	if err != nil {
		return err
	}
	held, valid := target.Held(object)
	if valid == "" {
		_, err := fmt.Fprintf(c.Out, "The %s holds no deletions.\n", of)
		return err
	}
	if token == "" {
		if token, err = ask(c, of, held, valid); err != nil {
			return err
		}
	}
	if token != valid {
		return fmt.Errorf("nothing is deleted: the token of what the %s holds now is %s, not %s", of, valid, token)
	}
	if err := annotate(ctx, c, of, map[string]any{v1alpha1.ConfirmAnnotation: token}); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.Out, "Confirmed: kubeop deletes what the %s holds.\n", of)
	return err
}

// ask lists what would be deleted and returns the answer.
func ask(c *call.Call, of target.Object, held []string, token string) (string, error) {
	if _, err := fmt.Fprintf(c.Err, "These deletions of the %s wait for a confirmation:\n  %s\nTo delete them, type %s: ", of, strings.Join(held, "\n  "), token); err != nil {
		return "", err
	}
	answer, err := bufio.NewReader(c.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("reading the answer: %w", err)
	}
	if answer = strings.TrimSpace(answer); answer == "" {
		return "", errors.New("nothing is deleted: no token was given")
	}
	return answer, nil
}
