package offline

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/gitops/commit"
	"github.com/kubeop/kubeop/gitops/edit"
)

// Set returns the command set.
func Set(c *call.Call) *cobra.Command {
	var unset []string
	d := &destination{Call: c}
	command := &cobra.Command{
		Use:   "set [KIND] NAME FIELD=VALUE...",
		Short: "Change fields in the file of an app, project, tenant, policy or registry",
		Long: `Change fields in the file that declares an app, project, tenant, policy or registry, in the repository that the current folder is in, and check it.
Everything else in the file stays as it is: comments, order, quotes. If it has problems then, they are listed, and the exit code is 2.

With --commit or --pull-request, the change is not made in the clone, but on the newest commit of the branch at the server, and pushed. It is made
again on what others push meanwhile. Only a field that another commit changed, too, is an error.

FIELD is a path such as spec.image.replicas, spec.image.ports[0].port or spec.quota[requests.cpu]. An index that equals the length of a list
appends to it. VALUE is YAML: 2 is a number, "2" with quotes a text, {name: http, port: 80} an object.

KIND is app (the default), project, tenant, policy or registry. NAME is as in kubeop create.`,
		Example: `  # Another image and more pods
  kubeop set shop/web spec.image.reference=registry.example.com/web:1.1.0 spec.image.replicas=3

  # A field less, and a quota
  kubeop set shop/web --unset spec.suspend
  kubeop set project shop 'spec.quota[requests.cpu]="4"'

  # At once, as a commit
  kubeop set shop/web spec.image.replicas=5 --commit`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, changes, err := changesOf(args, unset)
			if err != nil {
				return err
			}
			return setFields(cmd.Context(), d, kind, name, changes)
		},
	}
	d.addFlags(command)
	command.Flags().StringArrayVar(&unset, "unset", nil, "FIELD to delete; can be given again")
	return command
}

// changesOf reads the arguments of the command.
func changesOf(args, unset []string) (kind target.Kind, name string, changes []commit.Field, err error) {
	kind = target.App
	for _, other := range []target.Kind{target.App, target.Project, target.Tenant, target.Policy, target.Registry} {
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
		c := commit.Field{}
		if c.Path, err = edit.ParsePath(path); err != nil {
			return kind, "", nil, err
		}
		if err := yaml.Unmarshal([]byte(text), &c.Value); err != nil {
			return kind, "", nil, fmt.Errorf("the value of %s is not YAML: %w", path, err)
		}
		changes = append(changes, c)
	}
	for _, path := range unset {
		c := commit.Field{Delete: true}
		if c.Path, err = edit.ParsePath(path); err != nil {
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
func setFields(ctx context.Context, d *destination, kind target.Kind, name string, changes []commit.Field) error {
	root, place, err := d.find(kind, name)
	if err != nil {
		return err
	}
	what := changes[0].Path.String()
	if len(changes) > 1 {
		what = few.Count(len(changes), "field")
	}
	err = d.write(ctx, change{
		root: root, place: place, title: "Set " + what + " of " + kind.Singular() + " " + name, edits: []commit.Edit{commit.Set{File: place, Fields: changes}},
	})
	if errors.Is(err, commit.ErrMissing) {
		return fmt.Errorf("%w: kubeop create %s writes it", err, kind.Singular())
	}
	return err
}
