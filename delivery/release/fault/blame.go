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

// blame is whose an error is.
type blame int

const (
	// byNobody: the error is text.
	byNobody blame = iota
	// byWorld: the same input may do tomorrow.
	byWorld
	// byInput: only another input helps, or another try at it may as well fail.
	byInput
)

// Worldly reports that an error says nothing about the input of an action: the API server was away, too busy or on its
// way to something. Where several errors are joined, one of the input's is enough to make it false.
func Worldly(err error) bool { return blamed(err) == byWorld }

func blamed(err error) blame {
	if err == nil {
		return byNobody
	}
	if b := ownBlame(err); b != byNobody {
		return b
	}
	switch inner := err.(type) { //nolint:errorlint // this walks the tree itself
	case interface{ Unwrap() error }:
		return blamed(inner.Unwrap())
	case interface{ Unwrap() []error }:
		all := byNobody
		for _, e := range inner.Unwrap() {
			all = max(all, blamed(e))
		}
		return all
	}
	return byNobody
}

// Errors that are what they are whatever is in them.
var (
	ofInput = []error{ErrRender, ErrTaken}
	ofWorld = []error{ErrLocked, ErrDraining, ErrSuperseded, io.ErrUnexpectedEOF, io.EOF, context.Canceled, context.DeadlineExceeded}
)

// ownBlame looks at one error of a tree.
func ownBlame(err error) blame {
	switch e := err.(type) { //nolint:errorlint // blamed walks the tree
	case apierrors.APIStatus:
		return statusBlame(e.Status())
	case *NotAllowed:
		return byInput
	case *Terminating, *ClaimsInTheWay:
		return byWorld
	case *url.Error, net.Error, *net.OpError, *net.DNSError, *meta.NoKindMatchError, *meta.NoResourceMatchError:
		return byWorld
	}
	switch {
	case slices.Contains(ofInput, err):
		return byInput
	case slices.Contains(ofWorld, err):
		return byWorld
	}
	return byNobody
}

func statusBlame(s metav1.Status) blame {
	switch s.Reason {
	case metav1.StatusReasonTimeout, metav1.StatusReasonServerTimeout, metav1.StatusReasonTooManyRequests,
		metav1.StatusReasonInternalError, metav1.StatusReasonServiceUnavailable, metav1.StatusReasonConflict,
		metav1.StatusReasonExpired, metav1.StatusReasonUnauthorized:
		return byWorld
	case metav1.StatusReasonNotFound:
		// The namespace, the kind, or the object between two requests: each comes and goes by others' doing.
		return byWorld
	case metav1.StatusReasonForbidden:
		if namespaceEnds(s) || overQuota(s) {
			return byWorld
		}
		return byInput
	case metav1.StatusReasonUnknown:
		// A proxy between here and the API server answers without a reason.
		if s.Code >= http.StatusInternalServerError || s.Code == http.StatusTooManyRequests {
			return byWorld
		}
	}
	return byInput
}

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

// overQuota knows the API server's refusal by its text; it gives quotas no cause of their own.
func overQuota(s metav1.Status) bool {
	return strings.Contains(s.Message, "exceeded quota:") || strings.Contains(s.Message, "status unknown for quota:")
}

// Faults are the errors of one action's requests, with their types: Helm hands on no more than their text.
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

// Witness returns next, recording failed requests. Helm drops the errors of a template's lookups, so they are known from here only.
func (f *Faults) Witness(next http.RoundTripper) http.RoundTripper { return witness{next, f.Note} }

// witness is the transport of Witness.
type witness struct {
	next http.RoundTripper
	note func(error) error
}

// RoundTrip is the inner one's.
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
