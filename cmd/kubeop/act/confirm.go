package act

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
)

// Confirm returns the command confirm.
func Confirm(c *call.Call) *cobra.Command {
	var token string
	command := &cobra.Command{
		Use:   "confirm [KIND] NAME",
		Short: "Confirm deletions or a commit that kubeop holds, after listing them",
		Long: `Confirm deletions that kubeop holds because data or many objects would be lost, or a commit that waits for the end of a freeze. The command lists
them and asks; the answer is the token, which is valid for exactly this list, or the first 8 digits of the commit. Deletions come first. It needs the
role admin of the tenant, and for the platform repository an administrator of the cluster.`,
		Example: `  # See what a commit would delete, and decide
  kubeop confirm repository acme

  # In a script that knows the list it confirms
  kubeop confirm acme/shop/web --token 1a2b3c4d`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: c.CompleteObject(target.App, target.Repository),
		RunE:              func(cmd *cobra.Command, args []string) error { return confirm(cmd.Context(), c, args, token) },
	}
	command.Flags().StringVar(&token, "token", "", "confirm the list that has this token, or this commit, without asking")
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
	if _, commit := target.Frozen(object); commit != "" && (valid == "" || names(token, commit)) {
		return confirmCommit(ctx, c, of, object, token)
	}
	if valid == "" {
		_, err := fmt.Fprintf(c.Out, "The %s holds no deletions.\n", of)
		return err
	}
	if token == "" {
		question := fmt.Sprintf("These deletions of the %s wait for a confirmation:\n  %s\nTo delete them, type %s: ", of, strings.Join(held, "\n  "), valid)
		if token, err = ask(c, question); err != nil {
			return fmt.Errorf("nothing is deleted: %w", err)
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

// names reports whether a token names a commit: by its first digits, at least 8.
func names(token, commit string) bool { return len(token) >= 8 && strings.HasPrefix(commit, token) }

// confirmCommit confirms the commit that waits for the end of a freeze.
func confirmCommit(ctx context.Context, c *call.Call, of target.Object, object client.Object, token string) (err error) {
	waits, commit := target.Frozen(object)
	if token == "" {
		question := fmt.Sprintf("A freeze is in force, and of the %s %s.\nTo apply this commit now, type %.8s: ", of, waits, commit)
		if token, err = ask(c, question); err != nil {
			return fmt.Errorf("the commit waits on: %w", err)
		}
	}
	if !names(token, commit) {
		return fmt.Errorf("the commit waits on: it is %s, not %s", commit, token)
	}
	if err := annotate(ctx, c, of, map[string]any{v1alpha1.ConfirmFreezeAnnotation: commit}); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.Out, "Confirmed: kubeop applies commit %s of the %s.\n", commit, of)
	return err
}

// ask asks a question and returns the answer.
func ask(c *call.Call, question string) (string, error) {
	if _, err := fmt.Fprint(c.Err, question); err != nil {
		return "", err
	}
	answer, err := bufio.NewReader(c.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("reading the answer: %w", err)
	}
	if answer = strings.TrimSpace(answer); answer == "" {
		return "", errors.New("no token was given")
	}
	return answer, nil
}
