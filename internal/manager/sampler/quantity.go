package sampler

import (
	"math"

	"k8s.io/apimachinery/pkg/api/resource"
)

// nanos returns a quantity in billionths, and units in units. Both round up, as Kubernetes does, and end at 64 bits: no node and no volume has more.
func nanos(q resource.Quantity) int64 { return scaled(q, resource.Nano) }

func units(q resource.Quantity) int64 { return scaled(q, 0) }

func scaled(q resource.Quantity, scale resource.Scale) int64 {
	switch {
	case q.Sign() <= 0:
		return 0
	case q.Cmp(*resource.NewScaledQuantity(math.MaxInt64, scale)) >= 0:
		return math.MaxInt64
	}
	return q.ScaledValue(scale)
}
