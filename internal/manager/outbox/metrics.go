package outbox

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubeop/kubeop/internal/store"
)

// Metrics count attempts and messages.
type Metrics struct {
	attempts *prometheus.CounterVec
	outbox   store.Outbox
}

var deliveriesMetric = prometheus.NewDesc("kubeop_manager_webhook_deliveries", "How many messages to webhooks there are: waiting, delivered, or parked, which are not sent any more.", []string{"state"}, nil)

// NewMetrics returns the metrics of an outbox.
func NewMetrics(outbox store.Outbox) *Metrics {
	return &Metrics{outbox: outbox, attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kubeop_manager_webhook_attempts_total", Help: "Attempts to send a message to a webhook, by the state of the message afterwards.",
	}, []string{"state"})}
}

func (m *Metrics) count(state store.DeliveryState) {
	if m != nil {
		m.attempts.WithLabelValues(string(state)).Inc()
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(descriptions chan<- *prometheus.Desc) {
	m.attempts.Describe(descriptions)
	descriptions <- deliveriesMetric
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(metrics chan<- prometheus.Metric) {
	m.attempts.Collect(metrics)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	counts, err := m.outbox.CountDeliveries(ctx)
	if err != nil {
		return // kubeop_manager_missing says that the store does not answer.
	}
	for _, state := range []store.DeliveryState{store.Waiting, store.Delivered, store.Parked} {
		metrics <- prometheus.MustNewConstMetric(deliveriesMetric, prometheus.GaugeValue, float64(counts[state]), string(state))
	}
}
