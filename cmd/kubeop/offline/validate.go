package offline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/exit"
	"github.com/kubeop/kubeop/cmd/kubeop/output"
	"github.com/kubeop/kubeop/controllers/plan"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/layout"
	"github.com/kubeop/kubeop/gitops/tree"
)

// validate checks the files of a repository.
type validate struct {
	*call.Call
	format output.Format
	watch  bool
	// renders: the apps are rendered, too, by renderer. tenantFile has the settings of the tenant, and policies is a folder in the platform
	// repository.
	renders              bool
	renderer             plan.NewRenderer
	tenantFile, policies string
	reader               *tree.Reader
}

// checked is what a check found.
type checked struct {
	*tree.Tree
	// problems are those of the files, then those of rendering. rendered is the number of apps that were rendered without one.
	problems []tree.Problem
	rendered int
}

// Formats of reports, beside those of all commands.
const (
	sarifFormat output.Format = "sarif"
	junitFormat output.Format = "junit"
)

// Validate returns the command validate. renderer renders Apps.
func Validate(c *call.Call, renderer plan.NewRenderer) *cobra.Command {
	v := &validate{Call: c, renderer: renderer}
	command := &cobra.Command{
		Use:   "validate [DIR]",
		Short: "Check the files of a repository as the operator does, without a cluster",
		Long: `Check the files of a repository of the platform or of a tenant as the operator does: paths, YAML, fields and their values. Apps that are made
from nothing but their folder are rendered, too, with the chart, the kustomization or the manifests there, and checked against what apps may have.
All problems are listed with file, line, column and a code, which kubeop explain explains, and the exit code is 2. Files that Git ignores are left
out. It needs no cluster and no network, so apps with a source elsewhere, or that read ConfigMaps or Secrets, are not rendered.

In a tenant's repository, what an app may have depends on the tenant's settings and on the policies it is under. Give them with --policies, which
is a checkout of the platform repository, or a folder in it. If that has no tenants, give the settings with --tenant-file. Without both, only what
does not render is reported. Signatures of images are not verified, because they are in registries.

DIR is the repository or a folder of it. Default: the current folder.`,
		Example: `  # Before a commit
  kubeop validate

  # In CI, for a tool that shows reports
  kubeop validate --tenant acme -o sarif > report.sarif

  # Also what the tenant's apps may have, such as by the Pod Security level
  kubeop validate --tenant-file ../platform/tenants/acme/tenant.yaml

  # Also what the policies refuse that the tenant is under
  kubeop validate --tenant acme --policies ../platform/policies`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return v.run(cmd.Context(), append(args, ".")[0])
		},
	}
	v.format.AddFlag(command, output.Table, output.JSON, output.YAML, sarifFormat, junitFormat)
	command.Flags().BoolVar(&v.renders, "render", true, "also render the apps that are made from nothing but their folder")
	command.Flags().StringVar(&v.tenantFile, "tenant-file", "", "tenant.yaml of the tenant whose repository is checked")
	command.Flags().StringVar(&v.policies, "policies", "", "folder in a checkout of the platform repository, whose policies hold for the tenant whose repository is checked")
	command.Flags().BoolVarP(&v.watch, "watch", "w", false, "check again after each change, until interrupted")
	return command
}

// lookAgain is the time between two looks of --watch.
const lookAgain = time.Second

func (v *validate) run(ctx context.Context, folder string) error {
	info, err := os.Stat(folder)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		folder = filepath.Dir(folder)
	}
	root, err := topFolder(folder)
	if err != nil {
		return err
	}
	if v.reader, err = tree.NewReader(); err != nil {
		return err
	}
	// A chart setting decides whether the operator delivers apps of the platform; a repository that has some is checked as one that may.
	v.reader.Platform = true
	if !v.watch {
		found, err := v.check(ctx, root)
		if err != nil {
			return err
		}
		return v.report(root, found)
	}
	return v.follow(ctx, root)
}

// follow checks again after each change. A look that fails, such as when a file is deleted meanwhile, is repeated.
func (v *validate) follow(ctx context.Context, root string) error {
	last := ""
	for {
		now, err := v.versions(ctx, root)
		if err == nil && now != last {
			if err = v.checkAndReport(ctx, root); err == nil {
				last = now
			}
		}
		if err != nil && ctx.Err() == nil {
			if _, err := fmt.Fprintln(v.Err, err); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-v.Clock.After(lookAgain):
		}
	}
}

// checkAndReport prints the problems; that there are some is no error.
func (v *validate) checkAndReport(ctx context.Context, root string) error {
	found, err := v.check(ctx, root)
	if err != nil {
		return err
	}
	err = v.report(root, found)
	var differences *exit.Error
	if errors.As(err, &differences) {
		_, err = fmt.Fprintln(v.Err, differences)
	}
	return err
}

// check reads the repository.
func (v *validate) check(ctx context.Context, root string) (*checked, error) {
	files, err := openWorktree(ctx, root)
	if err != nil {
		return nil, err
	}
	return v.checkFiles(ctx, root, files)
}

// checkFiles reads the files of a repository, whose name messages have from the folder root.
func (v *validate) checkFiles(ctx context.Context, root string, files tree.Files) (*checked, error) {
	scope := v.scope(filepath.Base(root), files)
	known, err := v.termsOf(ctx, scope)
	if err != nil {
		return nil, err
	}
	reader := *v.reader
	reader.Placement = known.placement
	t := reader.Read(files, scope, nil)
	if file, err := t.Unread(); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	found := &checked{Tree: t}
	t.All(func(p tree.Problem) bool {
		found.problems = append(found.problems, p)
		return true
	})
	over, err := overBudgets(files, t, known)
	if err != nil {
		return nil, err
	}
	found.problems = append(found.problems, over...)
	if !v.renders {
		return found, nil
	}
	more, rendered, err := v.renderAll(ctx, files, t, known)
	if err != nil {
		return nil, fmt.Errorf("rendering the apps of %s: %w", root, err)
	}
	found.problems, found.rendered = append(found.problems, more...), rendered
	return found, nil
}

