package report

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Values of the label outcome.
const (
	outcomeSent    = "sent"
	outcomeFailed  = "failed"
	outcomeLimited = "limited"
	outcomeDropped = "dropped"
)

// metrics count the attempts. No label has a value that tenants write.
type metrics struct {
	ended     *prometheus.CounterVec
	durations *prometheus.HistogramVec
}

func newMetrics() *metrics {
	return &metrics{
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubeop_report_attempts_total",
			Help: "Attempts to send a report to a Git host or another server, by how they ended: sent, failed, limited (the server asked to wait) or dropped (too many waited).",
		}, []string{"kind", "outcome"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "kubeop_report_duration_seconds", Help: "How long attempts to send a report took, from their start.",
			Buckets: []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30},
		}, []string{"kind"}),
	}
}

func (m *metrics) record(kind Kind, err error, took time.Duration) {
	outcome := outcomeSent
	if err != nil {
		outcome = outcomeFailed
		if _, limited := isLimited(err); limited {
			outcome = outcomeLimited
		}
	}
	m.ended.WithLabelValues(string(kind), outcome).Inc()
	m.durations.WithLabelValues(string(kind)).Observe(took.Seconds())
}
