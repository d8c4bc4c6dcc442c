package offline

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
)

// Create returns the command create.
func Create(c *call.Call) *cobra.Command {
	command := &cobra.Command{
		Use:   "create",
		Short: "Write the file of a new app, project, tenant, policy or registry into a repository",
		Long: `Write the file of a new app, project, tenant, policy or registry into the repository that the current folder is in, at the path that kubeop reads, and
check it. If it has problems, they are listed, and the exit code is 2. Nothing is overwritten. With --commit or --pull-request, the file is not
written into the clone, but committed and pushed; one with problems is not.`,
		Example: `  # An image with a port, in a tenant's repository
  kubeop create app shop/web --image registry.example.com/web:1.0.0 --port 8080

  # A team, in the platform repository
  kubeop create tenant acme --url https://git.example.com/acme.git --secret acme-git --owner Group:acme-developers:edit`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	command.AddCommand(createApp(c), createProject(c), createTenant(c), createPolicy(c), createRegistry(c))
	return command
}

func createTenant(c *call.Call) *cobra.Command {
	var url, branch, secret, hook string
	var owners []string
	d := &destination{Call: c}
	command := &cobra.Command{
		Use:   "tenant NAME",
		Short: "Write tenants/NAME/tenant.yaml into the platform repository",
		Long: `Write the file of a tenant into the platform repository. The Secrets that it names are in the namespace of the operator:
docs/spec/tenant.md says what they hold.`,
		Example: `  # A team with a private repository
  kubeop create tenant acme --url https://git.example.com/acme.git --secret acme-git --hook-secret acme-hook

  # Who may do what
  kubeop create tenant acme --url https://git.example.com/acme.git --owner User:ann@example.com:admin --owner Group:acme:view`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			repository := fields{"url": url}
			set(repository, "secretRef", named(secret))
			set(repository, "hookSecretRef", named(hook))
			set(repository, "ref", keyed("branch", branch))
			spec := fields{"repository": repository}
			people := []any{}
			for _, owner := range owners {
				parts := strings.SplitN(owner, ":", 2)
				cut := strings.LastIndex(owner, ":")
				if len(parts) != 2 || cut <= len(parts[0]) {
					return fmt.Errorf("--owner %q: write KIND:NAME:ROLE, such as Group:acme-developers:edit", owner)
				}
				people = append(people, fields{"kind": parts[0], "name": owner[len(parts[0])+1 : cut], "role": owner[cut+1:]})
			}
			if len(people) > 0 {
				spec["owners"] = people
			}
			return writeObject(cmd.Context(), d, target.Tenant, args[0], spec)
		},
	}
	d.addFlags(command)
	flags := command.Flags()
	flags.StringVar(&url, "url", "", "URL of the tenant's repository (required)")
	flags.StringVar(&branch, "branch", "", "branch of it (default: that of the operator)")
	flags.StringVar(&secret, "secret", "", "Secret with the credentials of the repository")
	flags.StringVar(&hook, "hook-secret", "", "Secret with the token of the push hook")
	flags.StringArrayVar(&owners, "owner", nil, "KIND:NAME:ROLE of a person or group, such as Group:acme-developers:edit; can be given again")
	// It fails only for a flag that does not exist.
	_ = command.MarkFlagRequired("url")
	return command
}

func createProject(c *call.Call) *cobra.Command {
	var quota map[string]string
	d := &destination{Call: c}
	command := &cobra.Command{
		Use:   "project [TENANT/]NAME",
		Short: "Write the file of a project",
		Long: `Write the file of a project into a tenant's repository. In the platform repository, TENANT is a tenant that is declared there with its projects, or
platform.`,
		Example: `  # With the quota of the tenant
  kubeop create project shop

  # With one of its own
  kubeop create project shop --quota requests.cpu=2 --quota requests.memory=2Gi --quota pods=20`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			spec := fields{}
			if len(quota) > 0 {
				spec["quota"] = quota
			}
			return writeObject(cmd.Context(), d, target.Project, args[0], spec)
		},
	}
	d.addFlags(command)
	command.Flags().StringToStringVar(&quota, "quota", nil, "RESOURCE=QUANTITY of the project's quota, such as requests.cpu=2; can be given again")
	return command
}

// appFlags are the common fields of apps.
type appFlags struct {
	image, host            string
	port                   int32
	replicas               int32
	env                    map[string]string
	chart, charts, version string
	git, branch, folder    string
	manifests              string
	secret, values         string
}

