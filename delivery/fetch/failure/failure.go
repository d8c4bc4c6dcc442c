// Package failure defines the kinds of errors of a fetch. Callers decide by the kind; the message is for the owner of the source.
package failure

import (
	"errors"
	"fmt"
	"io/fs"
)

// The kinds of errors by which callers decide; compare with errors.Is. Any other error is transient: retry later.
var (
	// ErrNotFound means that the repository, ref, commit, chart or version does not exist, or that the credentials may not see it.
	ErrNotFound = errors.New("not found")
	// ErrAuthentication means that the server refused the credentials, or that the server could not prove its identity.
	ErrAuthentication = errors.New("authentication failed")
	// ErrInvalid means that the source as written can never work: only a change of the source helps.
	ErrInvalid = errors.New("invalid source")
	// ErrTooLarge means that the source exceeds a limit; the message names the limit.
	ErrTooLarge = errors.New("too large")
	// ErrDigest means that the source does not have the digest that is pinned: only a change of one of them helps.
	ErrDigest = errors.New("another digest")
	// ErrSignature means that a commit or tag is not signed by one of the required keys. Only another commit, or other keys, can help.
	ErrSignature = errors.New("verification failed")
	// ErrChartTooLarge is the ErrTooLarge of a chart's archive.
	ErrChartTooLarge = fmt.Errorf("chart %w", ErrTooLarge)
	// ErrUnavailable means that the server could not be reached, or failed. It is transient.
	ErrUnavailable = errors.New("unavailable")
	// ErrNoTag is the ErrNotFound of an image policy: the repository has no tag that fits the policy.
	ErrNoTag = fmt.Errorf("tag %w", ErrNotFound)
	// ErrBusy means that the source was not fetched because the tenant has the maximum number of waiting fetches. The source itself is not
	// the cause. Retry in a few seconds.
	ErrBusy = errors.New("busy")
)

// OversizedPath returns the file or folder of a commit that exceeds a limit, relative to the Folder through which it was read. Only what is
// made from that file or folder fails. It returns false for any other error, also for an ErrTooLarge about a commit or a source as a whole.
func OversizedPath(err error) (path string, is bool) {
	var at *fs.PathError
	if errors.Is(err, ErrTooLarge) && errors.As(err, &at) {
		return at.Path, true
	}
	return "", false
}

// Error is an error of one of the kinds above, or of a kind of the package that creates it. Its message is for the owner of the source.
type Error struct {
	kind, cause error
	why         string
}

// Error implements error.
func (f *Error) Error() string { return f.why }

// Unwrap returns the kind, and the cause if there is one.
func (f *Error) Unwrap() []error {
	if f.cause == nil {
		return []error{f.kind}
	}
	return []error{f.kind, f.cause}
}

// New returns an *Error of a kind, with a message in the format of fmt.Sprintf. Quote text from a server or a tenant with few.Quote.
func New(kind error, format string, args ...any) error {
	return &Error{kind: kind, why: fmt.Sprintf(format, args...)}
}

// Because is New for an *Error that also wraps its cause.
func Because(kind, cause error, format string, args ...any) error {
	return &Error{kind: kind, cause: cause, why: fmt.Sprintf(format, args...)}
}

// ErrNotReady means that there is nothing to fetch yet: another controller has to create it first.
var ErrNotReady = errors.New("not ready")

// ErrSlow means that a time limit ended the fetch; the next one may be faster.
var ErrSlow = errors.New("too slow")

// ErrServer means that the server's answer may be different next time.
var ErrServer = fmt.Errorf("server error: %w", ErrUnavailable)
