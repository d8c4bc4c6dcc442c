package offline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/exit"
	"github.com/kubeop/kubeop/cmd/kubeop/git"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
	"github.com/kubeop/kubeop/delivery/fetch/draft"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/commit"
	"github.com/kubeop/kubeop/gitops/files"
	"github.com/kubeop/kubeop/gitops/host"
	"github.com/kubeop/kubeop/gitops/layout"
	"github.com/kubeop/kubeop/gitops/slug"
	"github.com/kubeop/kubeop/gitops/tree"
)

// destination is where a command writes: the files of the clone, or a commit on the branch of the server.
type destination struct {
	*call.Call
	commits, pullRequest bool
	message              string
	host                 git.Host
}

// commitTimeout bounds how long a commit is tried while others push.
const commitTimeout = 5 * time.Minute

// addFlags adds the flags of the destination.
func (d *destination) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.BoolVar(&d.commits, "commit", false, "commit and push to the upstream of the current branch; the files of the clone stay as they are")
	flags.BoolVar(&d.pullRequest, "pull-request", false, "commit to a new branch, and open a pull request")
	flags.StringVarP(&d.message, "message", "m", "", "first line of the commit's message (default: what the command does)")
	d.host.AddFlags(flags)
}

// find returns the root of the repository in the current folder, and the file in it that declares an object.
func (d *destination) find(kind target.Kind, name string) (root, place string, err error) {
	if root, err = topFolder("."); err != nil {
		return "", "", err
	}
	v := &validate{Call: d.Call}
	place, err = placeOf(kind, name, v.ofPlatform(root))
	return root, place, err
}

// change is what a command writes.
type change struct {
	// root is the folder with kubeop.yaml, and place the file that is checked afterwards, relative to it.
	root, place string
	// title is the first line of a commit's message.
	title string
	edits []commit.Edit
}

// write writes the change, and checks the files with it.
func (d *destination) write(ctx context.Context, c change) error {
	if d.commits || d.pullRequest {
		return d.push(ctx, c)
	}
	files := folder.FromFS(os.DirFS(c.root)).Folder(".")
	changes, err := commit.Changes(files, files, c.edits)
	if err != nil {
		return err
	}
	for _, change := range changes {
		done, err := writeChange(c.root, change)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(d.Out, "%s %s.\n", done, change.Path); err != nil {
			return err
		}
	}
	if len(changes) == 0 {
		if _, err := fmt.Fprintf(d.Out, "%s has this already.\n", c.place); err != nil {
			return err
		}
	}
	written, err := openWorktree(ctx, c.root)
	if err != nil {
		return err
	}
	return d.judge(ctx, c, written)
}

// writeChange writes one change to the files below a folder, and says what it did.
func writeChange(root string, c draft.Change) (done string, err error) {
	file := filepath.Join(root, filepath.FromSlash(c.Path))
	info, err := os.Lstat(file)
	switch {
	case c.Tree != "":
		return "", fmt.Errorf("%s is restored by a commit only", c.Path)
	case c.Content == nil:
		return "Deleted", os.RemoveAll(file)
	case errors.Is(err, fs.ErrNotExist):
		return "Wrote", writeNew(file, c.Content)
	case err != nil:
		return "", err
	}
	return "Changed", os.WriteFile(file, c.Content, info.Mode().Perm())
}

