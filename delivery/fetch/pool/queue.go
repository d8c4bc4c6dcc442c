package pool

import "slices"

// levels are the priorities, each with what is asked for before what is looked at again; the apps' looks come after all else.
const levels = 2*int(priorities) - 1

func levelOf(t *Task) int {
	switch {
	case t.Priority == Platform:
		return 0
	case t.Asked:
		return int(t.Priority)
	}
	return int(t.Priority) + int(priorities) - 1
}

// queue holds the tasks that wait: in each level the tenants take turns.
type queue struct {
	levels [levels]turns
	// waiting counts them by tenant.
	waiting map[string]int
}

// turns are the tenants of whom something waits, in the order of their turns.
type turns struct {
	order []string
	tasks map[string][]*Task
}

func (q *queue) waitingFor(tenant string) int { return q.waiting[tenant] }

func (q *queue) add(t *Task) {
	if q.waiting == nil {
		q.waiting = map[string]int{}
	}
	q.waiting[t.Tenant]++
	at := &q.levels[levelOf(t)]
	if at.tasks == nil {
		at.tasks = map[string][]*Task{}
	}
	if len(at.tasks[t.Tenant]) == 0 {
		at.order = append(at.order, t.Tenant)
	}
	at.tasks[t.Tenant] = append(at.tasks[t.Tenant], t)
}

// remove takes a task out, and says whether it waited.
func (q *queue) remove(t *Task) bool {
	at := &q.levels[levelOf(t)]
	i := slices.Index(at.tasks[t.Tenant], t)
	if i < 0 {
		return false
	}
	q.take(at, t.Tenant, i)
	if len(at.tasks[t.Tenant]) == 0 {
		at.order = slices.DeleteFunc(at.order, func(tenant string) bool { return tenant == t.Tenant })
		delete(at.tasks, t.Tenant)
	}
	return true
}

func (q *queue) take(at *turns, tenant string, i int) {
	at.tasks[tenant] = slices.Delete(at.tasks[tenant], i, i+1)
	if q.waiting[tenant]--; q.waiting[tenant] == 0 {
		delete(q.waiting, tenant)
	}
}

// next is what became of a task that was looked at.
type next int

const (
	// taken and dropped take it out of the queue; after taken it is the next tenant's turn.
	taken next = iota
	dropped
	// waits looks at the tenant's next task, tenantWaits at the next tenant.
	waits
	tenantWaits
)

// each looks at what waits, in the order in which it is to be started, until nothing more can be.
func (q *queue) each(look func(*Task) next) {
	for level := range q.levels {
		at := &q.levels[level]
		for q.round(at, look) {
		}
	}
}

// round gives each tenant one turn, and says whether any used it. Who did is the last of the next round.
func (q *queue) round(at *turns, look func(*Task) next) (used bool) {
	var served, left []string
	for _, tenant := range at.order {
		took := q.turn(at, tenant, look)
		used = used || took
		switch {
		case len(at.tasks[tenant]) == 0:
			delete(at.tasks, tenant)
		case took:
			served = append(served, tenant)
		default:
			left = append(left, tenant)
		}
	}
	at.order = append(left, served...)
	return used
}

// turn looks for the first task of a tenant that can begin.
func (q *queue) turn(at *turns, tenant string, look func(*Task) next) (took bool) {
	for i := 0; i < len(at.tasks[tenant]); {
		switch look(at.tasks[tenant][i]) {
		case taken:
			q.take(at, tenant, i)
			return true
		case dropped:
			q.take(at, tenant, i)
		case waits:
			i++
		case tenantWaits:
			return false
		}
	}
	return false
}
