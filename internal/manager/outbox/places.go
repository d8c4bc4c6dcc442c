package outbox

import (
	"sync"
	"time"

	"github.com/kubeop/kubeop/internal/store"
)

// How many attempts may run at once: of one webhook, of all webhooks of one tenant, and of all. So a tenant whose webhooks do not answer leaves places
// for the others.
const (
	perWebhook = 4
	perTenant  = 16
	perSender  = 128
)

// A webhook that fails rests, longer each time, and then gets one message. So a webhook that does not answer takes few places.
const (
	shortestRest = 5 * time.Second
	longestRest  = 5 * time.Minute
)

// heldRest is the pause of a webhook to which the manager cannot send because of a problem of its own. heldFor is how long after the last such failure
// the problem is reported.
const (
	heldRest = time.Minute
	heldFor  = 5 * heldRest
)

// places counts the running attempts.
type places struct {
	mu       sync.Mutex
	webhooks map[string]int
	tenants  map[string]int
	all      int
	// healthy has the webhooks that accepted their last message. Others get one message at a time.
	healthy map[string]bool
	failing map[string]rest
}

// rest says how many times in a row a webhook failed, and until when it gets nothing.
type rest struct {
	failures int
	until    time.Time
	// why is the manager's own problem that prevented the last attempt, which was heldRest before until; nil if there was none.
	why error
}

// take takes as many places as a webhook may have now. Return each with give.
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

// give returns a place.
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

// ofTenants returns how many attempts run for each tenant.
func (p *places) ofTenants() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make(map[string]int, len(p.tenants))
	for tenant, n := range p.tenants {
		all[tenant] = n
	}
	return all
}

// answered records that a webhook accepted a message.
func (p *places) answered(webhook string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.failing, webhook)
	if p.healthy == nil {
		p.healthy = map[string]bool{}
	}
	p.healthy[webhook] = true
}

// forget removes a deleted webhook.
func (p *places) forget(webhook string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.failing, webhook)
	delete(p.healthy, webhook)
}

// failed records that a webhook did not accept a message, and returns how many times in a row. wanted is the pause that it asked for.
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
	r.why = nil
	p.failing[webhook] = r
	delete(p.healthy, webhook)
	return r.failures
}

// hold records why the manager cannot send to a webhook, and reports whether the webhook was not held before. It keeps the webhook's failures.
func (p *places) hold(webhook string, now time.Time, why error) (first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failing == nil {
		p.failing = map[string]rest{}
	}
	r := p.failing[webhook]
	first = r.why == nil
	r.why, r.until = why, now.Add(heldRest)
	p.failing[webhook] = r
	return first
}

// held returns to how many webhooks the manager cannot send, one of them, and why.
func (p *places) held(now time.Time) (n int, one string, why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for webhook, r := range p.failing {
		if r.why == nil || now.Sub(r.until) > heldFor-heldRest {
			continue
		}
		if n++; one == "" || webhook < one {
			one, why = webhook, r.why
		}
	}
	return n, one, why
}
