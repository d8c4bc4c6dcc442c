package plan

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kubeop/kubeop/api/client"
	"github.com/kubeop/kubeop/cmd/kubeop/exit"
	"github.com/kubeop/kubeop/cmd/kubeop/output"
	"github.com/kubeop/kubeop/cmd/kubeop/server"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
)

// through shows how the files of an app differ between the commits at, as a manager answers it.
func (p *command) through(ctx context.Context, manager *server.Manager, of target.Object, at string) error {
	from, to, _ := strings.Cut(at, "..")
	switch {
	case from == "." || from == "":
		return errors.New("a manager does not have the files of this folder: name a commit, or two, with --revision, or leave out --server")
	case p.format != output.Table && !p.format.ForPrograms():
		return errors.New("-o: a manager's differences are shown as table, json or yaml")
	}
	answer, err := manager.GetAppDiff(ctx, of.Ref.Tenant, of.Ref.Project, of.Ref.App, client.GetAppDiffParams{From: from, To: to})
	if err != nil {
		return fmt.Errorf("comparing the files of the %s: %w", of, manager.Explained(err))
	}
	found := &answer.Body
	if p.format.ForPrograms() {
		err = p.format.Write(p.Data, found)
	} else {
		err = p.printFiles(found)
	}
	if err == nil && len(found.Files) > 0 {
		err = &exit.Error{Code: exit.Differences, Err: exit.ErrSaid}
	}
	return err
}

func (p *command) printFiles(found *client.Comparison) error {
	var text strings.Builder
	for _, f := range found.Files {
		text.WriteString(f.Patch)
		if f.Omitted != "" {
			fmt.Fprintf(&text, "%s is %s, and not shown: %s\n", f.Path, f.Change, f.Omitted)
		}
	}
	if found.More {
		text.WriteString("More files differ.\n")
	}
	if len(found.Files) == 0 {
		text.WriteString("No differences.\n")
	}
	_, err := fmt.Fprint(p.Out, text.String())
	return err
}
