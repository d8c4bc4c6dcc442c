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

// Object is a kind of this API.
type Object interface {
	client.Object
	conditions.Setter
	GetReconcileStatus() *v1alpha1.ReconcileStatus
	GetSchedule() *v1alpha1.Schedule
}

// Scope holds the facts one Reconcile finds.
type Scope interface {
	// Record writes the facts into the object's status; it never touches conditions.
	Record()
	// Summary is Ready's message when every step succeeded.
	Summary() string
}

// Noter is a Scope with conditions beside those of the steps.
type Noter interface {
	Notes() []Note
}

// Note is a condition that is no step of its own. One without a status is taken away; one without a condition is an event
// only.
type Note struct {
	Condition string
	Status    metav1.ConditionStatus
	Reason    string
	Message   string
	// Event has it reported as an event too, of this type, when it is new or says something else than before; "" does not.
	Event string
}

// Headed is a Scope with something to say in front of Ready's message, whatever that is; Heading is "" for nothing.
type Headed interface {
	Heading() string
}

// Sooner is a Scope that may want to be looked at again before the interval is over though all is well, or nothing but a
// change can help: Again is above 0 then.
type Sooner interface {
	Again() time.Duration
}

// Detailed is a Scope that knows more about a failure than fits into a condition; events carry it.
type Detailed interface {
	Details() string
}

// Notified is a Scope that wants to know when the status that holds what it recorded is written: StatusWritten is called then.
type Notified interface {
	StatusWritten()
}

// Masker is a Scope that knows words which no condition, event or log may hold: Mask hides them in a text.
type Masker interface {
	Mask(text string) string
}

// Step is one act of a Reconcile and the condition that says how it went.
type Step struct {
	condition string
	do        func(context.Context) error
}

// Of makes a step of a function over a scope.
func Of[S Scope](condition string, s S, do func(context.Context, S) error) Step {
	return Step{condition: condition, do: func(ctx context.Context) error { return masked(s, do(ctx, s)) }}
}

// masked returns err with what the scope hides hidden in its text, and then with nothing to unwrap but the verdict.
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

// report is what a scope reports beside the conditions of its steps, masked.
type report struct {
	// heading comes before Ready's message, details after that of its event; "" for nothing.
	heading, details string
	notes            []Note
}

// reportOf returns the report of a scope. v is how the Reconcile ended; only a failure has details.
func reportOf(s Scope, v *verdict) (r report) {
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

// mask hides in a text what the scope wants hidden.
func mask(s Scope, text string) string {
	if d, ok := s.(Masker); ok {
		return d.Mask(text)
	}
	return text
}
