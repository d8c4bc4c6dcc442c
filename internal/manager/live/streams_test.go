package live

import (
	"fmt"
	"testing"
)

func TestATenantHasAQuarterOfTheStreams(t *testing.T) {
	s := &streams{}
	begin := func(tenant string, n int) (end func()) {
		t.Helper()
		for i := range n {
			ended, ok := s.begin(fmt.Sprint(tenant, i/maxStreamsOfCaller), tenant)
			if !ok {
				t.Fatalf("%s gets %d", tenant, i)
			}
			end = ended
		}
		return end
	}
	end := begin("acme", maxStreamsOfTenant)
	if _, ok := s.begin("acme", "acme"); ok {
		t.Error("acme gets more than its part")
	}
	begin("beta", maxStreamsOfTenant)
	begin("", maxStreamsOfTenant)
	end()
	begin("acme", 0)
	if _, ok := s.begin("acme", "acme"); !ok {
		t.Error("a stream that ended counts")
	}
	begin("gamma", maxStreamsOfTenant)
	if _, ok := s.begin("delta", "delta"); ok {
		t.Error("there are more than there may be")
	}
}

func TestWhoHasNoStreamIsForgotten(t *testing.T) {
	s := &streams{}
	end, _ := s.begin("ci", "acme")
	end()
	if len(s.callers)+len(s.tenants)+s.all > 0 {
		t.Errorf("left is %+v", s)
	}
}