// push commits the change to the server.
func (d *destination) push(ctx context.Context, c change) error {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	branch, prefix, err := git.Upstream(ctx, c.root)
	if err != nil {
		return err
	}
	if _, err := branch.Fetch(ctx); err != nil {
		return err
	}
	r := commit.Request{ID: uuid.NewString(), Title: c.title, Folder: prefix, Edits: c.edits, Branch: branch.Branch}
	r.Check = func(_, files *folder.Folder) error { return d.check(ctx, c, files) }
	if r.Base, err = branch.Seen(ctx); err != nil {
		return err
	}
	if d.message != "" {
		r.Title, r.Body = d.message, c.title+"."
	}
	if d.pullRequest {
		r.Branch, r.New = "kubeop/"+slug.Of(c.title, 40)+"-"+r.ID[:8], true
	}
	writer := &commit.Writer{Clock: d.Clock}
	done, err := writer.Write(ctx, branch, r)
	switch {
	case err != nil:
		return err
	case done.Unchanged:
		_, err := fmt.Fprintf(d.Out, "Nothing to commit: %s has this already, at %.8s.\n", branch.Name(), done.Hash)
		return err
	case d.pullRequest:
		return d.open(ctx, branch, r)
	}
	_, err = fmt.Fprintf(d.Out, "Committed %.8s to %s: %s. `git pull` brings it into this clone.\n", done.Hash, branch.Name(), r.Title)
	return err
}

// check refuses a commit with problems in what it changes.
func (d *destination) check(ctx context.Context, c change, root *folder.Folder) error {
	if err := d.judge(ctx, c, files.Of(root)); err != nil {
		return fmt.Errorf("not committed: %w", err)
	}
	return nil
}

// judge lists the problems of files with the change. If there are any, the exit code is Differences, so that a script does not commit them.
func (d *destination) judge(ctx context.Context, c change, files tree.Files) error {
	v := &validate{Call: d.Call}
	problems, err := v.problemsOf(ctx, c.root, files, c.place)
	if err == nil {
		err = v.lines(problems)
	}
	if err == nil && len(problems) > 0 {
		err = &exit.Error{Code: exit.Differences, Err: fmt.Errorf("%s in %s", few.Count(len(problems), "problem"), path.Dir(c.place))}
	}
	return err
}

// open opens the pull request of a pushed branch.
func (d *destination) open(ctx context.Context, branch *git.Branch, r commit.Request) error {
	if _, err := fmt.Fprintf(d.Out, "Pushed the branch %s to %s.\n", r.Branch, branch.Remote); err != nil {
		return err
	}
	number, link, err := d.openAtHost(ctx, branch, host.PullRequest{Title: r.Title, Body: r.Body, From: r.Branch, Into: branch.Branch})
	if err != nil {
		return fmt.Errorf("open the pull request from %s by hand: %w", r.Branch, err)
	}
	_, err = fmt.Fprintf(d.Out, "Opened pull request %d: %s\n", number, link)
	return err
}

func (d *destination) openAtHost(ctx context.Context, branch *git.Branch, p host.PullRequest) (number int, link string, err error) {
	at, err := branch.URL(ctx)
	if err != nil {
		return 0, "", err
	}
	repository, err := d.host.Open(ctx, at, d.Clock.Now)
	if err != nil {
		return 0, "", err
	}
	defer repository.Close()
	return repository.OpenPullRequest(ctx, p)
}

// problemsOf returns what is wrong with a file of a repository, and with what is beside it. Beside a policy are other policies, so it is what is wrong
// with those that name one.
func (v *validate) problemsOf(ctx context.Context, root string, files tree.Files, place string) ([]tree.Problem, error) {
	var err error
	if v.reader, err = tree.NewReader(); err != nil {
		return nil, err
	}
	v.reader.Platform = true
	found, err := v.checkFiles(ctx, root, files)
	if err != nil {
		return nil, err
	}
	var problems []tree.Problem
	found.All(func(p tree.Problem) bool {
		beside := strings.HasPrefix(p.File, path.Dir(place)+"/")
		switch path.Dir(place) {
		case layout.PoliciesFolder:
			beside = p.Code == code.UnknownPolicy || p.Code == code.SecondRegistry || p.Code == code.ContradictingPolicies
		case layout.RegistriesFolder:
			beside = p.Code == code.SecondRegistry
		}
		if p.File == place || beside {
			problems = append(problems, p)
		}
		return true
	})
	return problems, nil
}
