package main

import (
	"testing"

	"github.com/kubeop/kubeop/e2e/measure"

	"github.com/google/go-cmp/cmp"
)

func TestAPhaseIsTheDifferenceOfTwoObservations(t *testing.T) {
	before, after := observation{audit: measure.NewCounts()}, observation{audit: measure.NewCounts(), peak: 9, own: 6, all: 7}
	before.client = measure.ClientCounts{Requests: 100, Reconciles: 10, Pending: 6, CPU: 1}
	after.client = measure.ClientCounts{Requests: 110, Reconciles: 14, CPU: 3, RSS: 8}
	before.audit.Requests[measure.Request{Verb: "get", Resource: "secrets"}] = 5
	after.audit.Requests[measure.Request{Verb: "get", Resource: "secrets"}] = 7
	after.audit.Requests[measure.Request{Verb: "patch", Resource: "apps"}] = 6
	after.audit.Refused[measure.Request{Verb: "patch", Resource: "apps"}] = 1
	after.audit.Watches[measure.Request{Verb: "watch", Resource: "pods"}] = 1
	after.audit.Leases = 1
	want := phase{
		Name: upgrade, Apps: 2, Reads: 2, Writes: 6, Leases: 1, Audit: 10, Client: 10, Reconciles: 4, CPUSeconds: 2, RSS: 8, PeakRSS: 9, PSS: 6, AllPSS: 7,
		Requests: []line{{"patch", "apps", 6, 1, 3}, {"get", "secrets", 2, 0, 1}},
		Watches:  []line{{"watch", "pods", 1, 0, 0.5}},
	}
	if diff := cmp.Diff(want, newPhase(upgrade, 2, before, after)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCountsThatDisagreeAreDoubtful(t *testing.T) {
	tests := map[string]struct {
		audit, client int
		doubt         bool
	}{
		"the same":                      {1000, 1000, false},
		"one in a hundred":              {1000, 1010, false},
		"more":                          {1000, 1011, true},
		"fewer":                         {1000, 989, true},
		"three of few":                  {20, 17, false},
		"more than three of few":        {20, 24, true},
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
