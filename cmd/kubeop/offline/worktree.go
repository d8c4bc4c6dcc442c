// Package offline has the commands that need no cluster: they read and write the files of a repository.
package offline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/kubeop/kubeop/cmd/kubeop/git"
	"github.com/kubeop/kubeop/gitops/tree"
)

// worktree is the files of a folder as a commit of all of them would have them: without what Git ignores. It implements tree.Files.
type worktree struct {
	root string
	// files are the paths that a commit would have, and the folders that lead to them. Nil: everything, because it is no work tree of Git.
	files map[string]bool
	// dir is the folder within root that paths are relative to.
	dir string
}

// openWorktree lists the files of a folder.
func openWorktree(ctx context.Context, folder string) (*worktree, error) {
	info, err := os.Stat(folder)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder", folder)
	}
	w := &worktree{root: folder, dir: "."}
	w.files, err = committable(ctx, folder)
	return w, err
}

// committable returns the files of a folder that Git tracks or would add, and their folders; nil if the folder is in no work tree of Git.
func committable(ctx context.Context, folder string) (map[string]bool, error) {
	if !git.Within(folder) {
		return nil, nil
	}
	out, err := git.Run(ctx, folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, fmt.Errorf("listing the files of %s: %w", folder, err)
	}
	files := map[string]bool{}
	for _, file := range strings.Split(strings.TrimSuffix(out, "\x00"), "\x00") {
		// A tracked file that was deleted is not in the next commit.
		if _, err := os.Lstat(filepath.Join(folder, file)); err != nil {
			continue
		}
		for at := file; at != "." && !files[at]; at = path.Dir(at) {
			files[at] = true
		}
	}
	return files, nil
}

// Open implements fs.FS.
func (w *worktree) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) || !w.has(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return os.Open(w.path(name))
}

// ReadDir implements fs.ReadDirFS.
func (w *worktree) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := os.ReadDir(w.path(name))
	if err != nil {
		return nil, err
	}
	var entries []fs.DirEntry
	for _, e := range all {
		if e.Name() != ".git" && w.has(path.Join(name, e.Name())) {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// Sub implements tree.Files.
func (w *worktree) Sub(name string) (tree.Files, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "sub", Path: name, Err: fs.ErrInvalid}
	}
	return &worktree{root: w.root, files: w.files, dir: path.Join(w.dir, name)}, nil
}

// Digest implements tree.Files: a hash of everything at or below a path.
func (w *worktree) Digest(name string) (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(w, name, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		fmt.Fprintf(sum, "%s %s %s\n", strings.TrimPrefix(file, name), e.Type(), e.Name())
		if !e.Type().IsRegular() {
			return nil
		}
		data, err := fs.ReadFile(w, file)
		fmt.Fprintf(sum, "%d\n%s", len(data), data)
		return err
	})
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)[:20]), nil
}

func (w *worktree) path(name string) string {
	return filepath.Join(w.root, filepath.FromSlash(path.Join(w.dir, name)))
}

func (w *worktree) has(name string) bool {
	full := path.Join(w.dir, name)
	return w.files == nil || full == "." || w.files[full]
}

func hasFolder(files fs.FS, name string) bool {
	info, err := fs.Stat(files, name)
	return err == nil && info.IsDir()
}

// topFolder returns the first folder at or above a folder that has a kubeop.yaml, and the folder itself if there is none.
func topFolder(folder string) (string, error) {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	for at := absolute; ; at = filepath.Dir(at) {
		_, err := os.Stat(filepath.Join(at, "kubeop.yaml"))
		if err == nil {
			return at, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if at == filepath.Dir(at) {
			return absolute, nil
		}
	}
}
