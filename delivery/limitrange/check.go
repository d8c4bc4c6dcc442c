package limitrange

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Fault is something wrong with the limits of a policy.
type Fault struct {
	// Field in the spec of the Policy, such as "limits.max[cpu]".
	Field, Why string
}

// Check returns what the schema cannot check of the limits of a policy: negative amounts, ratios below 1, and amounts that contradict each other.
func Check(of *v1alpha1.LimitRules) []Fault {
	var faults []Fault
	lists := map[string]corev1.ResourceList{"max": of.Max, "min": of.Min, "default": of.Default, "defaultRequest": of.DefaultRequest, "ratio": of.Ratio}
	if of.Claims != nil {
		lists["claims.max"], lists["claims.min"] = sizeOf(of.Claims.Max), sizeOf(of.Claims.Min)
	}
	for _, list := range slices.Sorted(maps.Keys(lists)) {
		for _, name := range slices.Sorted(maps.Keys(lists[list])) {
			amount := lists[list][name]
			field := fmt.Sprintf("limits.%s[%s]", list, name)
			if name == corev1.ResourceStorage {
				field = "limits." + list
			}
			switch {
			case !limited(name):
				faults = append(faults, Fault{field, "only cpu, memory and ephemeral-storage of containers are limited"})
			case amount.Sign() < 0:
				faults = append(faults, Fault{field, amount.String() + " is negative; it must be 0 or more"})
			case list == "ratio" && amount.Cmp(resource.MustParse("1")) < 0:
				faults = append(faults, Fault{field, amount.String() + " is below 1; a limit is never below the request"})
			}
			faults = append(faults, tooLarge(field, amount, name, lists, above[list])...)
		}
	}
	return faults
}

// tooLarge returns in which of the upper lists the amount of a resource is smaller.
func tooLarge(field string, amount resource.Quantity, name corev1.ResourceName, lists map[string]corev1.ResourceList, upper []string) (faults []Fault) {
	for _, list := range upper {
		if most, there := lists[list][name]; there && amount.Cmp(most) > 0 {
			faults = append(faults, Fault{field, fmt.Sprintf("%s is above %s in %s; it must be at most that", amount.String(), most.String(), list)})
		}
	}
	return faults
}

// above are the lists of which the amounts have to be as large as those of a list.
var above = map[string][]string{
	"min": {"max", "default", "defaultRequest"}, "default": {"max"}, "defaultRequest": {"max", "default"}, "claims.min": {"claims.max"},
}
