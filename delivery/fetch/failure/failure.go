// Package failure has the kinds of error with which fetching a source ends. Callers decide by the kind; the message is for the owner
// of the source.
package failure

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// The kinds of error a caller decides by; compare with errors.Is. Any other error is transient: try again later.
var (
	// ErrNotFound means that the repository, ref, commit, chart or version does not exist, or may not be seen.
	ErrNotFound = errors.New("not found")
	// ErrAuthentication means that the server refused the credentials, or that the server could not prove who it is.
	ErrAuthentication = errors.New("authentication failed")
	// ErrInvalid means that the source as written can never work: only a change of it helps.
	ErrInvalid = errors.New("invalid source")
	// ErrTooLarge means that the source is past a limit of what is fetched; the message names the limit.
	ErrTooLarge = errors.New("too large")
	// ErrDigest means that what the source names is not what a digest pins: only a change of either helps.
	ErrDigest = errors.New("another digest")
	// ErrSignature means that a commit or tag is not signed by one of the required keys. Only another commit, or other keys, can help.
	ErrSignature = errors.New("verification failed")
	// ErrChartTooLarge is the ErrTooLarge of a chart's archive.
	ErrChartTooLarge = fmt.Errorf("chart %w", ErrTooLarge)
	// ErrUnavailable means that the server could not be reached, or failed: it is transient.
	ErrUnavailable = errors.New("unavailable")
	// ErrNoTag is the ErrNotFound of an image policy: the repository has no tag that it wants.
	ErrNoTag = fmt.Errorf("tag %w", ErrNotFound)
	// ErrBusy means that the source was not fetched, because the tenant has as many fetches waiting as it may. The source itself is not at
	// fault. Try again in a few seconds.
	ErrBusy = errors.New("busy")
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

// Error is an error of one of the kinds above, or of a kind of the package that makes it. Its message is written for the owner of the
// source.
type Error struct {
	kind, cause error
	why         string
}

// Error implements error.
func (f *Error) Error() string { return f.why }

// Unwrap returns the kind, and the cause where there is one.
func (f *Error) Unwrap() []error {
	if f.cause == nil {
		return []error{f.kind}
	}
	return []error{f.kind, f.cause}
}

// New returns an *Error of a kind, with a message as fmt.Sprintf writes it. What a server or a tenant wrote goes through Printable
// before it is part of a message.
func New(kind error, format string, args ...any) error {
	return &Error{kind: kind, why: fmt.Sprintf(format, args...)}
}

// Because returns an *Error of a kind as New does, which also wraps its cause.
func Because(kind, cause error, format string, args ...any) error {
	return &Error{kind: kind, cause: cause, why: fmt.Sprintf(format, args...)}
}

// Printable makes text that a server sent fit for a status: one line, no control characters, at most 200 characters.
func Printable(text string) string {
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

// ErrNotReady means that there is nothing to fetch yet: another controller has to make it first.
var ErrNotReady = errors.New("not ready")

// ErrSlow is a fetch that a limit of time ended; the next one may be faster.
var ErrSlow = errors.New("too slow")

// ErrServer is an answer of a server that may be different next time.
var ErrServer = fmt.Errorf("server error: %w", ErrUnavailable)
