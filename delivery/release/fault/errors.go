// Package fault has the errors of a release, says whose fault each is, the input's or the world's, and how it is told: masked, on one
// line, and short.
package fault

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var (
	// ErrRender says that the chart cannot be loaded, refuses its values or does not render; only another input helps.
	ErrRender = errors.New("rendering the chart")
	// ErrLocked says that someone else is working on the release; it is taken over when their time is up.
	ErrLocked = errors.New("the release is locked")
	// ErrTaken says that another app owns the release.
	ErrTaken = errors.New("the release is taken")
	// ErrTooLarge says that the chart is larger than kubeop reads, or the release than fits into its record. It comes with
	// ErrRender.
	ErrTooLarge = errors.New("too large")
	// ErrSuperseded says that a newer input ended the waiting for objects to be ready.
	ErrSuperseded = errors.New("a newer version ended the wait")
	// ErrDraining says that the engine starts no more actions.
	ErrDraining = errors.New("the operator is stopping")
)

// TakenBy is an ErrTaken that says whose the release is.
func TakenBy(release, app string) error { return &belongs{release, app} }

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
	// Objects as "Kind/name", sorted, with the finalizers that hold them: for the message only.
	Objects []string
	// Foreign: one is held by a finalizer that Kubernetes does not take off by itself.
	Foreign bool
}

func (e *Terminating) Error() string {
	return "waiting for " + strings.Join(e.Objects, ", ") + " to be gone"
}

// ClaimsInTheWay says that an object is not deleted, because claims that hold data would go with it.
type ClaimsInTheWay struct {
	// Object is "Kind/name".
	Object string
	Claims []string
}

func (e *ClaimsInTheWay) Error() string {
	return fmt.Sprintf("%s owns claims that hold data and would go with it: %s; take its owner references off them to keep them", e.Object, strings.Join(e.Claims, ", "))
}

// oversize is an ErrTooLarge that says what is too large.
type oversize struct{ why string }

func (e *oversize) Error() string { return e.why }
func (e *oversize) Unwrap() error { return ErrTooLarge }

// TooLarge is an ErrTooLarge that says what is too large.
func TooLarge(why string) error { return &oversize{why} }

// OverLimit is err as an ErrTooLarge if it wraps limit, the error of another package for what is too large.
func OverLimit(err, limit error) error {
	if errors.Is(err, limit) {
		return TooLarge(err.Error())
	}
	return err
}

// Render is err as an ErrRender.
func Render(err error) error {
	if errors.Is(err, ErrRender) {
		return err
	}
	return &rendering{err}
}

// rendering is an ErrRender with its cause.
type rendering struct{ cause error }

func (e *rendering) Error() string   { return ErrRender.Error() + ": " + e.cause.Error() }
func (e *rendering) Unwrap() []error { return []error{ErrRender, e.cause} }

// RenderCause reports whether Render made err an ErrRender, and returns what it was before, or else err itself. It does not look into other
// errors: what they add would be lost.
func RenderCause(err error) (is bool, cause error) {
	if e, ok := err.(*rendering); ok { //nolint:errorlint // see above
		return true, e.cause
	}
	return false, err
}

// Mask returns err, or if hide changes its text, an error with the hidden text and nothing to unwrap.
func Mask(err error, hide func(string) string) error {
	if err == nil {
		return nil
	}
	text := hide(err.Error())
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}

// maxMessage is how long, in bytes, an error of the engine may be: a template that includes itself says so a thousand times.
const maxMessage = 2 << 10

// shortened is an error whose text is cut.
type shortened struct {
	error
	text string
}

func (e *shortened) Error() string { return e.text }
func (e *shortened) Unwrap() error { return e.error }

// Brief is err with at most maxMessage of text: where it is longer the middle is left out. It has to be masked before: half
// a secret would not be found.
func Brief(err error) error {
	if err == nil || len(err.Error()) <= maxMessage {
		return err
	}
	const gap = " … "
	text, half := err.Error(), (maxMessage-len(gap))/2
	return &shortened{err, strings.ToValidUTF8(text[:half], "") + gap + strings.ToValidUTF8(text[len(text)-half:], "")}
}

// Plain is masked, on one line: Helm lists errors of several objects below each other.
func Plain(err error, hide func(string) string) error {
	err = Mask(err, hide)
	if err == nil || !strings.Contains(err.Error(), "\n") {
		return err
	}
	return errors.New(OneLine(err.Error()))
}

// OneLine separates what stood on lines of its own, in a list maybe, by semicolons.
func OneLine(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) > 0 && (words[0] == "-" || words[0] == "*") {
			words = words[1:]
		}
		if len(words) == 0 {
			continue
		}
		switch {
		case b.Len() == 0:
		case strings.HasSuffix(b.String(), ":"):
			b.WriteString(" ")
		default:
			b.WriteString("; ")
		}
		b.WriteString(strings.Join(words, " "))
	}
	return b.String()
}

// templateNoise is what Go's templates say beside where and what: each step says which template it is, twice.
var templateNoise = regexp.MustCompile(`\btemplate: |executing "[^"]*" `)

// Readable shortens the error of a template to the places, "web/templates/a.yaml:3:7: at <.Values.a.b>", and what is wrong
// there.
func Readable(err error) error {
	text := templateNoise.ReplaceAllString(err.Error(), "")
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}

// Recovered turns a panic of Helm during an act into an error. It is deferred.
func Recovered(act string, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%s: Helm panicked: %v", act, p)
	}
}
