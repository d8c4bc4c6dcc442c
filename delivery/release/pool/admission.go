package pool

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// MaxInFlight bounds the actions that one tenant has started, including those that wait for a worker: each holds a chart in memory.
const MaxInFlight = 8

// admission bounds the actions of each tenant, and queues the apps of those that have reached the bound.
type admission struct {
	mu sync.Mutex
	// tenants that have actions or queued apps.
	tenants map[string]*tenant
}

type tenant struct {
	// started counts the actions that have started and not ended.
	started int
	// queue holds the apps that may not start one yet, each once. They are notified in order and decide anew: keeping what each wanted to
	// do would cost memory, and be out of date when its turn comes.
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

// next takes as many apps from the tenant's queue as may start an action now.
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
