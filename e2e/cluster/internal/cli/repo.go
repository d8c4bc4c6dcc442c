package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/e2e/cluster/internal/gitserver"
	"github.com/kubeop/kubeop/e2e/cluster/internal/layout"
)

// gitRunning returns the running cluster's Git server and its store.
func (o opener) gitRunning() (*layout.Git, *gitserver.Store, error) {
	dir, state, err := o.running()
	if err != nil {
		return nil, nil, err
	}
	if state.Git == nil {
		return nil, nil, errors.New("this cluster runs no Git server: start it with \"cluster up --git\"")
	}
	return state.Git, gitserver.Open(dir.Path("git")), nil
}

func newRepo(open opener) *cobra.Command {
	command := &cobra.Command{Use: "repo", Short: "Create and list Git repositories in the cluster's Git server"}
	command.AddCommand(newRepoCreate(open), newRepoList(open), newRepoDelete(open))
	return command
}

func newRepoCreate(open opener) *cobra.Command {
	var wanted gitserver.Wanted
	var private bool
	command := &cobra.Command{
		Use: "create NAME...", Args: cobra.MinimumNArgs(1),
		Short: "Create repositories, or add a user to some; prints the clone URLs for the host and for pods",
		RunE: func(_ *cobra.Command, args []string) error {
			server, store, err := open.gitRunning()
			if err != nil {
				return err
			}
			if (wanted.User == "") != (wanted.Password == "") {
				return errors.New("--user and --password go together")
			}
			if err := store.Create(wanted, args...); err != nil {
				return err
			}
			for _, name := range args {
				printCloneURLs(server, name)
			}
			return nil
		},
	}
	f := command.Flags()
	f.StringVar(&wanted.User, "user", "", "a user who may read and write; call again for more users")
	f.StringVar(&wanted.Password, "password", "", "that user's password")
	f.StringVar(&wanted.From, "from", "", "a bare repository to copy")
	f.StringVar(&wanted.Webhook, "webhook", "", "URL to POST to after every push; {name} stands for the repository's name")
	f.StringVar(&wanted.WebhookSecret, "webhook-secret", "", "key of the HMAC-SHA256 in the webhook's X-Signature header")
	f.BoolVar(&wanted.Public, "public", false, "allow everyone to read")
	f.BoolVar(&private, "private", false, "let only users read (the default)")
	command.MarkFlagsMutuallyExclusive("public", "private")
	return command
}

func newRepoList(open opener) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the repositories and their users", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			server, store, err := open.gitRunning()
			if err != nil {
				return err
			}
			repositories, err := store.List()
			if err != nil {
				return err
			}
			for _, name := range slices.Sorted(maps.Keys(repositories)) {
				repository := repositories[name]
				readers := "private"
				if repository.Public {
					readers = "public"
				}
				users := strings.Join(slices.Sorted(maps.Keys(repository.Users)), ",")
				fmt.Printf("%s\t%s\tusers: %s\t%s/%s.git\n", name, readers, users, server.Host, name)
			}
			return nil
		},
	}
}

func newRepoDelete(open opener) *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME", Short: "Delete a repository; its users get \"not found\" from then on", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			_, store, err := open.gitRunning()
			if err != nil {
				return err
			}
			return store.Delete(args[0])
		},
	}
}

func printCloneURLs(server *layout.Git, name string) {
	fmt.Printf("%s/%s.git\n", server.Host, name)
	if server.Pods != "" {
		fmt.Printf("%s/%s.git\n", server.Pods, name)
	}
}
