package release

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/release/cluster"
)

// TestTheLongestTimeoutDecidesWhenALockIsAbandoned: a revision counts as abandoned after the longest timeout that one of the actions has,
// so that no action is taken for dead while it still may run.
func TestTheLongestTimeoutDecidesWhenALockIsAbandoned(t *testing.T) {
	hour := &metav1.Duration{Duration: time.Hour}
	tests := map[string]struct {
		timeout time.Duration
		set     func(*v1alpha1.HelmActions)
		want    time.Duration
	}{
		"nothing is set":                    {0, func(*v1alpha1.HelmActions) {}, cluster.DefaultTimeout},
		"that of the app":                   {time.Minute, func(*v1alpha1.HelmActions) {}, time.Minute},
		"the install's is longer":           {time.Minute, func(a *v1alpha1.HelmActions) { a.Install.Timeout = hour }, time.Hour},
		"the upgrade's is longer":           {time.Minute, func(a *v1alpha1.HelmActions) { a.Upgrade.Timeout = hour }, time.Hour},
		"the uninstall's is longer":         {time.Minute, func(a *v1alpha1.HelmActions) { a.Uninstall.Timeout = hour }, time.Hour},
		"the test's is longer":              {time.Minute, func(a *v1alpha1.HelmActions) { a.Test.Timeout = hour }, time.Hour},
		"the app's is longer than an own's": {2 * time.Hour, func(a *v1alpha1.HelmActions) { a.Install.Timeout = hour }, 2 * time.Hour},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := &Request{Timeout: test.timeout}
			test.set(&r.Actions)
			if got := r.longest(); got != test.want {
				t.Errorf("the longest is %s, want %s", got, test.want)
			}
		})
	}
}
