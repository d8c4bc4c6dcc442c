package namespace

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Terms are what a namespace, and what is in it, is held to.
type Terms struct {
	// PodSecurity is the Pod Security level.
	PodSecurity string
	// Limits are annotations for the chart's admission policies, as LimitsOf returns them.
	Limits map[string]string
}

// usualGracePeriod is how long a pod may take to end where administrators set nothing else; the policy kubeop-grace-period has it too.
const usualGracePeriod = time.Hour

// MaxGracePeriod is how long a pod of the tenant may take to end.
func MaxGracePeriod(tenant *v1alpha1.Tenant) time.Duration {
	if most := tenant.Spec.MaxTerminationGracePeriod; most != nil {
		return most.Duration
	}
	return usualGracePeriod
}

// usualObjectSize is how large a ConfigMap or Secret may be that is written past Git where administrators set nothing else; the policy
// kubeop-object-size has it too.
const usualObjectSize = 32 << 10

// MaxObjectSize is how large a ConfigMap or Secret of the tenant may be that is written past Git, in bytes.
func MaxObjectSize(tenant *v1alpha1.Tenant) int64 {
	if most := tenant.Spec.MaxObjectSize; most != nil {
		return most.Value()
	}
	return usualObjectSize
}

// LimitsOf returns as annotations what administrators set on a tenant and the chart's admission policies hold its objects to. What
// has its default is left out: the policies know that.
func LimitsOf(tenant *v1alpha1.Tenant) map[string]string {
	limits, spec := map[string]string{}, &tenant.Spec
	if spec.MaxObjectSize != nil {
		limits[v1alpha1.MaxObjectSizeAnnotation] = strconv.FormatInt(spec.MaxObjectSize.Value(), 10)
	}
	if spec.MaxTerminationGracePeriod != nil {
		limits[v1alpha1.MaxGracePeriodAnnotation] = strconv.FormatInt(int64(spec.MaxTerminationGracePeriod.Seconds()), 10)
	}
	if len(spec.PriorityClasses) > 0 {
		limits[v1alpha1.PriorityClassesAnnotation] = strings.Join(slices.Sorted(slices.Values(spec.PriorityClasses)), ",")
	}
	return limits
}
