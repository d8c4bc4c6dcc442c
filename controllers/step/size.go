package step

import (
	"encoding/json"
	"fmt"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// etcd stores no request above 1.5 MiB (its default --max-request-bytes). An object of nearLimit or more gets a condition.
const (
	sizeLimit = 3 << 19
	nearLimit = 1 << 20
)

// oversized holds only the objects that are near the limit.
var oversized = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "kubeop_oversized_object_bytes",
	Help: "Size as JSON of an object of kubeop that comes near the 1.5 MiB that the API server stores.",
}, []string{"kind", "namespace", "name"})

// Collectors are the metrics of object sizes and refusals.
func Collectors() []prometheus.Collector { return []prometheus.Collector{oversized, refusals} }

// marshalMarked returns an object as JSON. If the size is near the limit, the object gets a condition that says so.
func marshalMarked(obj Object) ([]byte, error) {
	data, err := json.Marshal(obj)
	if err == nil && markSize(obj, len(data)) {
		data, err = json.Marshal(obj)
	}
	if err != nil {
		return nil, fmt.Errorf("encoding the object: %w", err)
	}
	return data, nil
}

// markSize sets or removes the condition that the object is near the size limit. It reports whether the object changed.
func markSize(obj Object, size int) bool {
	labels := labelsOf(obj)
	if size < nearLimit {
		oversized.Delete(labels)
		if !conditions.Has(obj, v1alpha1.NearSizeLimitCondition) {
			return false
		}
		conditions.Delete(obj, v1alpha1.NearSizeLimitCondition)
		return true
	}
	oversized.With(labels).Set(float64(size))
	// Rounding to a tenth of a MiB keeps the message stable.
	message := fmt.Sprintf("takes %.1f MiB of the %.1f MiB that the API server stores: split it in Git into several before it is full", mebibytes(size), mebibytes(sizeLimit))
	if conditions.GetMessage(obj, v1alpha1.NearSizeLimitCondition) == message {
		return false
	}
	conditions.Set(obj, &metav1.Condition{Type: v1alpha1.NearSizeLimitCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.TooLargeReason, Message: message})
	return true
}

func mebibytes(n int) float64 { return float64(n) / (1 << 20) }
