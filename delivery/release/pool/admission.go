package pool

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// MaxInFlight bounds the actions that one tenant has started, including those that wait for a worker: each holds a chart in memory.
const MaxInFlight = 8

// admission limits the actions of each tenant, and queues the apps of tenants that have reached the limit.
type admission struct {
	mu sync.Mutex
	// tenants that have actions or queued apps.
	tenants map[string]*tenant
}

type tenant struct {
	// started counts the actions that have started and not ended.
	started int
	// queue holds the apps that may not start an action yet, each once. They are notified in order and decide again: storing their actions
	// would take memory, and an action would be outdated when its turn comes.
	queue  []types.NamespacedName
	queued map[types.NamespacedName]bool
}

// admit counts an action that starts, or queues the app.
func (a *admission) admit(name string, app types.NamespacedName) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.tenants[name]
	if t == nil {
		t = &tenant{queued: map[types.NamespacedName]bool{}}
		a.tenants[name] = t
	}
	if t.started < MaxInFlight {
		t.started++
		return true
	}
	if !t.queued[app] {
		t.queued[app] = true
		t.queue = append(t.queue, app)
	}
	return false
}

// ended counts an action that has ended.
func (a *admission) ended(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tenants[name].started--
}

// next removes as many apps from the tenant's queue as may start an action now, and returns them.
func (a *admission) next(name string) []types.NamespacedName {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.tenants[name]
	if t == nil {
		return nil
	}
	apps := t.queue[:min(len(t.queue), MaxInFlight-t.started)]
	for _, app := range apps {
		delete(t.queued, app)
	}
	if t.queue = t.queue[len(apps):]; t.started == 0 && len(t.queue) == 0 {
		delete(a.tenants, name)
	}
	return apps
}
