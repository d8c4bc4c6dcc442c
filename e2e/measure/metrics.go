package measure

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// ClientCounts are counts from a controller's own metrics.
type ClientCounts struct {
	// Requests is the number of answered API requests of its client. Methods are the same by HTTP method.
	Requests int
	Methods  map[string]int
	// Reconciles is the number of reconciliations of apps. Pending is how many apps are queued or being reconciled.
	Reconciles, Pending int
	// CPU is in seconds, RSS in bytes.
	CPU float64
	RSS int64
}

// Scrape reads the metrics at a URL. The names are those of client-go, controller-runtime and client_golang, which
// kubeop and Flux share.
func Scrape(ctx context.Context, url, controller string) (ClientCounts, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return ClientCounts{}, fmt.Errorf("requesting metrics: %w", err)
	}
	response, err := scraper.Do(request)
	if err != nil {
		return ClientCounts{}, fmt.Errorf("requesting metrics: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return ClientCounts{}, fmt.Errorf("requesting metrics: %s: %s", url, response.Status)
	}
	return parseMetrics(response.Body, controller)
}

// scraper has a long timeout, because a controller may have metrics of thousands of apps.
var scraper = &http.Client{Timeout: 30 * time.Second}

func parseMetrics(text io.Reader, controller string) (ClientCounts, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return ClientCounts{}, fmt.Errorf("reading metrics: %w", err)
	}
	c := ClientCounts{Methods: map[string]int{}}
	for _, m := range families["rest_client_requests_total"].GetMetric() {
		// The code of a request without an answer is not a number. Such a request is not in the audit log either.
		if _, err := strconv.Atoi(labelOf(m, "code")); err == nil {
			c.Requests += int(m.GetCounter().GetValue())
			c.Methods[strings.ToLower(labelOf(m, "method"))] += int(m.GetCounter().GetValue())
		}
	}
	for _, m := range families["controller_runtime_reconcile_total"].GetMetric() {
		if labelOf(m, "controller") == controller {
			c.Reconciles += int(m.GetCounter().GetValue())
		}
	}
	for _, gauge := range []string{"workqueue_depth", "controller_runtime_active_workers"} {
		for _, m := range families[gauge].GetMetric() {
			if labelOf(m, "controller") == controller {
				c.Pending += int(m.GetGauge().GetValue())
			}
		}
	}
	for _, m := range families["kubeop_queue_waiting"].GetMetric() { // kubeop's own work queues have no workqueue_depth.
		if labelOf(m, "resource") == controller+" workers" {
			c.Pending += int(m.GetGauge().GetValue())
		}
	}
	for _, m := range families["process_cpu_seconds_total"].GetMetric() {
		c.CPU += m.GetCounter().GetValue()
	}
	for _, m := range families["process_resident_memory_bytes"].GetMetric() {
		c.RSS += int64(m.GetGauge().GetValue())
	}
	return c, nil
}

func labelOf(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}
