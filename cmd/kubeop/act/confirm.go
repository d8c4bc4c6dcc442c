package act

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
)

// Confirm returns the command confirm.
func Confirm(c *call.Call) *cobra.Command {
	var token string
	command := &cobra.Command{
		Use:   "confirm [KIND] NAME",
		Short: "Confirm deletions, a commit or promotions that kubeop holds, after listing them",
		Long: `Confirm deletions that kubeop holds because data or many objects would be lost, a commit that waits for the end of a freeze or does not descend from
the last one, or promotions to a project that wait for approval. The command lists them and asks; the answer is the token, which is valid for exactly
this list, the first 8 digits of the commit, or the tokens of promotions. Deletions come first. It needs the role admin of the tenant, and for the
platform repository an administrator of the cluster.`,
		Example: `  # See what a commit would delete, and decide
  kubeop confirm repository acme

  # Promote what is healthy in staging to a project with spec.promotion.approval
  kubeop confirm project acme/production

  # In a script that knows the list it confirms
  kubeop confirm acme/shop/web --token 1a2b3c4d`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: c.CompleteObject(target.App, target.Repository, target.Project),
		RunE:              func(cmd *cobra.Command, args []string) error { return confirm(cmd.Context(), c, args, token) },
	}
	command.Flags().StringVar(&token, "token", "", "confirm what has this token, or this commit, without asking")
	return command
}

func confirm(ctx context.Context, c *call.Call, args []string, typed string) error {
	of, err := c.Object(args)
	if err != nil {
		return err
	}
	object, err := c.Read(ctx, of)
	if err != nil {
		return err
	}
	all := target.AllHeld(of, object)
	if len(all) == 0 {
		_, err := fmt.Fprintf(c.Out, "The %s holds nothing that waits for a confirmation.\n", of)
		return err
	}
	held := all[0]
	if typed == "" {
		if typed, err = ask(c, question(of, held)); err != nil {
			return fmt.Errorf("%s: %w", held.Stays, err)
		}
	} else if at := slices.IndexFunc(all, func(h target.Held) bool { _, ok := h.Confirm(typed); return ok }); at >= 0 {
		held = all[at]
	}
	value, ok := held.Confirm(typed)
	if !ok {
		return fmt.Errorf("%s: the token of what the %s holds now is %s, not %s", held.Stays, of, strings.Join(held.Tokens, " or "), typed)
	}
	if err := annotate(ctx, c, of, map[string]any{held.Annotation: value}); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.Out, "Confirmed: kubeop %s.\n", held.Does)
	return err
}

// question asks for the token of what is held; of several, for those that a person chooses.
func question(of target.Object, held target.Held) string {
	text := fmt.Sprintf("%s of the %s that wait for a confirmation:\n  %s\n", held.What, of, strings.Join(held.Lines, "\n  "))
	if len(held.Tokens) > 1 {
		return text + "To confirm, type the tokens at the beginning of the lines, or some of them, separated by commas: "
	}
	return text + "To confirm, type " + held.Tokens[0] + ": "
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
