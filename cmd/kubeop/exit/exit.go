// Package exit has the exit codes of the command line, and the errors that end it with one of them.
package exit

import "errors"

// Exit codes.
const (
	// OK: the command did what it was asked to do.
	OK = 0
	// Failure: it could not, and standard error says why.
	Failure = 1
	// Differences: it found problems or differences, as `diff` does.
	Differences = 2
	// NotReady: what it waited for did not become ready in time.
	NotReady = 3
	// Interrupted: the person ended it.
	Interrupted = 130
)

// ErrSaid ends the command without a message, because its output says everything.
var ErrSaid = errors.New("the output says what was found")

// Error ends the command with a code other than Failure.
type Error struct {
	Code int
	Err  error
}

// Error returns the text of the error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error without its code.
func (e *Error) Unwrap() error { return e.Err }

// Code returns the exit code for what a command returned.
func Code(err error) int {
	var coded *Error
	switch {
	case err == nil:
		return OK
	case errors.As(err, &coded):
		return coded.Code
	}
	return Failure
}
