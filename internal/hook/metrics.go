package hook

import "github.com/prometheus/client_golang/prometheus"

// Results of calls. No label contains data from a caller.
const (
	accepted   = "accepted"
	unsigned   = "unsigned"
	refused    = "refused"
	unreadable = "unreadable"
	tooLarge   = "too_large"
	crowded    = "crowded_out"
	failed     = "failed"
)

var (
	counted = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kubeop_hook_calls_total",
		Help: "Calls of the push hook, by how they ended: accepted, unsigned, refused, unreadable, too_large, crowded_out, failed.",
	}, []string{"outcome"})
	crowdedOut = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "kubeop_hook_connections_crowded_out_total",
		Help: "Connections of the push hook that were closed because newer ones of the same address, or of all, took their place.",
	})
)

// Collectors are the metrics of the hook.
func Collectors() []prometheus.Collector { return []prometheus.Collector{counted, crowdedOut} }
