package inventory

import (
	"errors"
	"fmt"
	"strings"
)

// ObjectError says which object an error is about.
type ObjectError struct {
	ID  ObjectID
	Err error
}

func (e *ObjectError) Error() string {
	return fmt.Sprintf("%s/%s: %s", e.ID.Kind, e.ID.Name, strings.TrimSpace(e.Err.Error()))
}

// Unwrap returns the error itself.
func (e *ObjectError) Unwrap() error { return e.Err }

// ErrorAbout returns err as an *ObjectError; nil for nil.
func ErrorAbout(id ObjectID, err error) error {
	if err == nil {
		return nil
	}
	return &ObjectError{ID: id, Err: err}
}

// Split returns the errors that were joined into err; none for nil.
func Split(err error) []error {
	if err == nil {
		return nil
	}
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return joined.Unwrap()
	}
	return []error{err}
}
