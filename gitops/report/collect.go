package report

import "github.com/prometheus/client_golang/prometheus"

var waitingDesc = prometheus.NewDesc("kubeop_report_waiting", "Reports to Git hosts and other servers that are not accepted yet, by kind.", []string{"kind"}, nil)

// Describe implements prometheus.Collector.
func (q *Queue) Describe(out chan<- *prometheus.Desc) {
	out <- waitingDesc
	q.metrics.ended.Describe(out)
	q.metrics.durations.Describe(out)
}

// Collect implements prometheus.Collector.
func (q *Queue) Collect(out chan<- prometheus.Metric) {
	q.metrics.ended.Collect(out)
	q.metrics.durations.Collect(out)
	for kind, n := range q.waiting() {
		out <- prometheus.MustNewConstMetric(waitingDesc, prometheus.GaugeValue, float64(n), string(kind))
	}
}

func (q *Queue) waiting() map[Kind]int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := map[Kind]int{CommitStatus: 0, Notification: 0}
	for _, e := range q.entries {
		n[e.message.Kind]++
	}
	return n
}
