package pool

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// No label has a value that tenants write, such as the name of a host, so the number of series is fixed.
var (
	waitingDesc = prometheus.NewDesc("kubeop_fetch_waiting", "Fetches that wait for a slot.", []string{"priority"}, nil)
	runningDesc = prometheus.NewDesc("kubeop_fetch_running", "Fetches under way.", []string{"priority"}, nil)
	hostsDesc   = prometheus.NewDesc("kubeop_fetch_hosts", "Hosts of sources, by the state of their circuit breaker.", []string{"of", "state"}, nil)
)

// metrics are the durations of fetches, kept after the fetches.
type metrics struct{ durations *prometheus.HistogramVec }

func newMetrics() *metrics {
	return &metrics{prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "kubeop_fetch_duration_seconds", Help: "How long fetches took from their start, by how they ended.",
		Buckets: []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300},
	}, []string{"priority", "outcome"})}
}

func (m *metrics) took(p Priority, outcome string, d time.Duration) {
	m.durations.WithLabelValues(p.String(), outcome).Observe(d.Seconds())
}

// outcomeOf returns the label for how a task ended.
func outcomeOf(err error, reach Reach) string {
	switch {
	case err == nil:
		return "fetched"
	case errors.Is(err, ErrTimeout):
		return "timeout"
	case reach == Silent:
		return "silent"
	case reach == Unconnected:
		return "unconnected"
	}
	return "failed"
}

// Describe implements prometheus.Collector.
func (p *Pool) Describe(out chan<- *prometheus.Desc) {
	out <- waitingDesc
	out <- runningDesc
	out <- hostsDesc
	p.metrics.durations.Describe(out)
}

// Collect implements prometheus.Collector.
func (p *Pool) Collect(out chan<- prometheus.Metric) {
	p.metrics.durations.Collect(out)
	waiting, under, hosts := p.count()
	for priority := range priorities {
		out <- prometheus.MustNewConstMetric(waitingDesc, prometheus.GaugeValue, float64(waiting[priority]), priority.String())
		out <- prometheus.MustNewConstMetric(runningDesc, prometheus.GaugeValue, float64(under[priority]), priority.String())
	}
	for _, of := range []string{ofRepositories, ofApps} {
		for _, state := range []State{Closed, Open, Probing} {
			out <- prometheus.MustNewConstMetric(hostsDesc, prometheus.GaugeValue, float64(hosts[of][state]), of, string(state))
		}
	}
}

// Values of the label for who owns a host.
const (
	ofRepositories = "repositories"
	ofApps         = "apps"
)

func (p *Pool) count() (waiting, under [priorities]int, hosts map[string]map[State]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for t := range p.queue.entries {
		waiting[t.Priority]++
	}
	for r := range p.running {
		under[r.Priority]++
	}
	hosts = map[string]map[State]int{ofRepositories: {}, ofApps: {}}
	for group, known := range p.hosts {
		of := ofApps
		if group == ofRepositories {
			of = ofRepositories
		}
		for _, h := range known {
			hosts[of][h.state()]++
		}
	}
	return waiting, under, hosts
}
