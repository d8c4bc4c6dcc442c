package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/cmd/kubeop/act"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/cost"
	"github.com/kubeop/kubeop/cmd/kubeop/exit"
	"github.com/kubeop/kubeop/cmd/kubeop/kubeconfig"
	"github.com/kubeop/kubeop/cmd/kubeop/migrate"
	"github.com/kubeop/kubeop/cmd/kubeop/offline"
	"github.com/kubeop/kubeop/cmd/kubeop/plan"
	"github.com/kubeop/kubeop/cmd/kubeop/reach"
	"github.com/kubeop/kubeop/cmd/kubeop/read"
	"github.com/kubeop/kubeop/controllers/plan/render"
)

// Groups of commands, as --help shows them.
var groups = []*cobra.Group{
	{ID: "read", Title: "See what is there:"},
	{ID: "act", Title: "Request something from kubeop:"},
	{ID: "plan", Title: "See what will change:"},
	{ID: "offline", Title: "Work on a repository:"},
	{ID: "other", Title: "Other:"},
}

// Run runs the command line and returns its exit code. args[0] is the name of the program.
func Run(ctx context.Context, args []string, streams genericiooptions.IOStreams, clock clock.Clock) int {
	c := call.New(streams, clock)
	root := New(c)
	if strings.HasPrefix(filepath.Base(args[0]), "kubectl-") {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl kubeop"}
	}
	root.SetArgs(args[1:])
	err := root.ExecuteContext(ctx)
	if ctx.Err() != nil && err != nil {
		return exit.Interrupted
	}
	if err != nil && !errors.Is(err, exit.ErrSaid) {
		// A terminal that cannot be written to cannot show why either.
		_, _ = fmt.Fprintln(c.Err, "Error:", c.Explain(err))
	}
	return exit.Code(err)
}

// New returns the root command with all others.
func New(c *call.Call) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubeop",
		Short: "See and control what kubeop delivers",
		Long: `See and control what kubeop delivers from Git. The command needs only your own rights in the cluster, of the current context of your kubeconfig.

An app is named TENANT/PROJECT/APP. The tenant and the project can be left out if --tenant and --project, or the namespace of -n or of the
kubeconfig, name them.

With --server or KUBEOP_SERVER, get, wait, history, logs, diff, rollback and the completion of names go through the management API of a manager, and
need no kubeconfig, kubeconfig writes one, cost shows what a tenant pays, and usage what apps use. The token is that of KUBEOP_TOKEN, or in the file of KUBEOP_TOKEN_FILE. Other commands need the cluster.

Exit codes: 0 for success, 1 for an error, 2 if differences or problems were found, 3 if something is not ready in time.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(c.In)
	root.SetOut(c.Out)
	root.SetErr(c.Err)
	root.AddGroup(groups...)
	root.SetHelpCommandGroupID("other")
	root.SetCompletionCommandGroupID("other")
	c.AddFlags(root.PersistentFlags())
	for group, commands := range map[string][]*cobra.Command{
		"read":    {read.Get(c), read.Describe(c), read.Tree(c), read.Trace(c), read.History(c), read.Blame(c), read.Events(c), read.Logs(c), reach.Net(c), cost.Command(c), cost.Usage(c)},
		"offline": {offline.Validate(c, render.New), offline.Init(c), offline.Create(c), offline.Set(c), offline.Add(c), offline.Delete(c), offline.Schema(c), offline.Explain(c), migrate.Import(c, offline.Problems)},
		"plan":    {plan.Command(c, render.New), plan.Diff(c, render.New)},
		"act":     {act.Reconcile(c), act.Force(c), act.Reset(c), act.Suspend(c), act.Resume(c), act.Confirm(c), act.Rollback(c), act.Wait(c)},
		"other":   {kubeconfig.Write(c), kubeconfig.Token(c), versionCommand(c)},
	} {
		for _, command := range commands {
			command.GroupID = group
			root.AddCommand(command)
		}
	}
	return root
}
