package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"syscall"

	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// Temporary is the pattern of names of unfinished files, which are removed when a process starts.
const Temporary = "tmp-*"

// triesToCreate is how often a folder may be removed between its creation and the first file in it.
const triesToCreate = 100

// CreateIn creates a Temporary file in a folder, which is created too if it is missing. The folder may be removed at any time while it is
// empty, see Discard.
func CreateIn(folder string) (*os.File, error) {
	for tries := 1; ; tries++ {
		err := os.MkdirAll(folder, 0o700)
		if err == nil {
			var file *os.File
			if file, err = os.CreateTemp(folder, Temporary); err == nil {
				return file, nil
			}
		}
		// MkdirAll says that it exists where it went between the try to make it and the look at what is there.
		if gone := errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist); tries == triesToCreate || !gone {
			return nil, Writing(folder, err)
		}
	}
}

// Discard closes a Temporary file and removes it, unless it was renamed, and its folder if that is empty: sources without content must not
// fill the disk with folders.
func Discard(file *os.File) {
	_ = file.Close()
	_ = os.Remove(file.Name())
	_ = os.Remove(filepath.Dir(file.Name()))
}

// Writing explains a failed write below dir. A full disk is named, because its cause is never the source.
func Writing(dir string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("no space left below %s: ask an administrator of the cluster to free some, or to give the operator more with %s: %w", dir,
			command.OfChart("dataSizeLimit"), err)
	}
	return fmt.Errorf("writing below %s: %w", dir, err)
}

// Err marks an error on our side; no other answer of the server would help.
var Err = errors.New("disk error")

// Failed returns an Err about a write below dir.
func Failed(dir string, err error) error {
	return fmt.Errorf("%w: %w", Err, Writing(dir, err))
}

// DownloadFailed explains an error of copying from a server to a file.
func DownloadFailed(what, folder string, err error) error {
	var (
		local *os.PathError
		ours  *failure.Error
	)
	switch {
	case errors.As(err, &local):
		return Writing(folder, err)
	case errors.As(err, &ours):
		return err
	}
	return fmt.Errorf("%w: downloading %s: %w", failure.ErrUnavailable, what, err)
}

var sha256Hex = regexp.MustCompile(`^[0-9a-f]{64}$`)

// IsSHA256 reports whether a text is a hexadecimal SHA-256, as in file names.
func IsSHA256(text string) bool { return sha256Hex.MatchString(text) }
