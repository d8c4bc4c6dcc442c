package offline

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/gitops/schema"
)

// Schema returns the command schema.
func Schema(c *call.Call) *cobra.Command {
	var install bool
	command := &cobra.Command{
		Use:   "schema [NAME]",
		Short: "Print the JSON schemas of the files, or install them for an editor",
		Long: `Print the JSON schema of the files app.yaml, project.yaml, tenant.yaml or kubeop.yaml, or of those in policies/, registries/ and prices/: its
name is app, project, tenant, kubeop, policy, registry, pricelist or cluster. Editors with yaml-language-server complete and check files by it.

With --install, write all schemas to .kubeop/schema of the repository, and name them in .vscode/settings.json if there is no such file. Commit both.`,
		Example: `  # For a tool that checks files by a schema
  kubeop schema app > app.json

  # For the editor, in a repository
  kubeop schema --install`,
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: names(),
		RunE: func(_ *cobra.Command, args []string) error {
			if install {
				return installSchemas(c)
			}
			if len(args) == 0 {
				return fmt.Errorf("which schema? Name one of %v, or give --install", names())
			}
			text, err := schema.Of(args[0])
			if err != nil {
				return err
			}
			_, err = c.Out.Write(text)
			return err
		},
	}
	command.Flags().BoolVar(&install, "install", false, "write the schemas into the repository")
	return command
}

func names() []string {
	all := []string{}
	for name := range schema.Names() {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// schemaFolder is where the schemas are in a repository. kubeop does not read folders whose names begin with a dot.
const schemaFolder = ".kubeop/schema"

func installSchemas(c *call.Call) error {
	root, err := topFolder(".")
	if err != nil {
		return err
	}
	folder := filepath.Join(root, filepath.FromSlash(schemaFolder))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	matches, platform := map[string]string{}, (&validate{Call: c}).ofPlatform(root)
	for name, file := range schema.Names() {
		text, err := schema.Of(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, name+".json"), text, 0o644); err != nil {
			return err
		}
		if name != "policy" && name != "registry" && name != "pricelist" && name != "cluster" || platform { // Elsewhere, folders of these names have something else.
			matches[schemaFolder+"/"+name+".json"] = "**/" + file
		}
	}
	settings, err := json.MarshalIndent(map[string]any{"yaml.schemas": matches}, "", "  ")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(c.Out, "Wrote the schemas to %s.\n", folder); err != nil {
		return err
	}
	return nameSchemas(c, filepath.Join(root, ".vscode", "settings.json"), append(settings, '\n'))
}

// nameSchemas writes the settings of the editor, unless there are some.
func nameSchemas(c *call.Call, file string, settings []byte) error {
	err := writeNew(file, settings)
	switch {
	case errors.Is(err, fs.ErrExist):
		_, err = fmt.Fprintf(c.Out, "%s exists and is left as it is. Add to it:\n%s", file, settings)
	case err == nil:
		_, err = fmt.Fprintf(c.Out, "Wrote %s.\n", file)
	}
	return err
}

// writeNew writes a file and its folder. It is an error that wraps fs.ErrExist if the file exists.
func writeNew(file string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
