// Package fault has the errors of a release. It collects those of an action's requests, and formats errors: masked, on one line, and short.
// Package cause classifies errors as the input's or the environment's.
package fault

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var (
	// ErrRender says that the chart cannot be loaded, refuses its values or does not render. Only another input helps.
	ErrRender = errors.New("rendering the chart")
	// ErrLocked says that someone else is working on the release. When their time is up, kubeop takes the release over.
	ErrLocked = errors.New("the release is locked")
	// ErrLookup says that a template's lookup was not answered. It comes with the API server's error.
	ErrLookup = errors.New("lookup")
	// ErrTaken says that another app owns the release.
	ErrTaken = errors.New("the release is taken")
	// ErrTooLarge says that the chart is larger than kubeop reads, or the release is too large for its record. It comes with ErrRender.
	ErrTooLarge = errors.New("too large")
	// ErrSuperseded says that a newer input ended the wait until objects are ready.
	ErrSuperseded = errors.New("a newer version ended the wait")
	// ErrDraining says that the engine starts no more actions.
	ErrDraining = errors.New("the operator is stopping")
)

// Taken is an ErrTaken that names the owner of the release.
type Taken struct{ Release, App string }

func (e *Taken) Error() string {
	return fmt.Sprintf("release %s belongs to app %s; choose another spec.helm.releaseName", e.Release, e.App)
}
func (e *Taken) Unwrap() error { return ErrTaken }

// NotAllowed is a release refused before anything was written.
type NotAllowed struct{ Err error }

func (e *NotAllowed) Error() string { return e.Err.Error() }
func (e *NotAllowed) Unwrap() error { return e.Err }

// Terminating says that objects of an uninstalled release still exist.
type Terminating struct {
	// Objects as "Kind/name", sorted, with the finalizers that hold them: for the message only.
	Objects []string
	// Foreign: one is held by a finalizer that Kubernetes does not remove by itself.
	Foreign bool
}

func (e *Terminating) Error() string {
	return "waiting for " + strings.Join(e.Objects, ", ") + " to be gone"
}

// ClaimsInTheWay says that an object is not deleted, because claims that hold data would be deleted with it.
type ClaimsInTheWay struct {
	// Object is "Kind/name".
	Object string
	Claims []string
	// Remedy says who may keep the claims, and how.
	Remedy string
}

func (e *ClaimsInTheWay) Error() string {
	return fmt.Sprintf("%s owns claims that hold data and would go with it: %s; %s", e.Object, strings.Join(e.Claims, ", "), e.Remedy)
}

// oversize is an ErrTooLarge that says what is too large.
type oversize struct{ why string }

func (e *oversize) Error() string { return e.why }
func (e *oversize) Unwrap() error { return ErrTooLarge }

// TooLarge is an ErrTooLarge that says what is too large.
func TooLarge(why string) error { return &oversize{why} }

// OverLimit returns err as an ErrTooLarge if it wraps limit, which is another package's error for a too large input.
func OverLimit(err, limit error) error {
	if errors.Is(err, limit) {
		return TooLarge(err.Error())
	}
	return err
}

// Render returns err as an ErrRender.
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

// RenderCause reports whether Render made err an ErrRender, and returns the original error, or else err itself. It does not unwrap other
// errors: the text that they add would be lost.
func RenderCause(err error) (is bool, cause error) {
	if e, ok := err.(*rendering); ok { //nolint:errorlint // see above
		return true, e.cause
	}
	return false, err
}

// Mask returns err, or if hide changes its text, an error with the masked text that wraps nothing.
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

// maxMessage is the maximum length, in bytes, of an error of the engine: a template that includes itself repeats its message a thousand
// times. maxRefusal is that of a refusal, which names each rule that is broken.
const maxMessage, maxRefusal = 2 << 10, 20 << 10

// shortened is an error with a cut text.
type shortened struct {
	error
	text string
}

func (e *shortened) Error() string { return e.text }
func (e *shortened) Unwrap() error { return e.error }

// Brief returns err with at most maxMessage or maxRefusal of text: the middle of a longer one is left out. The error must be masked before,
// because half a secret would not be recognized.
func Brief(err error) error {
	most := maxMessage
	if errors.As(err, new(*NotAllowed)) {
		most = maxRefusal
	}
	if err == nil || len(err.Error()) <= most {
		return err
	}
	const gap = " … "
	text, half := err.Error(), (most-len(gap))/2
	return &shortened{err, strings.ToValidUTF8(text[:half], "") + gap + strings.ToValidUTF8(text[len(text)-half:], "")}
}

// Plain returns err masked and on one line: Helm lists the errors of several objects below each other.
func Plain(err error, hide func(string) string) error {
	err = Mask(err, hide)
	if err == nil || !strings.Contains(err.Error(), "\n") {
		return err
	}
	return errors.New(OneLine(err.Error()))
}

// OneLine joins lines, which may be items of a list, with semicolons.
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

// templateNoise matches the text of Go's template errors besides the place and the problem: each step names its template twice.
var templateNoise = regexp.MustCompile(`\btemplate: |executing "[^"]*" `)

// advice is what to do about an error of Helm. It is found by text, because these errors have no types, and come from another process.
var advice = []struct{ text, do string }{
	{"nil pointer evaluating", "set the value above it in spec.helm.values of app.yaml, or in a file of spec.helm.valuesFiles, or have the template test it with \"if\""},
	{"values don't meet the specifications of the", "values.schema.json of the chart says so: correct these values in spec.helm.values of app.yaml, or in a file of spec.helm.valuesFiles"},
}

// Readable shortens the error of a template to the places, "web/templates/a.yaml:3:7: at <.Values.a.b>", and the problem there, and adds
// what to do if that is known.
func Readable(err error) error {
	text := templateNoise.ReplaceAllString(err.Error(), "")
	for _, about := range advice {
		if strings.Contains(text, about.text) {
			text += "; " + about.do
		}
	}
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}

// Recovered turns a panic of Helm during an action into an error. Defer it.
func Recovered(act string, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%s: Helm panicked: %v", act, p)
	}
}
