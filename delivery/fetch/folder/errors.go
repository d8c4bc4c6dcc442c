package folder

import (
	"errors"
	"io/fs"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

var (
	// ErrSymlink is the error of opening a symbolic link.
	ErrSymlink = errors.New("is a symbolic link, and links are not followed: commit the file itself")
	// ErrSubmodule is the error of opening a submodule.
	ErrSubmodule = errors.New("is a submodule, and submodules are not fetched: commit its files or deliver it as its own Git app")
	// ErrNotExist means that a path is not in a folder. It is both fs.ErrNotExist, for packages that read an fs.FS, and
	// failure.ErrNotFound, for packages that decide by the kinds of package failure.
	ErrNotExist error = notExist{}
)

type notExist struct{}

func (notExist) Error() string { return "no such file or folder" }

// Is reports that the error is of both kinds.
func (notExist) Is(target error) bool {
	return target == fs.ErrNotExist || target == failure.ErrNotFound
}

// PathError adds the operation and the path to an error that does not have them.
func PathError(op, name string, err error) error {
	var already *fs.PathError
	if errors.As(err, &already) {
		return err
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// followable refuses links and submodules, which are listed but never followed.
func followable(mode filemode.FileMode) error {
	switch mode {
	case filemode.Symlink:
		return ErrSymlink
	case filemode.Submodule:
		return ErrSubmodule
	}
	return nil
}
