package offline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
	"github.com/kubeop/kubeop/gitops/edit"
)

// Set returns the command set.
func Set(c *call.Call) *cobra.Command {
	var unset []string
	command := &cobra.Command{
		Use:   "set [KIND] NAME FIELD=VALUE...",
		Short: "Change fields in the file of an app, project or tenant",
		Long: `Change fields in the file that declares an app, a project or a tenant, in the repository that the current folder is in, and check it.
Everything else in the file stays as it is: comments, order, quotes. Nothing is committed.

FIELD is a path such as spec.image.replicas, spec.image.ports[0].port or spec.quota[requests.cpu]. An index that equals the length of a list
appends to it. VALUE is YAML: 2 is a number, "2" with quotes a text, {name: http, port: 80} an object.

KIND is app (the default), project or tenant. NAME is as in kubeop create.`,
		Example: `  # Another image and more pods
  kubeop set shop/web spec.image.reference=registry.example.com/web:1.1.0 spec.image.replicas=3

  # A field less, and a quota
  kubeop set shop/web --unset spec.suspend
  kubeop set project shop 'spec.quota[requests.cpu]="4"'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, changes, err := changesOf(args, unset)
			if err != nil {
				return err
			}
			return setFields(cmd.Context(), c, kind, name, changes)
		},
	}
	command.Flags().StringArrayVar(&unset, "unset", nil, "FIELD to delete; can be given again")
	return command
}

// fieldChange sets a field, or deletes it.
type fieldChange struct {
	field  edit.Path
	value  any
	delete bool
}

// changesOf reads the arguments of the command.
func changesOf(args, unset []string) (kind target.Kind, name string, changes []fieldChange, err error) {
	kind = target.App
	for _, other := range []target.Kind{target.App, target.Project, target.Tenant} {
		if args[0] == other.Singular() {
			kind, args = other, args[1:]
			break
		}
	}
	if len(args) == 0 || strings.Contains(args[0], "=") {
		return kind, "", nil, fmt.Errorf("name the %s to change", kind.Singular())
	}
	for _, arg := range args[1:] {
		path, text, two := strings.Cut(arg, "=")
		if !two {
			return kind, "", nil, fmt.Errorf("%q: write FIELD=VALUE, such as spec.suspend=true", arg)
		}
		c := fieldChange{}
		if c.field, err = edit.ParsePath(path); err != nil {
			return kind, "", nil, err
		}
		if err := yaml.Unmarshal([]byte(text), &c.value); err != nil {
			return kind, "", nil, fmt.Errorf("the value of %s is not YAML: %w", path, err)
		}
		changes = append(changes, c)
	}
	for _, path := range unset {
		c := fieldChange{delete: true}
		if c.field, err = edit.ParsePath(path); err != nil {
			return kind, "", nil, err
		}
		changes = append(changes, c)
	}
	if len(changes) == 0 {
		return kind, "", nil, errors.New("nothing to change: give FIELD=VALUE or --unset FIELD")
	}
	return kind, args[0], changes, nil
}

// setFields changes the file of an object, all fields or none, and checks it.
func setFields(ctx context.Context, c *call.Call, kind target.Kind, name string, changes []fieldChange) error {
	root, err := topFolder(".")
	if err != nil {
		return err
	}
	v := &validate{Call: c}
	place, err := placeOf(kind, name, v.scope(root).Tenant == "")
	if err != nil {
		return err
	}
	file := filepath.Join(root, filepath.FromSlash(place))
	info, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist: kubeop create %s writes it", place, kind.Singular())
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file, so kubeop does not read it", place)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, change := range changes {
		if change.delete {
			text, err = edit.Delete(text, change.field)
		} else {
			text, err = edit.Set(text, change.field, change.value)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", place, err)
		}
	}
	if err := os.WriteFile(file, text, info.Mode().Perm()); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(c.Out, "Changed %s.\n", place); err != nil {
		return err
	}
	return v.checkNew(ctx, root, place)
}
