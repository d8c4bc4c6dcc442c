package plan

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/kubeop/kubeop/cmd/kubeop/git"
	"github.com/kubeop/kubeop/controllers/plan"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/gitops/layout"
)

// snapshot is a commit, or what a commit of all files of a work tree would be.
type snapshot struct {
	// Commit has a revision and an author that are made up for a work tree.
	plan.Commit
	// root is the root of the clone, and objects the directory with its Git objects.
	root, objects string
}

// open opens the root folder by its hash.
func (s *snapshot) open(tree string) {
	s.Folder = func(hash string) (*folder.Folder, error) { return folder.Local(s.objects, hash), nil }
	s.Root = folder.Local(s.objects, tree)
}

// take takes a snapshot of what an argument names: a folder, which is read as a commit of all its files would be, or a commit of the clone in
// the current folder. scratch is an empty folder.
func take(ctx context.Context, arg, scratch string) (*snapshot, error) {
	if info, err := os.Stat(arg); err == nil {
		if !info.IsDir() {
			arg = filepath.Dir(arg)
		}
		return ofWorktree(ctx, arg, scratch)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return ofCommit(ctx, arg)
}

// ofCommit returns the snapshot of a commit.
func ofCommit(ctx context.Context, ref string) (*snapshot, error) {
	s := &snapshot{}
	line, err := git.Run(ctx, ".", "log", "-1", "--format=%H%x00%T%x00%an", "--end-of-options", ref, "--")
	if err != nil {
		return nil, fmt.Errorf("%s is neither a folder nor a commit of the clone in the current folder: %w", ref, err)
	}
	fields := strings.SplitN(strings.TrimSuffix(line, "\n"), "\x00", 3)
	if len(fields) != 3 {
		return nil, fmt.Errorf("git log of %s printed %q", ref, line)
	}
	s.Revision, s.Author = ref+"@sha1:"+fields[0], fields[2]
	if s.root, err = git.Line(ctx, ".", "rev-parse", "--show-toplevel"); err != nil {
		return nil, err
	}
	s.objects, err = git.Line(ctx, ".", "rev-parse", "--path-format=absolute", "--git-common-dir")
	s.open(fields[1])
	return s, err
}

// ofWorktree returns the snapshot of all files of a work tree that Git does not ignore. Their objects are written to scratch, not to the clone.
func ofWorktree(ctx context.Context, dir, scratch string) (*snapshot, error) {
	s := &snapshot{objects: filepath.Join(scratch, ".git")}
	s.Revision = "worktree@sha1:" + strings.Repeat("0", 40)
	var err error
	if s.root, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	if _, err := git.Run(ctx, scratch, "init", "--quiet"); err != nil {
		return nil, err
	}
	if !git.Within(dir) {
		if _, err := os.Stat(filepath.Join(s.root, layout.VersionFile)); err != nil {
			return nil, fmt.Errorf("%s is neither in a clone nor a folder with a %s", s.root, layout.VersionFile)
		}
	} else {
		if s.root, err = git.Line(ctx, dir, "rev-parse", "--show-toplevel"); err != nil {
			return nil, err
		}
		if err := s.borrow(ctx); err != nil {
			return nil, err
		}
	}
	gitDir, work := "--git-dir="+s.objects, "--work-tree="+s.root
	if _, err := git.Run(ctx, s.root, gitDir, work, "add", "--all", "."); err != nil {
		return nil, fmt.Errorf("reading the files of %s: %w", s.root, err)
	}
	tree, err := git.Line(ctx, s.root, gitDir, work, "write-tree")
	if err != nil {
		return nil, fmt.Errorf("reading the files of %s: %w", s.root, err)
	}
	s.open(tree)
	s.Author, err = git.Line(ctx, s.root, "config", "--default", "you", "user.name")
	return s, err
}

// borrow lets the scratch repository use the objects and the index of the clone, so that only changed files are read.
func (s *snapshot) borrow(ctx context.Context) error {
	objects, err := git.Line(ctx, s.root, "rev-parse", "--path-format=absolute", "--git-path", "objects")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.objects, "objects", "info", "alternates"), []byte(objects+"\n"), 0o600); err != nil {
		return err
	}
	index, err := git.Line(ctx, s.root, "rev-parse", "--path-format=absolute", "--git-path", "index")
	if err != nil {
		return err
	}
	info, err := os.Stat(index)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	content, err := os.ReadFile(index)
	if err != nil {
		return err
	}
	copied := filepath.Join(s.objects, "index")
	if err := os.WriteFile(copied, content, 0o600); err != nil {
		return err
	}
	// Git reads a file again that changed at the time of the index or later, because its size and time may be those in the index.
	return os.Chtimes(copied, info.ModTime(), info.ModTime())
}
