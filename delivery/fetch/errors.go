// Package fetch brings sources into the operator: commits of Git repositories as read-only folders, and Helm charts
// as archives on disk. It knows no controller and no condition.
//
// Nothing is checked out. A commit is received into a bare object store and its tree is read from there, so symbolic
// links, submodules, hooks and ".." have no meaning.
package fetch

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// The kinds of failure a caller decides by; compare with errors.Is. Any other error is transient: try again later.
var (
	// ErrNotFound means that the repository, ref, commit, chart or version does not exist, or may not be seen.
	ErrNotFound = errors.New("not found")
	// ErrAuthentication means that the server refused the credentials, or that the server could not prove who it is.
	ErrAuthentication = errors.New("authentication failed")
	// ErrInvalid means that the source as written can never work: only a change of it helps.
	ErrInvalid = errors.New("invalid source")
	// ErrTooLarge means that a limit of this package was met; the message names the limit.
	ErrTooLarge = errors.New("too large")
	// ErrDigest means that what the source names is not what a digest pins: only a change of either helps.
	ErrDigest = errors.New("another digest")
	// ErrChartTooLarge is the ErrTooLarge of a chart's archive.
	ErrChartTooLarge = fmt.Errorf("chart %w", ErrTooLarge)
	// ErrUnavailable means that the server could not be reached, or failed: it is transient.
	ErrUnavailable = errors.New("unavailable")
	// ErrNoTag is the ErrNotFound of an image policy: the repository has no tag that it wants.
	ErrNoTag = fmt.Errorf("tag %w", ErrNotFound)
	// ErrBusy means that the source was not asked, because as many fetches of the tenant wait as may; nothing is wrong with the
	// source. Try again in a few seconds.
	ErrBusy = errors.New("busy")

	// ErrSymlink is what opening a symbolic link returns.
	ErrSymlink = errors.New("is a symbolic link, and links are not followed: commit the file itself")
	// ErrSubmodule is what opening a submodule returns.
	ErrSubmodule = errors.New("is a submodule, and submodules are not fetched: commit its files or deliver it as its own Git app")
)

// OversizedPath returns the file or folder of a commit that an error is about, where that is past a limit of what is read,
// relative to the Folder it was read through: nothing but what is made from it is the worse for it. For any other error it is
// false, also for an ErrTooLarge that is about a commit or a source as a whole.
func OversizedPath(err error) (path string, is bool) {
	var at *fs.PathError
	if errors.Is(err, ErrTooLarge) && errors.As(err, &at) {
		return at.Path, true
	}
	return "", false
}

// failure is an error of one of the kinds above whose message is written for the owner of the source.
type failure struct {
	kind error
	why  string
}

func (f *failure) Error() string { return f.why }

func (f *failure) Unwrap() error { return f.kind }

func fail(kind error, format string, args ...any) error {
	return &failure{kind: kind, why: fmt.Sprintf(format, args...)}
}

// missing says that a path is not in a folder; it is both fs.ErrNotExist, for the packages that read an fs.FS, and
// ErrNotFound, for those that decide by the kinds of this package.
type missing struct{}

func (missing) Error() string { return "no such file or folder" }

// Is makes it both kinds.
func (missing) Is(target error) bool { return target == fs.ErrNotExist || target == ErrNotFound }

// writing explains a failed write below dir. A full disk is named, because its cause is never the source.
func writing(dir string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("no space left below %s: free some or give the operator a larger volume: %w", dir, err)
	}
	return fmt.Errorf("writing below %s: %w", dir, err)
}

// printable makes text a server sent fit for a status: one line, no control characters, at most 200 characters.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return ' '
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if runes := []rune(text); len(runes) > 200 {
		text = string(runes[:200]) + "…"
	}
	return text
}
