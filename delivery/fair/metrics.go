package fair

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The label is the resource, never the tenant, so there are as many series as resources.
var (
	waits = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "kubeop_queue_wait_seconds", Help: "How long work waited for its turn at a resource that tenants share.",
		Buckets: []float64{0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300},
	}, []string{"resource"})
	waiting = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kubeop_queue_waiting", Help: "What waits for its turn at a resource that tenants share.",
	}, []string{"resource"})
	running = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kubeop_queue_running", Help: "What uses a resource that tenants share.",
	}, []string{"resource"})
)

// Collectors are the metrics of all resources of this process.
func Collectors() []prometheus.Collector { return []prometheus.Collector{waits, waiting, running} }

// Waited records how long something waited for its turn at a resource that does not use this package's semaphores.
func Waited(resource string, d time.Duration) { waits.WithLabelValues(resource).Observe(d.Seconds()) }

// meter has the metrics of one resource.
type meter struct {
	wait             prometheus.Observer
	waiting, running prometheus.Gauge
}

func newMeter(resource string) meter {
	return meter{waits.WithLabelValues(resource), waiting.WithLabelValues(resource), running.WithLabelValues(resource)}
}

func (m meter) waited(d time.Duration) { m.wait.Observe(d.Seconds()) }

func (m meter) set(wait, run int) {
	m.waiting.Set(float64(wait))
	m.running.Set(float64(run))
}
