package act

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/kubeop/kubeop/api/client"
	"github.com/kubeop/kubeop/cmd/kubeop/server"
	"github.com/kubeop/kubeop/gitops/rollback"
)

// hashLength is how many digits a commit has.
const hashLength = 40

// through has a manager make the commit. back may be the beginning of a commit of the app's history; "" for the one that the manager chooses.
func (r *rollingBack) through(ctx context.Context, manager *server.Manager, back string) error {
	if !r.push {
		return errors.New("a manager makes the commit and pushes it at once: add --push if that is meant, or leave out --server to make it in a clone")
	}
	at := r.of.Ref
	if back != "" && len(back) < hashLength {
		history, err := manager.GetAppHistory(ctx, at.Tenant, at.Project, at.App)
		if err != nil {
			return fmt.Errorf("reading the history of the %s: %w", r.of, manager.Explained(err))
		}
		if back, err = completed(back, history.Body.Items); err != nil {
			return err
		}
	}
	// A lost answer is no reason to make a second commit.
	answer, err := manager.RollbackApp(ctx, at.Tenant, at.Project, at.App, client.RollbackAppParams{IdempotencyKey: uuid.NewString()}, client.RollbackAppJSONRequestBody{To: back})
	if err != nil {
		return fmt.Errorf("rolling the %s back: %w", r.of, manager.Explained(err))
	}
	made := answer.Body
	if !made.Changed {
		return fmt.Errorf("%s is already so in the repository %s", made.File, made.Repository)
	}
	_, err = fmt.Fprintf(r.Out, "Committed %s to the repository %s: the folder of %s is as it was. `kubeop wait %s` waits for it.\n", rollback.Short(made.Commit), made.Repository, made.File, r.of.Args())
	return err
}

// completed returns the commit of a history that begins with digits.
func completed(digits string, history []client.Delivery) (string, error) {
	var found []string
	for _, d := range history {
		if strings.HasPrefix(d.Commit, digits) && !slices.Contains(found, d.Commit) {
			found = append(found, d.Commit)
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%d commits of the history begin with %s: write all 40 digits, as kubeop history -o wide shows them", len(found), digits)
	}
	return found[0], nil
}
