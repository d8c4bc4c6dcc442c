package offline

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/gitops/layout"
)

// Init returns the command init.
func Init(c *call.Call) *cobra.Command {
	return &cobra.Command{
		Use:   "init platform|tenant [DIR]",
		Short: "Begin a repository of the platform or of a tenant",
		Long: `Begin a repository: of the platform, which declares the tenants, or of a tenant, which declares what runs. It has the version of the layout, a
README that explains the folders, and a workflow that checks each pull request with kubeop validate. Files that exist are left as they are.

DIR is the folder of the repository. Default: the current folder.`,
		Example: `  # The repository of a team
  kubeop init tenant acme && cd acme && git init -b main

  # The repository of the administrators
  kubeop init platform platform`,
		Args:      cobra.RangeArgs(1, 2),
		ValidArgs: []string{v1alpha1.PlatformTenant, "tenant"},
		RunE: func(_ *cobra.Command, args []string) error {
			return begin(c, args[0], append(args[1:], ".")[0])
		},
	}
}

const workflow = `# Checks the files as kubeop does, before they are merged.
name: kubeop
on:
  pull_request:
  push:
    branches: [main]
jobs:
  validate:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      # Put the program kubeop on the PATH of this job first, for example from your own registry of tools.
      - run: kubeop validate
`

const tenantReadme = `# What runs for this team

kubeop makes the cluster equal to the branch main of this repository. The path says what a file declares:

    kubeop.yaml                                    the version of this layout
    projects/<project>/project.yaml                a project: a namespace with its quota
    projects/<project>/apps/<app>/app.yaml         an app: an image, a Git folder, a Helm chart or manifests

    kubeop create project shop                     begins a project
    kubeop create app shop/web --image registry.example.com/web:1.0.0 --port 8080
    kubeop validate                                checks all files before a push
    kubeop describe <tenant>/shop/web              shows what became of it
`

const platformReadme = `# The platform

kubeop makes the cluster equal to the branch main of this repository. The path says what a file declares:

    kubeop.yaml                                    the version of this layout
    tenants/<tenant>/tenant.yaml                   a team: its people, its repository and its limits
    policies/<policy>.yaml                         rules for tenants: images, Services, host names and classes
    registries/<registry>.yaml                     credentials of registries, and who may use them
    prices/<pricelist>.yaml                        what usage costs
    clusters/<cluster>.yaml                        clusters that can have projects, if there are several
    platform/<project>/project.yaml                a part of the platform itself, such as an ingress controller
    platform/<project>/apps/<app>/app.yaml

    kubeop create tenant acme --url https://git.example.com/acme.git --secret acme-git --owner Group:acme-developers:edit
    kubeop validate                                checks all files before a push
    kubeop get tenants                             shows what became of it
`

// skeletons are the files of new repositories.
var skeletons = map[string]map[string]string{
	"tenant":                {layout.VersionFile: "layout: " + layout.Version + "\n", "README.md": tenantReadme, ".github/workflows/kubeop.yml": workflow},
	v1alpha1.PlatformTenant: {layout.VersionFile: "layout: " + layout.Version + "\n", "README.md": platformReadme, ".github/workflows/kubeop.yml": workflow},
}

func begin(c *call.Call, what, folder string) error {
	files, ok := skeletons[what]
	if !ok {
		return fmt.Errorf("%q is no kind of repository: write platform or tenant", what)
	}
	names := []string{}
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		file := filepath.Join(folder, filepath.FromSlash(name))
		done := "Wrote"
		if err := writeNew(file, []byte(files[name])); errors.Is(err, fs.ErrExist) {
			done = "Left as it is:"
		} else if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(c.Out, done, file); err != nil {
			return err
		}
	}
	// The folder of the declarations is not there before the first one, because Git keeps no empty folders.
	if _, err := os.Stat(filepath.Join(folder, ".git")); errors.Is(err, fs.ErrNotExist) {
		_, err := fmt.Fprintf(c.Out, "Next: cd %s && git init -b main\n", folder)
		return err
	}
	return nil
}
