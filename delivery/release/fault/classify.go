package fault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// class says what caused an error. If errors are joined, the highest class counts.
type class int

const (
	// unknown: the error has only a text.
	unknown class = iota
	// environment: the same input may succeed later.
	environment
	// input: only another input helps, because a retry is likely to fail again.
	input
)

// IsEnvironment reports whether the environment caused an error, and not the input of an action: the API server was down, too busy or in
// transition. If several errors are joined and the input caused one of them, it returns false.
func IsEnvironment(err error) bool { return classify(err) == environment }

func classify(err error) class {
	if c := classifyOne(err); c != unknown {
		return c
	}
	switch inner := err.(type) { //nolint:errorlint // this walks the tree itself
	case interface{ Unwrap() error }:
		return classify(inner.Unwrap())
	case interface{ Unwrap() []error }:
		all := unknown
		for _, e := range inner.Unwrap() {
			all = max(all, classify(e))
		}
		return all
	}
	return unknown
}

// The class of these errors does not depend on the errors that they wrap.
var (
	inputErrors       = []error{ErrRender, ErrTaken}
	environmentErrors = []error{ErrLocked, ErrDraining, ErrSuperseded, io.ErrUnexpectedEOF, io.EOF, context.Canceled, context.DeadlineExceeded}
)

// classifyOne returns the class of one error of a tree.
func classifyOne(err error) class {
	switch e := err.(type) { //nolint:errorlint // classify walks the tree
	case apierrors.APIStatus:
		return classifyStatus(e.Status())
	case *NotAllowed:
		return input
	case *Terminating, *ClaimsInTheWay:
		return environment
	case *url.Error, net.Error, *net.OpError, *net.DNSError, *meta.NoKindMatchError, *meta.NoResourceMatchError:
		return environment
	}
	switch {
	case slices.Contains(inputErrors, err):
		return input
	case slices.Contains(environmentErrors, err):
		return environment
	}
	return unknown
}

func classifyStatus(s metav1.Status) class {
	switch s.Reason {
	case metav1.StatusReasonTimeout, metav1.StatusReasonServerTimeout, metav1.StatusReasonTooManyRequests,
		metav1.StatusReasonInternalError, metav1.StatusReasonServiceUnavailable, metav1.StatusReasonConflict,
		metav1.StatusReasonExpired, metav1.StatusReasonUnauthorized:
		return environment
	case metav1.StatusReasonNotFound:
		// The namespace, the kind or the object may be created or deleted by others at any time.
		return environment
	case metav1.StatusReasonInvalid:
		if strings.Contains(s.Message, unjudged) {
			return environment
		}
		return input
	case metav1.StatusReasonForbidden:
		if namespaceEnds(s) || strings.Contains(s.Message, overQuota) || strings.Contains(s.Message, uncounted) {
			return environment
		}
		return input
	case metav1.StatusReasonUnknown:
		// A proxy in front of the API server may answer without a reason.
		if s.Code >= http.StatusInternalServerError || s.Code == http.StatusTooManyRequests {
			return environment
		}
	}
	return input
}

// The messages that package denial knows, too. Importing it here would make the longest chain of imports one longer; the test of this package compares the two.
const (
	unjudged  = "denied request: failed to configure "
	overQuota = "exceeded quota:"
	uncounted = "status unknown for quota:"
)

func namespaceEnds(s metav1.Status) bool {
	if s.Details == nil {
		return false
	}
	for _, cause := range s.Details.Causes {
		if cause.Type == corev1.NamespaceTerminatingCause {
			return true
		}
	}
	return false
}

// Faults collects the errors of one action's requests with their types, because Helm returns only their text.
type Faults struct {
	mu  sync.Mutex
	all []error
}

// Note keeps an error and returns it.
func (f *Faults) Note(err error) error {
	if err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.all = append(f.all, err)
	}
	return err
}

// All returns the errors of the requests so far.
func (f *Faults) All() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.all...)
}

// Witness returns a RoundTripper that sends requests to next and records failed ones. Helm drops the errors of lookups in templates, so
// this is the only record of them.
func (f *Faults) Witness(next http.RoundTripper) http.RoundTripper { return witness{next, f.Note} }

// witness is the transport of Witness.
type witness struct {
	next http.RoundTripper
	note func(error) error
}

// RoundTrip sends a request and records its failure.
func (w witness) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := w.next.RoundTrip(r)
	switch {
	case err != nil:
		_ = w.note(fmt.Errorf("looking up %s: %w", r.URL.Path, err))
	case answer.StatusCode >= http.StatusInternalServerError, answer.StatusCode == http.StatusTooManyRequests:
		_ = w.note(apierrors.NewGenericServerResponse(answer.StatusCode, r.Method, schema.GroupResource{}, r.URL.Path, "", 0, true))
	}
	return answer, err
}
