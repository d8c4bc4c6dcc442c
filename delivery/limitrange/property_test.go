package limitrange

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	core "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// some are amounts around each other's boundaries.
var some = map[corev1.ResourceName][]string{
	corev1.ResourceCPU:    {"0", "1m", "33m", "50m", "51m", "100m", "0.1", "1", "1001m", "2"},
	corev1.ResourceMemory: {"0", "500m", "1", "64Mi", "67108865", "256Mi", "1Gi", "1025Mi", "8Gi"},
}

var ratios = []string{"1", "1001m", "1500m", "2", "3", "16", "1024"}

type lottery struct{ *rand.Rand }

func (l lottery) list(chance int) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if l.IntN(100) < chance {
			list[name] = resource.MustParse(some[name][l.IntN(len(some[name]))])
		}
	}
	return list
}

// policies draws some that the operator accepts.
func (l lottery) policies() (all []v1alpha1.Policy) {
	for len(all) < 1+l.IntN(3) {
		of := &v1alpha1.LimitRules{Max: l.list(30), Min: l.list(30), Default: l.list(20), DefaultRequest: l.list(20), Ratio: corev1.ResourceList{}}
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if l.IntN(3) == 0 {
				of.Ratio[name] = resource.MustParse(ratios[l.IntN(len(ratios))])
			}
		}
		if len(Check(of)) == 0 {
			all = append(all, v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", len(all))}, Spec: v1alpha1.PolicySpec{Limits: of}})
		}
	}
	return all
}

// project draws the defaults of a project, none of them a request above its limit.
func (l lottery) project() v1alpha1.ContainerLimits {
	for {
		own := v1alpha1.ContainerLimits{Default: l.list(20), DefaultRequest: l.list(20)}
		if !slices.ContainsFunc(sortedNames(&own.Default), func(name corev1.ResourceName) bool { return exceeds(own.DefaultRequest, name, &own.Default) }) {
			return own
		}
	}
}

func quantity(list *corev1.ResourceList, name corev1.ResourceName) (resource.Quantity, bool) {
	if list == nil {
		return resource.Quantity{}, false
	}
	amount, there := (*list)[name]
	return amount, there
}

// invalid says why the API server refuses an item for containers, as ValidateLimitRange of Kubernetes does; "" if it accepts it.
func invalid(item *core.LimitRangeItemApplyConfiguration, name corev1.ResourceName) string {
	most, hasMost := quantity(item.Max, name)
	least, hasLeast := quantity(item.Min, name)
	limit, hasLimit := quantity(item.Default, name)
	request, hasRequest := quantity(item.DefaultRequest, name)
	ratio, hasRatio := quantity(item.MaxLimitRequestRatio, name)
	for what, wrong := range map[string]bool{
		"min above max":                hasMost && hasLeast && least.Cmp(most) > 0,
		"defaultRequest below min":     hasRequest && hasLeast && request.Cmp(least) < 0,
		"defaultRequest above max":     hasRequest && hasMost && request.Cmp(most) > 0,
		"defaultRequest above default": hasRequest && hasLimit && request.Cmp(limit) > 0,
		"default below min":            hasLimit && hasLeast && limit.Cmp(least) < 0,
		"default above max":            hasLimit && hasMost && limit.Cmp(most) > 0,
		"ratio below 1":                hasRatio && ratio.Cmp(resource.MustParse("1")) < 0,
		"ratio above max/min": hasRatio && hasMost && hasLeast && !least.IsZero() &&
			float64(ratio.MilliValue())/1000 > float64(most.MilliValue())/float64(least.MilliValue()),
	} {
		if wrong {
			return what
		}
	}
	return ""
}

// refused says why a container is refused: by the plugin LimitRanger of Kubernetes (minConstraint, maxConstraint and limitRequestRatioConstraint of
// plugin/pkg/admission/limitranger), or afterwards for a request above its limit; "" if it is admitted.
func refused(item *core.LimitRangeItemApplyConfiguration, written corev1.ResourceRequirements, name corev1.ResourceName) string {
	limit, hasLimit := quantity(&written.Limits, name)
	request, hasRequest := quantity(&written.Requests, name)
	if hasLimit && !hasRequest {
		request, hasRequest = limit, true
	}
	if !hasLimit {
		limit, hasLimit = quantity(item.Default, name)
	}
	if !hasRequest {
		request, hasRequest = quantity(item.DefaultRequest, name)
	}
	most, hasMost := quantity(item.Max, name)
	least, hasLeast := quantity(item.Min, name)
	ratio, hasRatio := quantity(item.MaxLimitRequestRatio, name)
	for what, wrong := range map[string]bool{
		"max":     hasMost && (!hasLimit || limit.Cmp(most) > 0 || hasRequest && request.Cmp(most) > 0),
		"min":     hasLeast && (!hasRequest || request.Cmp(least) < 0 || hasLimit && limit.Cmp(least) < 0),
		"ratio":   hasRatio && (!hasLimit || !hasRequest || limit.IsZero() || request.IsZero() || float64(limit.MilliValue())/float64(request.MilliValue())*1000 > float64(ratio.MilliValue())),
		"request": hasRequest && hasLimit && request.Cmp(limit) > 0,
	} {
		if wrong {
			return what
		}
	}
	return ""
}

