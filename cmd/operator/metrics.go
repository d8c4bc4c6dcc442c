package main

import (
	"crypto/tls"
	"net/http"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/version"
)

// metrics serves /metrics and /version. They name every tenant and app, so unless they are configured to be open the API server says who
// the caller is and whether that one may read them.
func metrics(c *config.Operator) metricsserver.Options {
	o := metricsserver.Options{BindAddress: c.MetricsAddr, ExtraHandlers: map[string]http.Handler{"/version": version.Handler()}}
	if !c.MetricsSecure {
		return o
	}
	o.SecureServing, o.CertDir, o.FilterProvider = true, c.MetricsCertDir, reviewed
	// One connection of HTTP/2 can ask for as much as many of HTTP/1.1, which no scraper needs.
	o.TLSOpts = append(o.TLSOpts, func(t *tls.Config) { t.NextProtos = []string{"http/1.1"} })
	return o
}

// reviewed asks the API server by TokenReviews and SubjectAccessReviews, whose answers are remembered for a minute and five. It does so at a
// bounded rate: anyone may come with tokens that are not known yet.
func reviewed(connection *rest.Config, client *http.Client) (metricsserver.Filter, error) {
	bounded := rest.CopyConfig(connection)
	bounded.QPS, bounded.Burst = 20, 40
	return filters.WithAuthenticationAndAuthorization(bounded, client)
}
