package migrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/exit"
	"github.com/kubeop/kubeop/cmd/kubeop/git"
	"github.com/kubeop/kubeop/cmd/kubeop/migrate/address"
	"github.com/kubeop/kubeop/cmd/kubeop/output"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/gitops/tree"
)

// Check finds the problems of a repository, as kubeop validate does.
type Check func(ctx context.Context, c *call.Call, root string) ([]tree.Problem, error)

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
	return o.printReport(m.report)
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

// printReport prints the report. The exit code is Differences if something was left out.
func (o *options) printReport(report *Report) error {
	report.sort()
	var err error
	if o.format.ForPrograms() {
		err = o.format.Write(o.Data, report)
	} else {
		err = report.text(o.Out, o.Paint)
	}
	if err == nil && len(report.LeftOut) > 0 {
		return &exit.Error{Code: exit.Differences, Err: fmt.Errorf("not everything was imported: Left out has %s", few.Count(len(report.LeftOut), "line"))}
	}
	return err
}

// open opens the clone that the folder of the arguments is in, and reads it.
func (o *options) open(ctx context.Context, m *migration, args []string, read func(files fs.FS, entry string) error) error {
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
	return read(root.FS(), entry)
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
	remote, err := git.Run(ctx, folder, "config", "--get", "remote.origin.url")
	if err != nil {
		return origin{}
	}
	branch, _ := git.Run(ctx, folder, "symbolic-ref", "--short", "HEAD") // A detached HEAD has none.
	return origin{url: address.Fetchable(strings.TrimSpace(remote)), branch: strings.TrimSpace(branch)}
}
