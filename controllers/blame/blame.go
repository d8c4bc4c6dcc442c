// Package blame separates failures that a tenant can end from those that need the operators of kubeop, for the log: the tenant's are in the
// status of their object and an event, and the log has them as information.
package blame

import (
	"errors"
	"net/url"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// ofOperator are the reasons of failures that may be kubeop's own: those that no other reason describes, and rights that it lacks.
var ofOperator = map[string]bool{v1alpha1.FailedReason: true, v1alpha1.AccessDeniedReason: true}

// ofSource are the reasons of failures at servers that the tenant named.
var ofSource = map[string]bool{
	v1alpha1.FetchFailedReason: true, v1alpha1.AuthenticationFailedReason: true, v1alpha1.SourceNotFoundReason: true,
	v1alpha1.InvalidSourceReason: true, v1alpha1.VerificationFailedReason: true,
}

// tenants is a failure that the tenant can end.
type tenants struct{ error }

// Unwrap returns the failure itself.
func (t tenants) Unwrap() error { return t.error }

// Judge returns the failure of a tenant's object so that Logger knows it, if the tenant can end it. tenant is the object's, and reason that
// of its condition. Any other failure is returned as it is.
func Judge(tenant, reason string, err error) error {
	if err == nil || tenant == "" || tenant == v1alpha1.PlatformTenant || ofOperator[reason] || (!ofSource[reason] && away(err)) {
		return err
	}
	return tenants{err}
}

// away reports whether the API server did not answer, or failed itself.
func away(err error) bool {
	var unreached *url.Error
	var status apierrors.APIStatus
	return errors.As(err, &unreached) || errors.As(err, &status) && status.Status().Code >= 500 || apierrors.IsTooManyRequests(err)
}

// Logger returns a logger that logs failures of tenants as information.
func Logger(log logr.Logger) logr.Logger { return log.WithSink(sink{log.GetSink()}) }

type sink struct{ logr.LogSink }

// Error implements logr.LogSink.
func (s sink) Error(err error, message string, values ...any) {
	if !errors.As(err, new(tenants)) {
		s.LogSink.Error(err, message, values...)
	} else if s.Enabled(0) {
		s.Info(0, "An object of a tenant failed, as its status says", append(values, "failure", err.Error())...)
	}
}

// WithValues implements logr.LogSink.
func (s sink) WithValues(values ...any) logr.LogSink { return sink{s.LogSink.WithValues(values...)} }

// WithName implements logr.LogSink.
func (s sink) WithName(name string) logr.LogSink { return sink{s.LogSink.WithName(name)} }
