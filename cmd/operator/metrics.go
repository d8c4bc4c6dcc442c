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

// metrics serves /metrics and /version. They name every tenant and app. So unless open metrics are configured, the API server authenticates
// and authorizes each caller.
func metrics(c *config.Operator) metricsserver.Options {
	o := metricsserver.Options{BindAddress: c.MetricsAddr, ExtraHandlers: map[string]http.Handler{"/version": version.Handler()}}
	if !c.MetricsSecure {
		return o
	}
	o.SecureServing, o.CertDir, o.FilterProvider = true, c.MetricsCertDir, reviewed
	// One HTTP/2 connection can send as many requests as many HTTP/1.1 connections. No scraper needs that.
	o.TLSOpts = append(o.TLSOpts, func(t *tls.Config) { t.NextProtos = []string{"http/1.1"} })
	return o
}

// reviewed sends TokenReviews and SubjectAccessReviews to the API server and caches the answers for one and five minutes. It limits the
// rate, because anyone may send unknown tokens.
func reviewed(connection *rest.Config, client *http.Client) (metricsserver.Filter, error) {
	bounded := rest.CopyConfig(connection)
	bounded.QPS, bounded.Burst = 20, 40
	return filters.WithAuthenticationAndAuthorization(bounded, client)
}
