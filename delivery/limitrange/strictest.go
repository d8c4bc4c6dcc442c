package limitrange

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// The defaults of containers for which neither a policy nor the project has any.
var (
	usualLimits = corev1.ResourceList{
		corev1.ResourceMemory:           resource.MustParse("256Mi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("10Gi"),
	}
	usualRequests = corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("50m"),
		corev1.ResourceMemory:           resource.MustParse("64Mi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("64Mi"),
	}
)

// stated are amounts, each with the policy that states it.
type stated map[corev1.ResourceName]statement

type statement struct {
	amount resource.Quantity
	policy string
}

// of returns an amount; nil if nobody states it.
func (s stated) of(name corev1.ResourceName) *resource.Quantity {
	if one, there := s[name]; there {
		return &one.amount
	}
	return nil
}

func (s stated) amounts() corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, one := range s {
		list[name] = one.amount
	}
	return list
}

// state takes an amount if it is stricter: below the one that is there, or above it, by the sign.
func (s stated) state(list corev1.ResourceList, policy string, sign int) {
	for name, amount := range list {
		if !limited(name) {
			continue
		}
		if is, there := s[name]; !there || sign*amount.Cmp(is.amount) > 0 {
			s[name] = statement{amount, policy}
		}
	}
}

// limited reports whether policies limit a resource. The default of any other, such as a device, is its maximum, so every container would get some.
func limited(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage || name == corev1.ResourceStorage
}

// rules are the strictest amounts of several policies.
type rules struct {
	most, least, claimMost, claimLeast stated
	ratio, usually                     stated
	requests                           corev1.ResourceList
}

func strictest(policies []v1alpha1.Policy) *rules {
	s := &rules{most: stated{}, least: stated{}, claimMost: stated{}, claimLeast: stated{}, ratio: stated{}, usually: stated{}}
	requests := stated{}
	for i := range policies {
		of, name := policies[i].Spec.Limits, policies[i].Name
		if of == nil {
			continue
		}
		s.most.state(of.Max, name, -1)
		s.least.state(of.Min, name, 1)
		s.usually.state(of.Default, name, -1)
		requests.state(of.DefaultRequest, name, -1)
		s.ratio.state(of.Ratio, name, -1)
		if claims := of.Claims; claims != nil {
			s.claimMost.state(sizeOf(claims.Max), name, -1)
			s.claimLeast.state(sizeOf(claims.Min), name, 1)
		}
	}
	s.requests = requests.amounts()
	return s
}

func sizeOf(size *resource.Quantity) corev1.ResourceList {
	if size == nil {
		return nil
	}
	return corev1.ResourceList{corev1.ResourceStorage: *size}
}

// bounds are the rules about one resource; nil for what nobody states.
type bounds struct {
	most, least, ratio, usually, request *resource.Quantity
	mostOf, leastOf                      string
}

// of returns the rules about a resource. conflict says how they contradict each other; "" if they do not.
func (s *rules) of(name corev1.ResourceName) (b bounds, conflict string) {
	b = bounds{
		most: s.most.of(name), least: s.least.of(name), ratio: s.ratio.of(name), usually: s.usually.of(name), request: in(s.requests, name),
		mostOf: s.most[name].policy, leastOf: s.least[name].policy,
	}
	if b.most != nil && b.least != nil && b.least.Cmp(*b.most) > 0 {
		conflict = contradiction("min", s.least, "max", s.most, name)
		b.least = b.most
	}
	return b, conflict
}

// contradiction says that a minimum is above a maximum.
func contradiction(low string, least stated, high string, most stated, name corev1.ResourceName) string {
	return fmt.Sprintf("spec.limits.%s of policies/%s.yaml has %s %s, and spec.limits.%s of policies/%s.yaml has %s, which holds",
		low, least[name].policy, name, least.of(name).String(), high, most[name].policy, most.of(name).String())
}

// fill sets the defaults that the project does not have. The API server would set some of them itself, and take the maximum for a limit.
func (b bounds) fill(name corev1.ResourceName, limit *resource.Quantity, limited *bool, request *resource.Quantity, requested *bool) {
	take := func(to *resource.Quantity, there *bool, from ...*resource.Quantity) {
		for _, amount := range from {
			if !*there && amount != nil {
				*to, *there = *amount, true
			}
		}
	}
	take(request, requested, b.request, in(usualRequests, name), b.least)
	take(limit, limited, b.usually, in(usualLimits, name))
	if !*limited && b.ratio != nil && *requested { // A container without a limit has no ratio, and is refused.
		times := scaled(b.within(*request), b.ratio.MilliValue(), 1000, name)
		*limit, *limited = times, true
	}
	take(limit, limited, b.most)
}

// within brings an amount into the limits.
func (b bounds) within(amount resource.Quantity) resource.Quantity {
	if b.least != nil {
		amount = larger(amount, *b.least)
	}
	if b.most != nil && amount.Cmp(*b.most) > 0 {
		return *b.most
	}
	return amount
}

// atRatio is the smallest request that a limit can have.
func (b bounds) atRatio(limit resource.Quantity, name corev1.ResourceName) resource.Quantity {
	return scaled(limit, 1000, b.ratio.MilliValue(), name)
}

// implied reports whether no container between the minimum and the maximum exceeds the ratio. The API server refuses such a ratio.
func (b bounds) implied() bool {
	if b.most == nil || b.least == nil {
		return false
	}
	return b.ratio.AsApproximateFloat64() >= b.most.AsApproximateFloat64()/b.least.AsApproximateFloat64() // Never above a minimum of 0.
}

// scaled multiplies an amount by times/by, rounded up: processors to thousandths, and bytes to whole ones.
func scaled(amount resource.Quantity, times, by int64, name corev1.ResourceName) resource.Quantity {
	if name == corev1.ResourceCPU {
		return *resource.NewMilliQuantity(ceiling(amount.MilliValue(), times, by), resource.DecimalSI)
	}
	return *resource.NewQuantity(ceiling(amount.Value(), times, by), resource.BinarySI)
}

// ceiling is n*times/by, rounded up.
func ceiling(n, times, by int64) int64 {
	whole, rest := n/by, n%by // n*times may not fit.
	return whole*times + (rest*times+by-1)/by
}

func larger(a, b resource.Quantity) resource.Quantity {
	if a.Cmp(b) < 0 {
		return b
	}
	return a
}

func in(list corev1.ResourceList, name corev1.ResourceName) *resource.Quantity {
	if amount, there := list[name]; there {
		return &amount
	}
	return nil
}

func deref(amount *resource.Quantity) resource.Quantity {
	if amount == nil {
		return resource.Quantity{}
	}
	return *amount
}
