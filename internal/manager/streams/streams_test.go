package streams

import (
	"fmt"
	"testing"
)

var most = Limits{OfCaller: 20, OfTenant: 250, All: 1000}

func TestATenantHasAQuarterOfTheStreams(t *testing.T) {
	s := &Count{}
	begin := func(tenant string, n int) (end func()) {
		t.Helper()
		for i := range n {
			ended, ok := s.Begin(fmt.Sprint(tenant, i/most.OfCaller), tenant, most)
			if !ok {
				t.Fatalf("%s gets %d", tenant, i)
			}
			end = ended
		}
		return end
	}
	end := begin("acme", most.OfTenant)
	if _, ok := s.Begin("acme", "acme", most); ok {
		t.Error("acme gets more than its part")
	}
	begin("beta", most.OfTenant)
	begin("", most.OfTenant)
	end()
	begin("acme", 0)
	if _, ok := s.Begin("acme", "acme", most); !ok {
		t.Error("a stream that ended counts")
	}
	begin("gamma", most.OfTenant)
	if _, ok := s.Begin("delta", "delta", most); ok {
		t.Error("there are more than there may be")
	}
}

func TestCallersWithoutStreamsAreForgotten(t *testing.T) {
	s := &Count{}
	end, _ := s.Begin("ci", "acme", most)
	_, _ = s.Begin("other", "beta", most)
	end()
	end() // It counts once.
	if s.all != 1 {
		t.Errorf("an end is counted twice: %+v", s)
	}
	s = &Count{}
	end, _ = s.Begin("ci", "acme", most)
	end()
	if len(s.callers)+len(s.tenants)+s.all > 0 {
		t.Errorf("left is %+v", s)
	}
}