func createApp(c *call.Call) *cobra.Command {
	var f appFlags
	d := &destination{Call: c}
	command := &cobra.Command{
		Use:   "app [TENANT/]PROJECT/NAME",
		Short: "Write the file of an app: of an image, a chart, a Git folder or manifests",
		Long: `Write the file of an app. Exactly one of --image, --chart, --git and --manifests says what it delivers. Fields without a flag are written by hand:
docs/spec/app.md lists them, and kubeop schema helps the editor. In the platform repository, TENANT is a tenant that is declared there with its
projects, or platform.`,
		Example: `  # An image
  kubeop create app shop/web --image registry.example.com/web:1.0.0 --port 8080 --host web.example.com --env MESSAGE=hello

  # A chart
  kubeop create app shop/db --chart postgresql --chart-repository https://charts.example.com --version 16.1.0 --values values.yaml

  # A folder of another Git repository, and one beside app.yaml
  kubeop create app shop/docs --git https://git.example.com/docs.git --branch main --folder deploy
  kubeop create app shop/tools --manifests manifests`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			spec, err := f.spec()
			if err != nil {
				return err
			}
			return writeObject(cmd.Context(), d, target.App, args[0], spec)
		},
	}
	d.addFlags(command)
	flags := command.Flags()
	flags.StringVar(&f.image, "image", "", "image to run")
	flags.Int32Var(&f.port, "port", 0, "port of the container, and of the Service")
	flags.StringVar(&f.host, "host", "", "host name at which the app is served")
	flags.Int32Var(&f.replicas, "replicas", 0, "number of pods (default: 1)")
	flags.StringToStringVar(&f.env, "env", nil, "NAME=VALUE of an environment variable; can be given again")
	flags.StringVar(&f.chart, "chart", "", "name of a chart in --chart-repository, or a folder beside app.yaml")
	flags.StringVar(&f.charts, "chart-repository", "", "URL of the chart's repository: https:// or oci://")
	flags.StringVar(&f.version, "version", "", "version of the chart")
	flags.StringVar(&f.values, "values", "", "file with values, beside app.yaml")
	flags.StringVar(&f.git, "git", "", "URL of a Git repository")
	flags.StringVar(&f.branch, "branch", "", "branch of it")
	flags.StringVar(&f.folder, "folder", "", "folder in it (default: its root)")
	flags.StringVar(&f.manifests, "manifests", "", "folder with manifests, beside app.yaml")
	flags.StringVar(&f.secret, "secret", "", "Secret in the project's namespace with the credentials of the chart repository or the Git repository")
	command.MarkFlagsMutuallyExclusive("image", "chart", "git", "manifests")
	command.MarkFlagsOneRequired("image", "chart", "git", "manifests")
	return command
}

// spec returns the spec of an app.
func (f *appFlags) spec() (fields, error) {
	var spec fields
	switch {
	case f.image != "":
		spec = fields{"type": string(v1alpha1.AppImage), "image": f.ofImage()}
		set(spec, "host", f.host)
	case f.chart != "":
		spec = fields{"type": string(v1alpha1.AppHelm), "helm": f.ofChart()}
	case f.git != "":
		source := fields{"url": f.git}
		set(source, "path", f.folder)
		set(source, "ref", keyed("branch", f.branch))
		set(source, "secretRef", named(f.secret))
		spec = fields{"type": string(v1alpha1.AppGit), "git": source}
	default:
		spec = fields{"type": string(v1alpha1.AppRaw), "raw": fields{"path": f.manifests}}
	}
	return spec, f.fits()
}

// fits checks that flags which belong to one kind of app are not given for another.
func (f *appFlags) fits() error {
	for _, flag := range []struct {
		name        string
		given, fits bool
		of          string
	}{
		{"port", f.port != 0, f.image != "", "image"}, {"host", f.host != "", f.image != "", "image"}, {"replicas", f.replicas != 0, f.image != "", "image"},
		{"env", f.env != nil, f.image != "", "image"}, {"chart-repository", f.charts != "", f.chart != "", "chart"}, {"version", f.version != "", f.chart != "", "chart"},
		{"values", f.values != "", f.chart != "", "chart"}, {"branch", f.branch != "", f.git != "", "git"}, {"folder", f.folder != "", f.git != "", "git"},
		{"secret", f.secret != "", f.git != "" || f.charts != "", "git or --chart-repository"},
	} {
		if flag.given && !flag.fits {
			return fmt.Errorf("--%s goes with --%s", flag.name, flag.of)
		}
	}
	return nil
}

func (f *appFlags) ofImage() fields {
	image := fields{"reference": f.image}
	if f.port != 0 {
		image["ports"] = []any{fields{"name": "http", "port": f.port}}
	}
	if f.replicas != 0 {
		image["replicas"] = f.replicas
	}
	env := []any{}
	for _, name := range slices.Sorted(maps.Keys(f.env)) {
		env = append(env, fields{"name": name, "value": f.env[name]})
	}
	if len(env) > 0 {
		image["env"] = env
	}
	return image
}

func (f *appFlags) ofChart() fields {
	chart := fields{}
	if f.charts == "" {
		chart["path"] = f.chart
	} else {
		chart["repository"], chart["chart"] = f.charts, f.chart
	}
	set(chart, "version", f.version)
	set(chart, "secretRef", named(f.secret))
	if f.values != "" {
		chart["valuesFiles"] = []any{f.values}
	}
	return chart
}
