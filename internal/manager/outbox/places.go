package outbox

import (
	"sync"
	"time"

	"github.com/kubeop/kubeop/internal/store"
)

// How many attempts there are at once: of one webhook, of all webhooks of one tenant, and of all. So those of one tenant leave places for the others if none of them answers.
const (
	perWebhook = 4
	perTenant  = 16
	perSender  = 128
)

// A webhook that fails rests, longer each time, and then gets one message. So one that does not answer takes few places.
const (
	shortestRest = 5 * time.Second
	longestRest  = 5 * time.Minute
)

// places counts the attempts that run.
type places struct {
	mu       sync.Mutex
	webhooks map[string]int
	tenants  map[string]int
	all      int
	// healthy are the webhooks that took their last message. Others get one at a time.
	healthy map[string]bool
	failing map[string]rest
}

// rest is that a webhook failed so many times in sequence, and gets nothing until a time.
type rest struct {
	failures int
	until    time.Time
}

// take takes as many places as a webhook may have now. Each is given back.
func (p *places) take(to store.DueWebhook, now time.Time) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Before(p.failing[to.ID].until) {
		return 0
	}
	most := 1
	if p.healthy[to.ID] {
		most = perWebhook
	}
	n := max(0, min(most-p.webhooks[to.ID], perTenant-p.tenants[to.Tenant], perSender-p.all))
	if n == 0 {
		return 0
	}
	if p.webhooks == nil {
		p.webhooks, p.tenants = map[string]int{}, map[string]int{}
	}
	p.webhooks[to.ID] += n
	p.tenants[to.Tenant] += n
	p.all += n
	return n
}

// give gives a place back.
func (p *places) give(to store.DueWebhook) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	if p.webhooks[to.ID]--; p.webhooks[to.ID] == 0 {
		delete(p.webhooks, to.ID)
	}
	if p.tenants[to.Tenant]--; p.tenants[to.Tenant] == 0 {
		delete(p.tenants, to.Tenant)
	}
}

// ofTenants returns how many attempts of each tenant run.
func (p *places) ofTenants() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make(map[string]int, len(p.tenants))
	for tenant, n := range p.tenants {
		all[tenant] = n
	}
	return all
}

// answered records that a webhook took a message.
func (p *places) answered(webhook string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.failing, webhook)
	if p.healthy == nil {
		p.healthy = map[string]bool{}
	}
	p.healthy[webhook] = true
}

// forget forgets a webhook that is deleted.
func (p *places) forget(webhook string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.failing, webhook)
	delete(p.healthy, webhook)
}

// failed records that a webhook did not take a message, and returns how many times in sequence. wanted is how long it asked for nothing.
func (p *places) failed(webhook string, now time.Time, wanted time.Duration) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failing == nil {
		p.failing = map[string]rest{}
	}
	r := p.failing[webhook]
	r.failures++
	length := longestRest
	if r.failures < 7 {
		length = min(longestRest, shortestRest<<(r.failures-1))
	}
	r.until = now.Add(max(length, wanted))
	p.failing[webhook] = r
	delete(p.healthy, webhook)
	return r.failures
}
