package step

import (
	"context"
	"errors"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Object is an object of a kind of this API.
type Object interface {
	client.Object
	conditions.Setter
	GetReconcileStatus() *v1alpha1.ReconcileStatus
	GetSchedule() *v1alpha1.Schedule
}

// Scope holds the facts that one Reconcile finds.
type Scope interface {
	// Record writes the facts into the object's status, but no conditions.
	Record()
	// Summary is Ready's message if every step succeeded.
	Summary() string
}

// Noter is a Scope with conditions other than those of the steps.
type Noter interface {
	Notes() []Note
}

// Note is a condition that belongs to no step. A note without a status removes the condition, unless it stays; a note without a condition is only
// an event.
type Note struct {
	Condition string
	Status    metav1.ConditionStatus
	Reason    string
	Message   string
	// Event is the type of the event to send when the note is new or changed; "" sends none.
	Event string
	// Stays leaves the condition as it is, also if it is missing. The other fields are empty then.
	Stays bool
}

// Stays returns a note that leaves a condition as it is while nothing is known about it: a restart is no news.
func Stays(condition string) Note { return Note{Condition: condition, Stays: true} }

// Headed is a Scope with a beginning for Ready's message, whatever its status; "" for none.
type Headed interface {
	Heading() string
}

// Sooner is a Scope that may need another Reconcile before the interval is over, although all steps succeeded or only a change can help.
// Again is then above 0.
type Sooner interface {
	Again() time.Duration
}

// Detailed is a Scope with details about a failure that are too long for a condition; the event has them.
type Detailed interface {
	Details() string
}

// Notified is a Scope whose StatusWritten is called when the status with its facts was written.
type Notified interface {
	StatusWritten()
}

// Masker is a Scope with secrets that no condition, event or log may contain. Mask hides them in a text.
type Masker interface {
	Mask(text string) string
}

// Step is one step of a Reconcile, and the condition that reports its result.
type Step struct {
	condition string
	do        func(context.Context) error
}

// Of makes a step from a function that uses the scope.
func Of[S Scope](condition string, s S, do func(context.Context, S) error) Step {
	return Step{condition: condition, do: func(ctx context.Context) error { return masked(s, do(ctx, s)) }}
}

// masked returns err with the scope's secrets masked in its text. The result unwraps only to the verdict, because wrapped errors are not
// masked.
func masked(s Scope, err error) error {
	if err == nil {
		return nil
	}
	v := outcomeOf(err)
	text := mask(s, v.err.Error())
	if text == v.err.Error() {
		return err
	}
	v.err = errors.New(text)
	return v
}

// report is what a scope reports in addition to the steps' conditions, masked.
type report struct {
	// message is Ready's message without its heading: why the Reconcile did not succeed, or the scope's summary.
	message string
	// heading is the beginning of Ready's message, details the end of its event's message; "" for none.
	heading, details string
	notes            []Note
}

// reportOf returns the report of a scope. v is how the Reconcile ended; only a failure has details.
func reportOf(s Scope, v *verdict) (r report) {
	if v == nil {
		r.message = s.Summary()
	} else {
		r.message = v.err.Error()
	}
	if h, ok := s.(Headed); ok {
		r.heading = mask(s, h.Heading())
	}
	if n, ok := s.(Noter); ok {
		r.notes = n.Notes()
	}
	for i := range r.notes {
		r.notes[i].Message = mask(s, r.notes[i].Message)
	}
	if d, ok := s.(Detailed); ok && v != nil && v.kind != waiting {
		r.details = mask(s, d.Details())
	}
	return r
}

// mask hides the scope's secrets in a text.
func mask(s Scope, text string) string {
	if d, ok := s.(Masker); ok {
		return d.Mask(text)
	}
	return text
}
