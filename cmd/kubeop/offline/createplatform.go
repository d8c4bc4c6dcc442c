package offline

import (
	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
)

func createPolicy(c *call.Call) *cobra.Command {
	var isDefault, digest bool
	var images, services, hosts []string
	d := &destination{Call: c}
	command := &cobra.Command{
		Use:   "policy NAME",
		Short: "Write policies/NAME.yaml into the platform repository",
		Long: `Write the file of a policy into the platform repository. A tenant names the policies that it is under in spec.policies; without any, it is under
those that are default. Rules without a flag are written by hand: docs/spec/policy.md lists them.`,
		Example: `  # For all tenants that name no policy: images of one registry, and no load balancers
  kubeop create policy baseline --default --image registry.example.com --service ClusterIP

  # Images by digest, and host names of one domain
  kubeop create policy strict --require-digest --host shop.example.com`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			spec, of := fields{}, fields{}
			if isDefault {
				spec["default"] = true
			}
			if len(images) > 0 {
				of["allow"] = images
			}
			if digest {
				of["requireDigest"] = true
			}
			set(spec, "images", of)
			set(spec, "services", listed("types", services))
			set(spec, "hostnames", listed("suffixes", hosts))
			return writeObject(cmd.Context(), d, target.Policy, args[0], spec)
		},
	}
	d.addFlags(command)
	flags := command.Flags()
	flags.BoolVar(&isDefault, "default", false, "hold for tenants that name no policy")
	flags.StringArrayVar(&images, "image", nil, "registry or repository from which images may be; can be given again")
	flags.BoolVar(&digest, "require-digest", false, "images have to be named by their digests")
	flags.StringArrayVar(&services, "service", nil, "type that a Service may have: ClusterIP, NodePort or LoadBalancer; can be given again")
	flags.StringArrayVar(&hosts, "host", nil, "domain in which host names may be; can be given again")
	return command
}

func createRegistry(c *call.Call) *cobra.Command {
	var host, secret, mirror string
	var insecure bool
	var tenants, policies []string
	d := &destination{Call: c}
	command := &cobra.Command{
		Use:   "registry NAME",
		Short: "Write registries/NAME.yaml into the platform repository",
		Long: `Write the file of a registry into the platform repository: its credentials, and who may use them. The Secret is in the namespace of the operator, and
the file only names it: docs/spec/registry.md says what it holds. Without --tenant and --policy, nobody may use the credentials.`,
		Example: `  # For one team
  kubeop create registry ghcr --host ghcr.io --secret ghcr-pull --tenant acme

  # For all tenants that are under a policy
  kubeop create registry internal --host registry.example.com:5000 --secret internal-pull --policy standard`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			spec := fields{"host": host, "secretRef": named(secret)}
			if insecure {
				spec["insecure"] = true
			}
			if mirror != "" {
				spec["mirror"] = mirror
			}
			if len(tenants) > 0 {
				spec["tenants"] = tenants
			}
			if len(policies) > 0 {
				spec["policies"] = policies
			}
			return writeObject(cmd.Context(), d, target.Registry, args[0], spec)
		},
	}
	d.addFlags(command)
	flags := command.Flags()
	flags.StringVar(&host, "host", "", "host of the registry, with the port if references have one (required)")
	flags.StringVar(&secret, "secret", "", "Secret with the credentials, in the namespace of the operator (required)")
	flags.StringArrayVar(&tenants, "tenant", nil, "tenant that may use the credentials; can be given again")
	flags.StringArrayVar(&policies, "policy", nil, "policy whose tenants may use the credentials; can be given again")
	flags.StringVar(&mirror, "mirror", "", "registry that kubeop asks first, as HOST[/PATH]")
	flags.BoolVar(&insecure, "insecure", false, "have kubeop fetch from the host without TLS")
	// They fail only for a flag that does not exist.
	_ = command.MarkFlagRequired("host")
	_ = command.MarkFlagRequired("secret")
	return command
}