// scope says what the repository declares. One with a folder tenants/ or platform/, or with policies/, registries/ or prices/ and no
// projects/, is the platform's. base is the name of the repository's folder.
func (v *validate) scope(base string, files fs.FS) tree.Scope {
	platform := hasFolder(files, layout.TenantsFolder) || hasFolder(files, layout.PlatformFolder) ||
		(hasFolder(files, layout.PoliciesFolder) || hasFolder(files, layout.RegistriesFolder) || hasFolder(files, layout.PricesFolder)) && !hasFolder(files, layout.ProjectsFolder)
	// With --tenant, it is that of the tenant, unless it declares the tenant.
	if platform && (v.Tenant == "" || v.Tenant == v1alpha1.PlatformTenant || hasFolder(files, path.Join(layout.TenantsFolder, v.Tenant))) {
		return tree.Scope{Repository: v1alpha1.PlatformRepository}
	}
	// A tenant is often named as its repository is. Another name changes only how messages call the objects.
	name := v.Tenant
	if name == "" {
		name = "tenant"
		if tenantName.MatchString(base) {
			name = base
		}
	}
	return tree.Scope{Repository: name, Tenant: name}
}

// ofPlatform reports whether the repository in a folder is the platform's.
func (v *validate) ofPlatform(root string) bool {
	return v.scope(filepath.Base(root), os.DirFS(root)).Tenant == ""
}

// tenantName are the names that a Tenant can have.
var tenantName = regexp.MustCompile("^[a-z][a-z0-9]{0,19}$")

// report prints the problems. If there are any, the exit code is Differences.
func (v *validate) report(root string, found *checked) error {
	problems, counts := found.problems, found.Counts()
	var err error
	switch v.format {
	case sarifFormat:
		err = writeSARIF(v.Data, problems)
	case junitFormat:
		err = writeJUnit(v.Data, found.Tree, problems)
	case output.JSON, output.YAML:
		err = v.format.Write(v.Data, plain(problems))
	default:
		err = v.lines(problems)
	}
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		return &exit.Error{Code: exit.Differences, Err: fmt.Errorf("%s in %s; valid are %s", few.Count(len(problems), "problem"), root, countsText(counts))}
	}
	rendered := ""
	if v.renders && counts.Apps > 0 {
		rendered = fmt.Sprintf(", %d of them rendered", found.rendered)
	}
	_, err = fmt.Fprintf(v.Err, "No problems in %s: %s%s.\n", root, countsText(counts), rendered)
	return err
}

func (v *validate) lines(problems []tree.Problem) error {
	for _, p := range problems {
		if _, err := fmt.Fprintf(v.Out, "%s: %s [%s]\n", v.Paint.Bold(p.Place()), p.Why, p.Code); err != nil {
			return err
		}
	}
	return nil
}

func countsText(c tree.Counts) string {
	text := few.Count(c.Projects, "project") + ", " + few.Count(c.Apps, "app")
	if c.Tenants > 0 {
		text = few.Count(c.Tenants, "tenant") + ", " + text
	}
	for _, of := range []struct {
		n         int
		one, many string
	}{{c.Clusters, "cluster", "clusters"}, {c.PriceLists, "price list", "price lists"}, {c.Registries, "registry", "registries"}, {c.Policies, "policy", "policies"}} {
		switch {
		case of.n == 1:
			text = "1 " + of.one + ", " + text
		case of.n > 1:
			text = fmt.Sprintf("%d %s, %s", of.n, of.many, text)
		}
	}
	return text
}

// finding is a problem in the formats for programs.
type finding struct {
	File   string    `json:"file"`
	Line   int       `json:"line,omitempty"`
	Column int       `json:"column,omitempty"`
	Object string    `json:"object,omitempty"`
	Code   code.Code `json:"code"`
	Why    string    `json:"why"`
}

func plain(problems []tree.Problem) []finding {
	all := make([]finding, len(problems))
	for i, p := range problems {
		all[i] = finding{File: p.File, Line: p.Line, Column: p.Column, Object: p.Of.Path(), Code: p.Code, Why: p.Why}
	}
	return all
}

// versions names the state of all files that are read by their sizes and times.
func (v *validate) versions(ctx context.Context, root string) (string, error) {
	var all []string
	platform, err := topFolder(cmp.Or(v.policies, root))
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(v.tenantFile); err == nil { // Without it, the check says what is wrong.
		all = append(all, info.ModTime().String())
	}
	look := func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if info, err := e.Info(); err == nil { // Otherwise it was deleted meanwhile.
			all = append(all, fmt.Sprintf("%s %d %s", file, info.Size(), info.ModTime()))
		}
		return nil
	}
	for _, place := range slices.Compact([]string{root, platform}) {
		files, err := openWorktree(ctx, place)
		if err == nil {
			err = fs.WalkDir(files, ".", look)
		}
		if err != nil {
			return "", err
		}
	}
	return fmt.Sprint(all), nil
}

// Problems returns what validate finds in a repository.
func Problems(ctx context.Context, c *call.Call, root string) ([]tree.Problem, error) {
	reader, err := tree.NewReader()
	if err != nil {
		return nil, err
	}
	reader.Platform = true
	found, err := (&validate{Call: c, reader: reader}).check(ctx, root)
	if err != nil {
		return nil, err
	}
	return found.problems, nil
}
