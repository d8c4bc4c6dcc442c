package project

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	core "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/kubeop/kubeop/delivery/isolation"
)

// guardName is the name of the project's quota and limits.
const guardName = "kubeop"

// defaultQuota holds where the project says nothing else. Load balancers and node ports are taken from what tenants
// share, so nobody has any by default.
var defaultQuota = corev1.ResourceList{
	corev1.ResourceRequestsCPU:           resource.MustParse("4"),
	corev1.ResourceRequestsMemory:        resource.MustParse("8Gi"),
	corev1.ResourceLimitsMemory:          resource.MustParse("16Gi"),
	corev1.ResourcePods:                  resource.MustParse("50"),
	corev1.ResourceServicesLoadBalancers: resource.MustParse("0"),
	corev1.ResourceServicesNodePorts:     resource.MustParse("0"),
}

var (
	defaultLimits   = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")}
	defaultRequests = corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("50m"),
		corev1.ResourceMemory: resource.MustParse("64Mi"),
	}
)

// guard applies the quota, the limits and the network isolation.
func (r *Reconciler) guard(ctx context.Context, s *scope) error {
	spec := s.project.Spec
	quota := core.ResourceQuota(guardName, s.namespace).WithLabels(s.labels()).
		WithSpec(core.ResourceQuotaSpec().WithHard(over(defaultQuota, spec.Quota)))
	limits := core.LimitRange(guardName, s.namespace).WithLabels(s.labels()).
		WithSpec(core.LimitRangeSpec().WithLimits(core.LimitRangeItem().WithType(corev1.LimitTypeContainer).
			WithDefault(over(defaultLimits, spec.Limits.Default)).
			WithDefaultRequest(over(defaultRequests, spec.Limits.DefaultRequest))))
	objects := []any{quota, limits}
	rules := isolation.Rules{IngressNamespace: r.IngressNamespace, Egress: s.tenant.Spec.Egress}
	for _, policy := range isolation.Policies(s.namespace, s.labels(), rules) {
		objects = append(objects, policy)
	}
	return s.made.Apply(ctx, objects...)
}

// over returns the defaults with what was set laid over them.
func over(defaults, set corev1.ResourceList) corev1.ResourceList {
	merged := maps.Clone(defaults)
	maps.Copy(merged, set)
	return merged
}
