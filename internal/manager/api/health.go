package api

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/kubeop/kubeop/internal/manager/readiness"
)

// NewHealth returns the handler of the address for probes and Prometheus. It serves /metrics, and does not limit requests.
func NewHealth(checks *readiness.Checks, metrics prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	registerServer(humago.New(mux, settings()), checks)
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	return secure(orNotFound(mux))
}
