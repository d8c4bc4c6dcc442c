package measure

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const metricsText = `# TYPE rest_client_requests_total counter
rest_client_requests_total{code="200",host="a",method="GET"} 10
rest_client_requests_total{code="409",host="a",method="PATCH"} 2
rest_client_requests_total{code="<error>",host="a",method="GET"} 5
# TYPE controller_runtime_reconcile_total counter
controller_runtime_reconcile_total{controller="app",result="success"} 7
controller_runtime_reconcile_total{controller="app",result="requeue_after"} 3
controller_runtime_reconcile_total{controller="repository",result="success"} 100
# TYPE workqueue_depth gauge
workqueue_depth{controller="app",name="app",priority=""} 3
workqueue_depth{controller="app",name="app",priority="-100"} 2
workqueue_depth{controller="repository",name="repository",priority=""} 50
# TYPE kubeop_queue_waiting gauge
kubeop_queue_waiting{resource="app workers"} 20
kubeop_queue_waiting{resource="builds"} 9
# TYPE controller_runtime_active_workers gauge
controller_runtime_active_workers{controller="app"} 1
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 1.5
# TYPE process_resident_memory_bytes gauge
process_resident_memory_bytes 1.048576e+06
`

func TestMetricsOfOneControllerAreCounted(t *testing.T) {
	got, err := parseMetrics(strings.NewReader(metricsText), "app")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ClientCounts{Requests: 12, Methods: map[string]int{"get": 10, "patch": 2}, Reconciles: 10, Pending: 26, CPU: 1.5, RSS: 1 << 20}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := parseMetrics(strings.NewReader("<html>\n"), "app"); err == nil {
		t.Error("want an error for what is no metrics")
	}
}

func TestUsageIsReadFromTheFilesOfAProcess(t *testing.T) {
	// The program's name contains a space and a parenthesis. It has used 250 ticks in user mode and 150 in system mode.
	stat := "42 (a )b) S 1 2 3 4 5 6 7 8 9 10 250 150 0 0 20 0 8 0 100"
	got, err := parseUsage([]byte(stat), []byte("Name:\ta\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Usage{CPU: 4, RSS: 1 << 20, PeakRSS: 2 << 20}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, broken := range []string{"", "42 (a) S 1", "42 (a) S 1 2 3 4 5 6 7 8 9 10 x 150"} {
		if _, err := parseUsage([]byte(broken), nil); err == nil {
			t.Errorf("want an error for %q", broken)
		}
	}
}

func TestAPercentileIsAMeasuredValue(t *testing.T) {
	values := []float64{4, 1, 3, 2}
	for share, want := range map[float64]float64{0: 1, 0.5: 2, 0.51: 3, 0.99: 4, 1: 4} {
		if got := Percentile(values, share); got != want {
			t.Errorf("%g: got %g, want %g", share, got, want)
		}
	}
	if got := Percentile(nil, 0.5); got != 0 {
		t.Errorf("got %g of nothing, want 0", got)
	}
}
