package migrate

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/exit"
	"github.com/kubeop/kubeop/cmd/kubeop/git"
	"github.com/kubeop/kubeop/cmd/kubeop/output"
	"github.com/kubeop/kubeop/gitops/tree"
)

// Check finds the problems of a repository, as kubeop validate does.
type Check func(ctx context.Context, c *call.Call, root string) ([]tree.Problem, error)

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
	command.AddCommand(importFlux(c, check))
	return command
}

// options of an import.
type options struct {
	*call.Call
	check   Check
	format  output.Format
	cluster bool
	out     string
}

func (o *options) addFlags(command *cobra.Command) {
	o.format.AddFlag(command, output.Table, output.JSON, output.YAML)
	command.Flags().BoolVar(&o.cluster, "cluster", false, "read the objects of the cluster, of the namespace of -n or of all")
	command.Flags().StringVar(&o.out, "out", "", "folder of the repository to write (required)")
	// It fails only for a flag that does not exist.
	_ = command.MarkFlagRequired("out")
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

// tenantName are the names that a Tenant can have.
var tenantName = regexp.MustCompile("^[a-z][a-z0-9]{0,19}$")

// run reads with the given function, writes, and reports.
func (o *options) run(ctx context.Context, args []string, read func(context.Context, *migration, []string) error) error {
	m := &migration{tenant: o.Tenant, project: o.Project, report: &Report{Written: []string{}}, made: map[*object][]*app{},
		sources: map[*object]*source{}, moved: map[string]bool{}}
	switch {
	case !tenantName.MatchString(o.Tenant):
		return errors.New("--tenant is required: the name of a tenant, or platform")
	case m.ofPlatform() && o.Project != "":
		return errors.New("--project is not for the platform: its projects have the names of their namespaces")
	case o.cluster && len(args) > 0:
		return errors.New("name a folder or --cluster, not both")
	}
	if err := read(ctx, m, args); err != nil {
		return err
	}
	if len(m.apps) == 0 && len(m.report.LeftOut) == 0 {
		return errors.New("there is nothing to import here")
	}
	files, err := m.files()
	if err != nil {
		return err
	}
	if len(m.apps) > 0 {
		if err := write(o.out, files, m.report); err != nil {
			return err
		}
		if err := o.validate(ctx, m.report); err != nil {
			return err
		}
	}
	return o.tell(m.report)
}

// validate adds what kubeop validate says of the written files to the report.
func (o *options) validate(ctx context.Context, report *Report) error {
	problems, err := o.check(ctx, o.Call, o.out)
	if err != nil {
		return err
	}
	for _, p := range problems {
		report.LeftOut = append(report.LeftOut, Entry{Object: "written file", File: filepath.Join(o.out, p.File), Line: max(p.Line, 1), Do: p.Why})
	}
	return nil
}

// tell prints the report. The exit code is Differences if something was left out.
func (o *options) tell(report *Report) error {
	report.sort()
	var err error
	if o.format.ForPrograms() {
		err = o.format.Write(o.Data, report)
	} else {
		err = report.text(o.Out, o.Paint)
	}
	if err == nil && len(report.LeftOut) > 0 {
		return &exit.Error{Code: exit.Differences, Err: fmt.Errorf("not everything was imported: %d lines say what was left out", len(report.LeftOut))}
	}
	return err
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
		return "kubeop has events and metrics: see docs/production.md"
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
	top, entry, err := place(ctx, append(args, ".")[0])
	if err != nil {
		return err
	}
	m.origin = originOf(ctx, top)
	root, err := os.OpenRoot(top)
	if err != nil {
		return err
	}
	// Files are only read.
	defer func() { _ = root.Close() }()
	return m.readFlux(root.FS(), entry)
}

// place returns the top folder of the clone that a folder is in, and the folder within it.
func place(ctx context.Context, folder string) (top, within string, err error) {
	info, err := os.Stat(folder)
	switch {
	case err != nil:
		return "", "", err
	case !info.IsDir():
		return "", "", fmt.Errorf("%s is not a folder", folder)
	}
	if !git.Within(folder) {
		return folder, ".", nil
	}
	out, err := git.Run(ctx, folder, "rev-parse", "--show-toplevel")
	if err != nil {
		return "", "", err
	}
	top = strings.TrimSuffix(out, "\n")
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return "", "", err
	}
	if real, err = filepath.Abs(real); err != nil {
		return "", "", err
	}
	within, err = filepath.Rel(top, real)
	return top, filepath.ToSlash(within), err
}

// originOf returns where a clone was cloned from, as an address that kubeop fetches from; empty if there is none.
func originOf(ctx context.Context, folder string) origin {
	address, err := git.Run(ctx, folder, "config", "--get", "remote.origin.url")
	if err != nil {
		return origin{}
	}
	branch, err := git.Run(ctx, folder, "symbolic-ref", "--short", "HEAD")
	if err != nil {
		branch = ""
	}
	return origin{url: fetchable(strings.TrimSpace(address)), branch: strings.TrimSpace(branch)}
}

// shortForm matches the form of SSH addresses that is no URL, such as git@github.com:acme/fleet.git.
var shortForm = regexp.MustCompile(`^([a-zA-Z0-9._-]+@[a-zA-Z0-9.-]+):([^/].*)$`)

// fetchable returns an address as a URL without a password; "" if it is none of HTTP or SSH.
func fetchable(address string) string {
	address = shortForm.ReplaceAllString(address, "ssh://$1/$2")
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != "https" && parsed.Scheme != "http" && parsed.Scheme != "ssh" {
		return ""
	}
	if _, secret := parsed.User.Password(); secret || parsed.Scheme != "ssh" {
		parsed.User = nil
	}
	return parsed.String()
}
