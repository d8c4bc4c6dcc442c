package migrate

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/cmd/kubeop/call"
)

// Import returns the command import, which checks what it wrote.
func Import(c *call.Call, check Check) *cobra.Command {
	command := &cobra.Command{
		Use:   "import",
		Short: "Write what Flux or Argo CD delivers as a repository of kubeop",
		Long: `Write what Flux or Argo CD delivers as projects and apps of kubeop, which take the running releases and objects over. A report names what has no
counterpart and what is to be done; then the exit code is 2. Nothing is overwritten, and nothing in the cluster is changed. See docs/import.md.`,
		Example: `  # The folder of a cluster, in a clone of the repository of Flux
  kubeop import flux clusters/production --tenant platform --out ../platform

  # What the cluster has
  kubeop import flux --cluster -n shop --tenant acme --out ../acme`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	command.AddCommand(importFlux(c, check), importArgo(c, check))
	return command
}

func importFlux(c *call.Call, check Check) *cobra.Command {
	o := &options{Call: c, check: check}
	command := &cobra.Command{
		Use:   "flux [DIR] --tenant TENANT --out DIR",
		Short: "Import Kustomizations and HelmReleases of Flux",
		Long: `Import Kustomizations and HelmReleases of Flux with their sources. DIR is the folder of one cluster, as in flux bootstrap --path, in a clone of the
repository: folders that its Kustomizations name are read, too, and built as Flux builds them. With --cluster, the objects of the cluster are read
instead, with your own rights.

A release is taken over in its namespace, and its pods keep running, if kubeop delivers to that namespace: with --tenant platform, each namespace is a
project of the platform, which adopts it. With another tenant, a namespace is a project of the tenant, or all apps are in --project. Values that may be
secret are not written.`,
		Example: `  # The folder of a cluster, into the platform repository
  kubeop import flux clusters/production --tenant platform --out ../platform

  # Only report what has no counterpart, for a program
  kubeop import flux --cluster --tenant platform --out "$(mktemp -d)" -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args, o.flux) },
	}
	o.addFlags(command)
	return command
}

// flux reads the objects of Flux and converts them.
func (o *options) flux(ctx context.Context, m *migration, args []string) error {
	m.report.Next = []string{
		"Stop Flux without deleting: flux suspend kustomization --all, and flux suspend helmrelease --all, in each namespace.",
		"Review the files, commit and push them. kubeop takes the releases and objects over: kubeop get apps shows when.",
		"Delete the suspended objects of Flux. What they delivered stays, because Flux deletes nothing of suspended objects.",
	}
	if m.ofPlatform() {
		m.report.Next = append([]string{"Set platformApps of kubeop's chart to Namespaced, or to ClusterAdmin for objects outside of namespaces: see docs/platform-apps.md."}, m.report.Next...)
	}
	if err := o.readFlux(ctx, m, args); err != nil {
		return err
	}
	m.fluxApps()
	return nil
}

// fluxApps converts the objects of Flux.
func (m *migration) fluxApps() {
	for _, object := range m.objects {
		switch object.GroupVersionKind().GroupKind().String() {
		case "HelmRelease." + helmGroup, "Kustomization." + kustomizeGroup:
			if fromSecrets(object) {
				m.report.leaveOut(object, "", "its Kustomization puts variables of Secrets into it, which are no text for a file: import it from its folder")
			} else if object.GetKind() == "HelmRelease" {
				m.release(object)
			} else {
				m.kustomization(object)
			}
		case "GitRepository." + sourceGroup, "HelmRepository." + sourceGroup, "OCIRepository." + sourceGroup, "HelmChart." + sourceGroup:
		default:
			m.report.leaveOut(object, "", whyOfKinds(object))
		}
	}
	m.dependencies()
}

// whyOfKinds explains kinds of Flux that are not imported.
func whyOfKinds(o *object) string {
	switch group := o.GroupVersionKind().Group; {
	case strings.HasPrefix(group, "image."):
		return "kubeop has image.policy in apps of type Image: see docs/image.md"
	case o.GetKind() == "Receiver":
		return "kubeop has one push hook for all repositories: see docs/network.md"
	case strings.HasPrefix(group, "notification."):
		return "a Tenant has notifications and a Repository commitStatus: see docs/spec/tenant.md"
	}
	return "it has no counterpart in kubeop"
}

func (o *options) readFlux(ctx context.Context, m *migration, args []string) error {
	if o.cluster {
		reader, err := o.Client()
		if err != nil {
			return err
		}
		if err := m.readCluster(ctx, reader, *o.Flags.Namespace, fluxKinds); err != nil {
			return err
		}
		m.relate()
		return nil
	}
	return o.open(ctx, m, args, m.readFlux)
}
