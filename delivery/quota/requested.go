package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// CheckRequested checks amounts that a project requests in the field path of its spec for what the schema cannot check: that they are not negative, and
// that objects are counted in whole numbers.
func CheckRequested(path string, requested corev1.ResourceList) (faults []Fault) {
	for _, name := range slices.Sorted(maps.Keys(requested)) {
		amount, field := requested[name], fmt.Sprintf("%s[%s]", path, name)
		switch can := nearest(name, amount); {
		case amount.Sign() < 0:
			faults = append(faults, Fault{field, amount.String() + " is negative; it must be 0 or more"})
		case can.Cmp(amount) != 0:
			faults = append(faults, Fault{field, amount.String() + " is not a whole number, such as " + can.String()})
		}
	}
	return faults
}

// possible returns the amounts that a quota can have, nearest to those that are requested.
func possible(requested corev1.ResourceList) corev1.ResourceList {
	can := maps.Clone(requested)
	for name, amount := range requested {
		can[name] = nearest(name, amount)
	}
	return can
}

// nearest returns the next larger amount of a resource that a quota can have.
func nearest(name corev1.ResourceName, amount resource.Quantity) resource.Quantity {
	if amount.Sign() < 0 {
		return resource.Quantity{Format: amount.Format}
	}
	if up := amount.DeepCopy(); whole(name) && !up.RoundUp(0) {
		return up
	}
	return amount
}

// whole reports whether a quota counts a resource in whole numbers, as it does all but parts of processors and bytes.
func whole(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceStorage, corev1.ResourceEphemeralStorage:
		return false
	}
	return !strings.HasPrefix(string(name), "requests.") && !strings.HasPrefix(string(name), "limits.")
}
