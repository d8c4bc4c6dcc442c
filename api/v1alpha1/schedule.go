package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pace defines how often an object is reconciled.
type Pace struct {
	// Interval between two reconciliations when no event reports a change. Default 10m, with a jitter of 5%.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="interval must be at least 1s"
	// +kubebuilder:default="10m"
	Interval metav1.Duration `json:"interval,omitzero"`

	// RetryInterval is the pause after a failure. Default: 1s, doubled after each failure up to 5m.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="retryInterval must be at least 1s"
	RetryInterval *metav1.Duration `json:"retryInterval,omitempty"`
}

// Schedule defines how often an object is reconciled, and whether it is suspended.
type Schedule struct {
	Pace `json:",inline"`

	// Suspend stops all reconciliation of the object. If it is deleted while suspended, the objects it created are kept.
	Suspend bool `json:"suspend,omitempty"`
}

// Polling defines how often a Git repository is polled, and whether it is suspended.
type Polling struct {
	// Interval between two polls. Default: a minute, and 10m after a call of the push hook, for a day.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="interval must be at least 1s"
	Interval metav1.Duration `json:"interval,omitzero"`

	// RetryInterval is the pause after a failure. Default: 1s, doubled after each failure up to 5m.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="retryInterval must be at least 1s"
	RetryInterval *metav1.Duration `json:"retryInterval,omitempty"`

	// Suspend stops all reconciliation of the repository.
	Suspend bool `json:"suspend,omitempty"`
}

// FreezeWindow is a repeated time in which nothing new of a tenant is delivered: commits of its own repository wait, and the sources of its
// apps stay at their revision. Corrections of drift and checks of health go on.
type FreezeWindow struct {
	// Name of the window, for messages about it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// Start says when a window begins, in the format of crontab(5): minute, hour, day of the month, month, day of the week, such as
	// "0 18 * * FRI".
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=100
	Start string `json:"start"`
	// Duration of a window, from 1m to 2160h (90 days). It is elapsed time, whether clocks change or not.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('2160h')",message="duration must be between 1m and 2160h (90 days)"
	Duration metav1.Duration `json:"duration"`
	// TimeZone in which start is read, by its name in the IANA time zone database, such as Europe/Berlin. Default UTC.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:default=UTC
	TimeZone string `json:"timeZone,omitempty"`
	// Message says why, to the people whose commits wait.
	// +kubebuilder:validation:MaxLength=200
	Message string `json:"message,omitempty"`
}

// SuspendedUntil returns the time until which SuspendAnnotation suspends an object; the zero time if it does not. Only Apps and Repositories
// can be suspended so, because no owner of a tenant may stop the decisions of administrators about a Tenant or Project. A value that is no
// time suspends nothing; the chart's policy kubeop-requests refuses it.
func SuspendedUntil(o metav1.Object) time.Time {
	switch o.(type) {
	case *App, *Repository:
		until, _ := time.Parse(time.RFC3339, o.GetAnnotations()[SuspendAnnotation]) // The zero time for what is no time.
		return until
	}
	return time.Time{}
}

// Every returns the interval, or the default if the API server did not set one.
func (s *Pace) Every() time.Duration { return orDefault(s.Interval, 10*time.Minute) }

// Within returns the timeout, or the default if the API server did not set one.
func (s *RepositorySpec) Within() time.Duration { return orDefault(s.Timeout, 5*time.Minute) }

// Within returns the timeout, or the default if the API server did not set one.
func (s *AppSpec) Within() time.Duration { return orDefault(s.Timeout, 5*time.Minute) }

func orDefault(set metav1.Duration, otherwise time.Duration) time.Duration {
	if set.Duration <= 0 {
		return otherwise
	}
	return set.Duration
}
