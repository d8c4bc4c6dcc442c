package namespace

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Terms are the limits for a namespace and the objects in it.
type Terms struct {
	// PodSecurity is the Pod Security level, and PodSecurityVersion that of its checks. Default: that of the cluster.
	PodSecurity, PodSecurityVersion string
	// Warned and Recorded are the levels of which Pod Security only warns, and which it only records. Default: the level.
	Warned, Recorded v1alpha1.PodSecurityRules
	// Limits are annotations for the chart's admission policies, as LimitsOf returns them.
	Limits map[string]string
	// Guardrails: the admission policies enforce the Guardrails in the namespace.
	Guardrails bool
	// Frozen: the admission policies let only administrators write in the namespace.
	Frozen bool
	// Stopped: the admission policies refuse pods and Jobs in the namespace.
	Stopped bool
}

// usualGracePeriod is the longest termination grace period of a pod if administrators set nothing else; the policy kubeop-grace-period has
// the same default.
const usualGracePeriod = time.Hour

// MaxGracePeriod is the longest termination grace period of the tenant's pods.
func MaxGracePeriod(tenant *v1alpha1.Tenant) time.Duration {
	if most := tenant.Spec.MaxTerminationGracePeriod; most != nil {
		return most.Duration
	}
	return usualGracePeriod
}

// usualObjectSize is the largest size of a ConfigMap or Secret that is not written through Git, if administrators set nothing else; the
// policy kubeop-object-size has the same default.
const usualObjectSize = 32 << 10

// MaxObjectSize is the largest size, in bytes, of a ConfigMap or Secret of the tenant that is not written through Git.
func MaxObjectSize(tenant *v1alpha1.Tenant) int64 {
	if most := tenant.Spec.MaxObjectSize; most != nil {
		return most.Value()
	}
	return usualObjectSize
}

// LimitsOf returns the limits that administrators set on a tenant as annotations, from which the chart's admission policies read them.
// Default values are left out, because the policies have the same defaults. externalNames and
// externalIPs are what the Policies that hold in the namespace list. Their annotations are always among the limits, "" for none: server-side apply
// does not remove an annotation that kubeop never wrote, and one that somebody else wrote would open what no Policy lists.
func LimitsOf(tenant *v1alpha1.Tenant, externalNames, externalIPs []string) map[string]string {
	limits, spec := map[string]string{}, &tenant.Spec
	if spec.MaxObjectSize != nil {
		limits[v1alpha1.MaxObjectSizeAnnotation] = strconv.FormatInt(spec.MaxObjectSize.Value(), 10)
	}
	if spec.MaxTerminationGracePeriod != nil {
		limits[v1alpha1.MaxGracePeriodAnnotation] = strconv.FormatInt(int64(spec.MaxTerminationGracePeriod.Seconds()), 10)
	}
	for annotation, names := range map[string][]string{
		v1alpha1.PriorityClassesAnnotation: spec.PriorityClasses, v1alpha1.TaintsAnnotation: spec.Taints, v1alpha1.IngressAnnotationsAnnotation: spec.IngressAnnotations,
		v1alpha1.CSIDriversAnnotation: spec.CSIDrivers, v1alpha1.EndpointsWritersAnnotation: spec.EndpointsWriters,
	} {
		if len(names) > 0 {
			limits[annotation] = listed(names)
		}
	}
	limits[v1alpha1.ExternalNamesAnnotation], limits[v1alpha1.ExternalIPsAnnotation] = listed(externalNames), listed(externalIPs)
	return limits
}

// listed writes names as an annotation that the admission policies split; "" for none.
func listed(names []string) string { return strings.Join(slices.Sorted(slices.Values(names)), ",") }
