package kubeconfig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authentication "k8s.io/client-go/pkg/apis/clientauthentication/v1"

	"github.com/kubeop/kubeop/api/client"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/server"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
)

// margin is how long before its end a token is not used any more.
const margin = time.Minute

// getting is one call of the command token.
type getting struct {
	*call.Call
	role, ttl, folder string
	fresh             bool
}

// Token returns the command token.
func Token(c *call.Call) *cobra.Command {
	g := &getting{Call: c}
	command := &cobra.Command{
		Use:   "token PROJECT",
		Short: "Get a token for a project, for kubectl and other programs",
		Long: `Get a token for a project from the manager, and write it to standard output as programs with a kubeconfig of kubeop kubeconfig want it
(ExecCredential). The token is kept in a file that only you may read, and used until a quarter of its life is left; then the next one is got.
A token that was revoked is not known to be: --fresh gets another one, and revokes the one that is kept.`,
		Example: `  # What kubectl runs
  kubeop token acme/shop --role edit --server https://kubeop.example.com

  # After somebody revoked it
  kubeop token acme/shop --role edit --fresh`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.CompleteObject(target.Project),
		RunE:              func(cmd *cobra.Command, args []string) error { return g.run(cmd.Context(), args[0]) },
	}
	command.Flags().StringVar(&g.role, "role", "view", "role in the project: view, edit or admin")
	command.Flags().StringVar(&g.ttl, "ttl", "1h", "how long a token is valid, from 10m to 24h")
	command.Flags().StringVar(&g.folder, "cache", "", "folder for tokens, which only you may read (default: kubeop in the cache folder of your account)")
	command.Flags().BoolVar(&g.fresh, "fresh", false, "revoke the token that is kept, and get another one")
	return command
}

func (g *getting) run(ctx context.Context, name string) error {
	of, err := g.Named(target.Project, name)
	if err != nil {
		return err
	}
	manager, err := server.Connect(g.Manager, givesKubeconfigs)
	if err != nil {
		return err
	}
	file, err := fileOf(g.folder, manager.URL, of.Ref.Path(), g.role, g.ttl, identity(manager.Token))
	if err != nil {
		return err
	}
	held := file.read()
	if g.fresh || g.isShort(held) {
		if held, err = g.replace(ctx, manager, of, file); err != nil {
			return fmt.Errorf("getting a token for the %s: %w", of, manager.Explained(err))
		}
	}
	return g.print(held)
}

// replace gets the next token and keeps it, one process at a time: what another one got meanwhile is used.
func (g *getting) replace(ctx context.Context, manager *server.Manager, of target.Object, file file) (kept, error) {
	defer file.lock(ctx)()
	held := file.read()
	next, err := g.next(ctx, manager, of, held)
	switch {
	case err == nil:
	case !g.fresh && g.valid(held): // It is enough for now.
		return held, nil
	default:
		return kept{}, err
	}
	if next == held {
		return next, nil
	}
	// The token is good also if it cannot be kept, or the one before cannot be revoked.
	if err := errors.Join(file.write(next), g.revoke(ctx, manager, of, held, next)); err != nil {
		_, _ = fmt.Fprintf(g.Err, "Warning: %s\n", err)
	}
	return next, nil
}

// isShort reports whether a quarter of the life of a token is left, or less.
func (g *getting) isShort(held kept) bool {
	early := max(margin, held.Expires.Sub(held.Issued)/4)
	return !g.Clock.Now().Before(held.Expires.Add(-early))
}

// valid reports whether a token is valid for long enough that a program may use it.
func (g *getting) valid(held kept) bool { return g.Clock.Now().Before(held.Expires.Add(-margin)) }

// next returns the token that is kept, if it is valid for more than a quarter of its life. Otherwise it gets the next token of its kubeconfig, or the first one of a new kubeconfig.
func (g *getting) next(ctx context.Context, manager *server.Manager, of target.Object, held kept) (kept, error) {
	switch {
	case g.fresh:
	case !g.isShort(held):
		return held, nil
	case held.ID != "" && g.Clock.Now().Before(held.Expires):
		answer, err := manager.RenewKubeconfig(ctx, of.Ref.Tenant, of.Ref.Project, held.ID)
		if err == nil {
			return g.keptOf(answer.Body), nil
		}
		if !isNotFound(err) {
			return kept{}, err
		}
	}
	answer, err := manager.CreateKubeconfig(ctx, of.Ref.Tenant, of.Ref.Project, client.KubeconfigInputBody{
		Name: "kubeop token", Role: client.KubeconfigInputBodyRole(g.role), TTL: g.ttl,
	})
	if err != nil {
		return kept{}, err
	}
	return g.keptOf(answer.Body), nil
}

// revoke revokes the kubeconfig of a token, unless the next token is of the same one.
func (g *getting) revoke(ctx context.Context, manager *server.Manager, of target.Object, held, next kept) error {
	if held.ID == "" || held.ID == next.ID || !g.Clock.Now().Before(held.Expires) {
		return nil
	}
	if _, err := manager.DeleteKubeconfig(ctx, of.Ref.Tenant, of.Ref.Project, held.ID); err != nil && !isNotFound(err) {
		return fmt.Errorf("revoking the token before, which is valid until %s: %w", held.Expires.Format(time.RFC3339), manager.Explained(err))
	}
	return nil
}

func isNotFound(err error) bool {
	var refused *client.Error
	return errors.As(err, &refused) && int(refused.Status) == http.StatusNotFound
}

func (g *getting) keptOf(k client.KubeconfigToken) kept {
	return kept{ID: k.ID, Token: k.Token, Issued: g.Clock.Now(), Expires: k.Expires}
}

// print writes the token. It says that it ends a minute before it does, so that a program asks for the next one before.
func (g *getting) print(held kept) error {
	ends := metav1.NewTime(held.Expires.Add(-margin))
	text, err := json.Marshal(authentication.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: authentication.SchemeGroupVersion.String(), Kind: "ExecCredential"},
		Status:   &authentication.ExecCredentialStatus{ExpirationTimestamp: &ends, Token: held.Token},
	})
	if err != nil {
		return errors.New("writing the token") // The error may have it.
	}
	_, err = fmt.Fprintf(g.Data, "%s\n", text)
	return err
}
