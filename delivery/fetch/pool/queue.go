package pool

import (
	"time"

	"github.com/kubeop/kubeop/delivery/fair"
)

// levels are the priorities; in each, requested tasks precede repeated ones. Repeated tasks of apps come last.
const levels = 2*int(priorities) - 1

func levelOf(t *Task) int {
	switch {
	case t.Priority == Platform:
		return 0
	case t.Requested:
		return int(t.Priority)
	}
	return int(t.Priority) + int(priorities) - 1
}

// queue holds the tasks that wait: in each level the tenants take turns.
type queue struct {
	levels  [levels]fair.Queue[*Task]
	entries map[*Task]entry
	// waiting counts the tasks by tenant.
	waiting map[string]int
}

// entry is a task's place in its level, and since when it waits.
type entry struct {
	*fair.Entry[*Task]
	since time.Time
}

func newQueue(weight func(tenant string) int) queue {
	q := queue{entries: map[*Task]entry{}, waiting: map[string]int{}}
	for i := range q.levels {
		q.levels[i].Weight = weight
	}
	return q
}

func (q *queue) waitingFor(tenant string) int { return q.waiting[tenant] }

func (q *queue) add(t *Task, now time.Time) {
	q.waiting[t.Tenant]++
	q.entries[t] = entry{q.levels[levelOf(t)].Add(t.Tenant, t), now}
}

// remove removes a task, and reports whether it waited.
func (q *queue) remove(t *Task) bool {
	at, waits := q.entries[t]
	if waits {
		q.levels[levelOf(t)].Remove(at.Entry)
		q.forget(t)
	}
	return waits
}

// forget drops a task that has left its level, and returns since when it waited.
func (q *queue) forget(t *Task) time.Time {
	since := q.entries[t].since
	delete(q.entries, t)
	if q.waiting[t.Tenant]--; q.waiting[t.Tenant] == 0 {
		delete(q.waiting, t.Tenant)
	}
	return since
}

// each visits the waiting tasks in the order in which they start, until nothing more is taken.
func (q *queue) each(look func(*Task) fair.Verdict) {
	for level := range q.levels {
		for taken := true; taken; {
			_, taken = q.levels[level].Next(func(_ string, t *Task) fair.Verdict { return look(t) })
		}
	}
}
