// Package streams limits how many long answers are open at once.
package streams

import "sync"

// Limits says how many streams may be open at once: of one caller, of all callers of one tenant, and of all. So one tenant cannot take the streams of
// the others.
type Limits struct{ OfCaller, OfTenant, All int }

// Count counts the open streams.
type Count struct {
	mu      sync.Mutex
	callers map[string]int
	tenants map[string]int
	all     int
}

// Begin counts a stream until end is called. It reports false if too many are open. Administrators have the tenant "".
func (c *Count) Begin(caller, tenant string, most Limits) (end func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.callers[caller] >= most.OfCaller || c.tenants[tenant] >= most.OfTenant || c.all >= most.All {
		return nil, false
	}
	if c.callers == nil {
		c.callers, c.tenants = map[string]int{}, map[string]int{}
	}
	c.callers[caller]++
	c.tenants[tenant]++
	c.all++
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.all--
		less(c.callers, caller)
		less(c.tenants, tenant)
	}), true
}

func less(of map[string]int, key string) {
	if of[key]--; of[key] == 0 {
		delete(of, key)
	}
}
