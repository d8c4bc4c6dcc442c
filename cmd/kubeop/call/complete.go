package call

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
	"github.com/kubeop/kubeop/gitops/identity"
)

// Completion is how the shell completes arguments.
type Completion = func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective)

// CompleteKindThenNames completes "KIND NAME...".
func (c *Call) CompleteKindThenNames(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return plurals(), cobra.ShellCompDirectiveNoFileComp
	}
	kind, err := target.KindOf(args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.names(cmd.Context(), kind), cobra.ShellCompDirectiveNoFileComp
}

// CompleteObject completes "[KIND] NAME", where the kinds are those given.
func (c *Call) CompleteObject(kinds ...target.Kind) Completion {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		switch {
		case len(args) == 1 && len(kinds) > 1:
			return c.CompleteKindThenNames(cmd, args, word)
		case len(args) > 0:
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var words []string
		for _, kind := range kinds {
			if kind.Name == v1alpha1.AppKind {
				words = append(words, c.names(cmd.Context(), kind)...)
			}
			if len(kinds) > 1 {
				words = append(words, kind.Singular())
			}
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

func plurals() []string {
	var all []string
	for _, kind := range target.Kinds {
		all = append(all, kind.Plural)
	}
	return all
}

// names returns the names of a kind that the person may list: those of the tenant and the project they work in, or of all. What cannot be listed
// completes to nothing, because a shell has no place for errors.
func (c *Call) names(ctx context.Context, kind target.Kind) []string {
	source, err := c.Source()
	if err != nil {
		return nil
	}
	within := c.Within()
	if kind.Name != v1alpha1.AppKind || within.Tenant == "" || within.Project != "" {
		return list(ctx, source, kind, within)
	}
	var names []string
	for _, project := range list(ctx, source, target.Project, within) {
		for _, app := range list(ctx, source, kind, identity.Ref{Tenant: within.Tenant, Project: project}) {
			names = append(names, project+"/"+app)
		}
	}
	return names
}

// list returns the names of the objects of a tenant or project, without those of the tenant and the project, or the names of all objects.
func list(ctx context.Context, source target.Source, kind target.Kind, within identity.Ref) []string {
	namespace, prefix := "", ""
	switch {
	case within.Tenant == "":
	case kind.Name == v1alpha1.ProjectKind:
		namespace, prefix = v1alpha1.HomeNamespace(within.Tenant), within.Tenant+"/"
	case kind.Name == v1alpha1.AppKind:
		namespace, prefix = v1alpha1.ProjectNamespace(within.Tenant, within.Project), within.Tenant+"/"+within.Project+"/"
	}
	found, err := source.List(ctx, kind, namespace)
	if err != nil {
		return nil
	}
	var names []string
	for _, object := range found {
		names = append(names, strings.TrimPrefix(target.PathOf(object), prefix))
	}
	return names
}
