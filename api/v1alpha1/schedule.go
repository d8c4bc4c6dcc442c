package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Schedule is when and how long an object is worked on.
type Schedule struct {
	// Interval between two looks at the source and the cluster when nothing reports a change. Default 10m, spread by 5%.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="interval must be at least 1s"
	// +kubebuilder:default="10m"
	// +optional
	Interval metav1.Duration `json:"interval,omitzero"`

	// RetryInterval is the pause after a failure. Default: 1s, doubling up to 5m.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="retryInterval must be at least 1s"
	// +optional
	RetryInterval *metav1.Duration `json:"retryInterval,omitempty"`

	// Timeout of one fetch, one apply or one Helm action, and the time an app has to become healthy. Default 5m.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="timeout must be at least 1s"
	// +kubebuilder:default="5m"
	// +optional
	Timeout metav1.Duration `json:"timeout,omitzero"`

	// Suspend stops all work on the object. When it is deleted while suspended, what it made stays.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// Every returns the interval, or its default where the API server did not set it.
func (s *Schedule) Every() time.Duration {
	if s.Interval.Duration <= 0 {
		return 10 * time.Minute
	}
	return s.Interval.Duration
}

// Within returns the timeout, or its default where the API server did not set it.
func (s *Schedule) Within() time.Duration {
	if s.Timeout.Duration <= 0 {
		return 5 * time.Minute
	}
	return s.Timeout.Duration
}
