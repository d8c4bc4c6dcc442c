package release

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

var (
	// ErrRender says that the chart cannot be loaded, refuses its values or does not render; only another input helps.
	ErrRender = errors.New("rendering the chart")
	// ErrLocked says that someone else is working on the release; it is taken over when their time is up.
	ErrLocked = errors.New("the release is locked")
	// ErrTaken says that another app owns the release.
	ErrTaken = errors.New("the release is taken")
	// ErrDraining says that the engine starts no more actions.
	ErrDraining = errors.New("the operator is stopping")
)

// belongs is an ErrTaken that says whose the release is.
type belongs struct{ release, app string }

func (e *belongs) Error() string {
	return fmt.Sprintf("release %s belongs to app %s; choose another releaseName", e.release, e.app)
}
func (e *belongs) Unwrap() error { return ErrTaken }

// NotAllowed is a release refused before anything was written.
type NotAllowed struct{ Err error }

func (e *NotAllowed) Error() string { return e.Err.Error() }
func (e *NotAllowed) Unwrap() error { return e.Err }

// Terminating says that objects of an uninstalled release are still there.
type Terminating struct {
	// Objects as "Kind/name", sorted.
	Objects []string
}

func (e *Terminating) Error() string {
	return "waiting for " + strings.Join(e.Objects, ", ") + " to be gone"
}

func renderError(err error) error { return fmt.Errorf("%w: %w", ErrRender, err) }

// shortest is the length below which a sensitive string is not masked: it would blot out ordinary words.
const shortest = 4

// masked returns err, or if its text holds a sensitive string, an error with the text masked and nothing to unwrap.
func masked(err error, sensitive []string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, s := range sensitive {
		if len(s) < shortest {
			continue
		}
		quoted := strconv.Quote(s)
		for _, form := range []string{s, quoted[1 : len(quoted)-1], base64.StdEncoding.EncodeToString([]byte(s))} {
			text = strings.ReplaceAll(text, form, "***")
		}
	}
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}

// plain is masked, on one line: Helm lists errors of several objects below each other.
func plain(err error, sensitive []string) error {
	err = masked(err, sensitive)
	if err == nil || !strings.Contains(err.Error(), "\n") {
		return err
	}
	return errors.New(strings.Join(strings.Fields(err.Error()), " "))
}
