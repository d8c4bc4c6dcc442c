package sandbox

import "github.com/prometheus/client_golang/prometheus"

// counters count calls and processes. No label contains data of tenants.
type counters struct {
	calls     *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	processes prometheus.Gauge
}

func newCounters() *counters {
	return &counters{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubeop_sandbox_calls_total", Help: "Evaluations in processes of their own, by function and how they ended.",
		}, []string{"function", "outcome"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "kubeop_sandbox_duration_seconds", Help: "How long an evaluation took, waiting for a process left out.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"function"}),
		processes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kubeop_sandbox_processes", Help: "Processes that evaluate or wait for it.",
		}),
	}
}

// Collectors returns the pool's metrics.
func (p *Pool) Collectors() []prometheus.Collector {
	return []prometheus.Collector{p.metrics.calls, p.metrics.duration, p.metrics.processes}
}
