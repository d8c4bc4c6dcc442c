package live

import "sync"

// How many streams there may be at once: of a caller, of all callers of a tenant, and of all. So one tenant cannot take those of the others.
const (
	maxStreamsOfCaller = 20
	maxStreamsOfTenant = maxStreams / 4
	maxStreams         = 1000
)

// streams counts the streams of each caller and tenant.
type streams struct {
	mu      sync.Mutex
	callers map[string]int
	tenants map[string]int
	all     int
}

// begin counts a stream of a caller, until end is called. It reports false if there are too many. Administrators are of the tenant "".
func (s *streams) begin(caller, tenant string) (end func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.callers[caller] >= maxStreamsOfCaller || s.tenants[tenant] >= maxStreamsOfTenant || s.all >= maxStreams {
		return nil, false
	}
	if s.callers == nil {
		s.callers, s.tenants = map[string]int{}, map[string]int{}
	}
	s.callers[caller]++
	s.tenants[tenant]++
	s.all++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		less(s.callers, caller)
		less(s.tenants, tenant)
	}, true
}

func less(of map[string]int, key string) {
	if of[key]--; of[key] == 0 {
		delete(of, key)
	}
}
