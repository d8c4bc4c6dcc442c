// Package cause classifies an error of a release as the environment's, so that the same input may succeed later, or the input's.
package cause

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/delivery/denial"
	"github.com/kubeop/kubeop/delivery/release/fault"
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
	inputErrors       = []error{fault.ErrRender, fault.ErrTaken}
	environmentErrors = []error{fault.ErrLocked, fault.ErrDraining, fault.ErrSuperseded, io.ErrUnexpectedEOF, io.EOF, context.Canceled, context.DeadlineExceeded}
)

// classifyOne returns the class of one error of a tree.
func classifyOne(err error) class {
	switch e := err.(type) { //nolint:errorlint // classify walks the tree
	case apierrors.APIStatus:
		return classifyStatus(err, e.Status())
	case *fault.NotAllowed:
		return input
	case *fault.Terminating, *fault.ClaimsInTheWay:
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

func classifyStatus(err error, s metav1.Status) class {
	switch s.Reason {
	case metav1.StatusReasonTimeout, metav1.StatusReasonServerTimeout, metav1.StatusReasonTooManyRequests,
		metav1.StatusReasonInternalError, metav1.StatusReasonServiceUnavailable, metav1.StatusReasonConflict,
		metav1.StatusReasonExpired, metav1.StatusReasonUnauthorized:
		return environment
	case metav1.StatusReasonNotFound:
		// The namespace, the kind or the object may be created or deleted by others at any time.
		return environment
	case metav1.StatusReasonInvalid:
		if denial.Unjudged(err) {
			return environment
		}
		return input
	case metav1.StatusReasonForbidden:
		if namespaceEnds(s) || denial.ByQuota(err) || denial.ByNewQuota(err) {
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
