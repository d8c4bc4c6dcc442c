package inventory

import (
	"errors"
	"fmt"
	"slices"
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

// JoinErrors joins errors about objects in the order of kinds and names, so that the same errors always result in the same message; nil for
// none.
func JoinErrors(about map[ObjectID]error) error {
	if len(about) == 0 {
		return nil
	}
	joined := make(objectErrors, 0, len(about))
	for id, err := range about {
		joined = append(joined, &ObjectError{ID: id, Err: err})
	}
	slices.SortFunc(joined, func(x, y error) int { return strings.Compare(x.Error(), y.Error()) })
	return joined
}

// objectErrors are joined errors about objects; the message shows the first few.
type objectErrors []error

// maxNamed is how many failed objects a message names if there are at least two more.
const maxNamed = 10

func (f objectErrors) Error() string {
	lines := make([]string, 0, maxNamed+1)
	for i, err := range f {
		if i == maxNamed && len(f) > maxNamed+1 {
			lines = append(lines, fmt.Sprintf("and %d more", len(f)-maxNamed))
			break
		}
		lines = append(lines, err.Error())
	}
	return strings.Join(lines, "\n")
}

func (f objectErrors) Unwrap() []error { return f }

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
