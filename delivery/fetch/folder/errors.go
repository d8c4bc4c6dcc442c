package folder

import (
	"errors"
	"io/fs"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

var (
	// ErrSymlink is what opening a symbolic link returns.
	ErrSymlink = errors.New("is a symbolic link, and links are not followed: commit the file itself")
	// ErrSubmodule is what opening a submodule returns.
	ErrSubmodule = errors.New("is a submodule, and submodules are not fetched: commit its files or deliver it as its own Git app")
	// ErrNotExist means that a path is not in a folder. It is both fs.ErrNotExist, for the packages that read an fs.FS, and
	// failure.ErrNotFound, for those that decide by the kinds of package failure.
	ErrNotExist error = notExist{}
)

type notExist struct{}

func (notExist) Error() string { return "no such file or folder" }

// Is makes it both kinds.
func (notExist) Is(target error) bool {
	return target == fs.ErrNotExist || target == failure.ErrNotFound
}

// PathError names the operation and the path that an error is of, unless the error does already.
func PathError(op, name string, err error) error {
	var already *fs.PathError
	if errors.As(err, &already) {
		return err
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// followable refuses what is listed and never followed.
func followable(mode filemode.FileMode) error {
	switch mode {
	case filemode.Symlink:
		return ErrSymlink
	case filemode.Submodule:
		return ErrSubmodule
	}
	return nil
}
