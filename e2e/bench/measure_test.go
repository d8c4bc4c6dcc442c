package main

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
# TYPE controller_runtime_active_workers gauge
controller_runtime_active_workers{controller="app"} 1
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 1.5
# TYPE process_resident_memory_bytes gauge
process_resident_memory_bytes 1.048576e+06
`

func TestParseMetrics(t *testing.T) {
	got, err := parseMetrics(strings.NewReader(metricsText), "app")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(clientCounts{Requests: 12, Methods: map[string]int{"get": 10, "patch": 2}, Reconciles: 10, Pending: 6, CPU: 1.5, RSS: 1 << 20}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := parseMetrics(strings.NewReader("<html>\n"), "app"); err == nil {
		t.Error("want an error for what is no metrics")
	}
}

func TestParseUsage(t *testing.T) {
	// The name of the program has a space and a parenthesis; 250 and 150 ticks are of user and system.
	stat := "42 (a )b) S 1 2 3 4 5 6 7 8 9 10 250 150 0 0 20 0 8 0 100"
	got, err := parseUsage([]byte(stat), []byte("Name:\ta\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(usage{CPU: 4, RSS: 1 << 20, PeakRSS: 2 << 20}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, broken := range []string{"", "42 (a) S 1", "42 (a) S 1 2 3 4 5 6 7 8 9 10 x 150"} {
		if _, err := parseUsage([]byte(broken), nil); err == nil {
			t.Errorf("want an error for %q", broken)
		}
	}
}

func TestNewPhase(t *testing.T) {
	before, after := observation{audit: newCounts()}, observation{audit: newCounts(), peak: 9}
	before.client = clientCounts{Requests: 100, Reconciles: 10, Pending: 6, CPU: 1}
	after.client = clientCounts{Requests: 110, Reconciles: 14, CPU: 3, RSS: 8}
	before.audit.Requests[request{"get", "secrets"}] = 5
	after.audit.Requests[request{"get", "secrets"}] = 7
	after.audit.Requests[request{"patch", "apps"}] = 6
	after.audit.Refused[request{"patch", "apps"}] = 1
	after.audit.Watches[request{"watch", "pods"}] = 1
	after.audit.Leases = 1
	want := phase{
		Name: upgrade, Apps: 2, Reads: 2, Writes: 6, Leases: 1, Audit: 10, Client: 10, Reconciles: 4, CPUSeconds: 2, RSS: 8, PeakRSS: 9,
		Requests: []line{{"patch", "apps", 6, 1, 3}, {"get", "secrets", 2, 0, 1}},
		Watches:  []line{{"watch", "pods", 1, 0, 0.5}},
	}
	if diff := cmp.Diff(want, newPhase(upgrade, 2, before, after)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDisagreement(t *testing.T) {
	tests := map[string]struct {
		audit, client int
		doubt         bool
	}{
		"the same":                      {1000, 1000, false},
		"one in a hundred":              {1000, 1010, false},
		"more":                          {1000, 1011, true},
		"fewer":                         {1000, 989, true},
		"a few of few":                  {20, 17, false},
		"more than a few of few":        {20, 24, true},
		"without an audit log no doubt": {0, 500, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := phase{Name: idle, Audit: test.audit, Client: test.client}
			if got := p.disagreement(); (got != "") != test.doubt {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestPercentile(t *testing.T) {
	values := []float64{4, 1, 3, 2}
	for share, want := range map[float64]float64{0: 1, 0.5: 2, 0.51: 3, 0.99: 4, 1: 4} {
		if got := percentile(values, share); got != want {
			t.Errorf("%g: got %g, want %g", share, got, want)
		}
	}
	if got := percentile(nil, 0.5); got != 0 {
		t.Errorf("got %g of nothing", got)
	}
}