func describe(policies []v1alpha1.Policy, project v1alpha1.ContainerLimits) string {
	var b strings.Builder
	for _, p := range policies {
		fmt.Fprintf(&b, "%s: max %v min %v default %v request %v ratio %v\n", p.Name, text(p.Spec.Limits.Max), text(p.Spec.Limits.Min), text(p.Spec.Limits.Default), text(p.Spec.Limits.DefaultRequest), text(p.Spec.Limits.Ratio))
	}
	return b.String() + fmt.Sprintf("project: default %v request %v\n", text(project.Default), text(project.DefaultRequest))
}

func text(list corev1.ResourceList) string {
	var all []string
	for _, name := range sortedNames(&list) {
		amount := list[name]
		all = append(all, string(name)+"="+amount.String())
	}
	return strings.Join(all, ",")
}

// TestAnyPoliciesMakeALimitRangeThatTheAPIServerAccepts, in any order of the policies the same, and it admits a container that names nothing.
func TestAnyPoliciesMakeALimitRangeThatTheAPIServerAccepts(t *testing.T) {
	l := lottery{rand.New(rand.NewPCG(1, 1))}
	for range 4000 {
		all, own := l.policies(), l.project()
		limits := Of(all, own)
		for name := range some {
			if why := invalid(limits.Items()[0], name); why != "" {
				t.Fatalf("%s of %s:\n%s%s", why, name, describe(all, own), flat(t, limits.Items()[0]))
			}
		}
		shuffled := slices.Clone(all)
		l.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if diff := cmp.Diff(flat(t, limits.Items()[0]), flat(t, Of(shuffled, own).Items()[0])); diff != "" {
			t.Fatalf("another order of\n%smakes other limits:\n%s", describe(all, own), diff)
		}
		if all := limits.Container("web", map[string]any{}); len(all) > 0 && !nothing(limits) {
			t.Fatalf("a container without resources is refused: %v\n%s%s", all, describe(shuffled, own), flat(t, limits.Items()[0]))
		}
	}
}

// nothing reports whether a default is 0 where there is a ratio: then no container without resources is within it.
func nothing(l *Limits) bool {
	for _, name := range sortedNames(l.container.MaxLimitRequestRatio) {
		limit, _ := quantity(l.container.Default, name)
		request, _ := quantity(l.container.DefaultRequest, name)
		if limit.IsZero() || request.IsZero() {
			return true
		}
	}
	return false
}

// TestAContainerIsJudgedAsTheAPIServerDoes: what has a breach is refused there, and nothing else, except a container whose author wrote a request above the limit.
func TestAContainerIsJudgedAsTheAPIServerDoes(t *testing.T) {
	l := lottery{rand.New(rand.NewPCG(2, 2))}
	seen := map[string]int{}
	for range 4000 {
		all, own := l.policies(), l.project()
		limits, written := Of(all, own), corev1.ResourceRequirements{Requests: l.list(60), Limits: l.list(60)}
		breaches := limits.Container("web", written)
		for name := range some {
			if exceeds(written.Requests, name, &written.Limits) {
				continue
			}
			about := slices.DeleteFunc(slices.Clone(breaches), func(b Breach) bool { return !strings.Contains(b.Why, "s."+string(name)+" ") })
			why := refused(limits.Items()[0], written, name)
			if seen[why]++; (why != "") != (len(about) > 0) {
				t.Fatalf("%s is refused for %q, and judged %v\nlimits %s requests %s\n%s%s", name, why, about, text(written.Limits), text(written.Requests), describe(all, own), flat(t, limits.Items()[0]))
			}
		}
	}
	for _, why := range []string{"", "max", "min", "ratio", "request"} {
		if seen[why] < 50 {
			t.Errorf("only %d containers are refused for %q", seen[why], why)
		}
	}
}

// TestAnotherPolicyAllowsNoMore: a container with all its resources that breaks nothing under several policies breaks nothing under one of them, unless they contradict each other.
func TestAnotherPolicyAllowsNoMore(t *testing.T) {
	l := lottery{rand.New(rand.NewPCG(3, 3))}
	allowed := 0
	for range 4000 {
		all, written := l.policies(), corev1.ResourceRequirements{Requests: l.list(100), Limits: l.list(100)}
		limits := Of(all, v1alpha1.ContainerLimits{})
		if len(limits.Conflicts) > 0 || len(limits.Container("web", written)) > 0 {
			continue
		}
		for _, one := range all {
			allowed++
			if breaches := Of([]v1alpha1.Policy{one}, v1alpha1.ContainerLimits{}).Container("web", written); len(breaches) > 0 {
				t.Fatalf("limits %s requests %s are allowed under all, and not under %s: %v\n%s", text(written.Limits), text(written.Requests), one.Name, breaches, describe(all, v1alpha1.ContainerLimits{}))
			}
		}
	}
	if allowed < 200 {
		t.Errorf("only %d containers are allowed", allowed)
	}
}
