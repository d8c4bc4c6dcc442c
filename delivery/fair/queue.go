package fair

import (
	"container/list"
	"slices"
)

// Queue holds what waits, by tenant, in the order of weighted fair queueing: tenants take turns, and each tenant's items are first in,
// first out. A tenant of weight 2 has two turns for one of another's. So a tenant with one item waits for at most one item, or Burst, of
// each other tenant, however many those have.
//
// The order is that of start-time fair queueing (Goyal, Vin, Cheng: Start-Time Fair Queueing, SIGCOMM 1996), in which each item costs
// one turn, because what it will take is not known before. A tenant of whom nothing waits is forgotten as soon as it would gain no
// turn by that. The zero value is ready. Not safe for concurrent use.
type Queue[T any] struct {
	// Weight returns the weight of a tenant, at least 1. Nil: all weigh 1.
	Weight func(tenant string) int
	// Burst is how many items of one tenant are taken in a row before the next tenant's turn, because they can share what the first one
	// read. Each still costs the tenant a turn. 0 is 1.
	Burst int

	tenants map[string]*flow[T]
	// order holds the same flows, by tag and then by arrival.
	order []*flow[T]
	// now is the virtual time: the tag of the turn that was given last.
	now      float64
	arrivals uint64
	waiting  int
	// last is the flow that was served last, and inRow how often in a row.
	last  *flow[T]
	inRow int
}

// flow is what waits for one tenant. One without items is kept while its next turn is in the future of the virtual time.
type flow[T any] struct {
	tenant string
	// tag is the virtual time of the next turn; arrived orders flows of the same tag.
	tag     float64
	arrived uint64
	// first are items, behind those that go after them.
	first, behind list.List
}

func (f *flow[T]) len() int { return f.first.Len() + f.behind.Len() }

// Entry is an item that waits in a Queue.
type Entry[T any] struct {
	item T
	flow *flow[T]
	in   *list.List
	at   *list.Element
}

// Verdict is what to do with an item that was looked at.
type Verdict int

const (
	// Take takes the item out of the queue; it uses the tenant's turn.
	Take Verdict = iota
	// Drop takes it out and uses no turn; the tenant's next item is looked at.
	Drop
	// Skip leaves it, and has the tenant's next item looked at.
	Skip
	// SkipTenant leaves it, and has the next tenant's first item looked at.
	SkipTenant
)

// Add appends an item to those of its tenant.
func (q *Queue[T]) Add(tenant string, item T) *Entry[T] {
	f := q.flow(tenant)
	return q.push(f, &f.first, item)
}

// AddBehind adds an item that goes after all of its tenant's that Add added, whenever they are added.
func (q *Queue[T]) AddBehind(tenant string, item T) *Entry[T] {
	f := q.flow(tenant)
	return q.push(f, &f.behind, item)
}

func (q *Queue[T]) push(f *flow[T], in *list.List, item T) *Entry[T] {
	e := &Entry[T]{item: item, flow: f, in: in}
	e.at = in.PushBack(e)
	q.waiting++
	return e
}

// flow returns the flow of a tenant of whom something is about to wait.
func (q *Queue[T]) flow(tenant string) *flow[T] {
	f := q.tenants[tenant]
	if f != nil && (f.len() > 0 || f.tag > q.now) {
		return f
	}
	if f != nil {
		q.forget(slices.Index(q.order, f))
	}
	f = &flow[T]{tenant: tenant, tag: q.now}
	if q.tenants == nil {
		q.tenants = map[string]*flow[T]{}
	}
	q.tenants[tenant] = f
	q.insert(f)
	return f
}

// insert puts a flow into the order, after those of the same tag.
func (q *Queue[T]) insert(f *flow[T]) {
	q.arrivals++
	f.arrived = q.arrivals
	i, _ := slices.BinarySearchFunc(q.order, f, func(a, b *flow[T]) int {
		switch {
		case a.tag < b.tag || a.tag == b.tag && a.arrived < b.arrived:
			return -1
		case a == b:
			return 0
		}
		return 1
	})
	q.order = slices.Insert(q.order, i, f)
}

func (q *Queue[T]) forget(i int) {
	delete(q.tenants, q.order[i].tenant)
	q.order = slices.Delete(q.order, i, i+1)
}

// Remove takes out an item that is not wanted any more, and reports whether it waited.
func (q *Queue[T]) Remove(e *Entry[T]) bool {
	if e.flow == nil {
		return false
	}
	q.remove(e)
	q.settle()
	return true
}

func (q *Queue[T]) remove(e *Entry[T]) {
	e.in.Remove(e.at)
	e.flow = nil
	q.waiting--
}

// settle forgets all tenants once nothing waits: there is no tenant whose turns they could take.
func (q *Queue[T]) settle() {
	if q.waiting == 0 {
		q.tenants, q.order, q.now, q.last = nil, nil, 0, nil
	}
}

// Next takes out the first item, in the order of the turns, of which look says Take. Look must not change the queue.
func (q *Queue[T]) Next(look func(tenant string, item T) Verdict) (item T, ok bool) {
	defer q.settle()
	if f := q.last; f != nil && f.len() > 0 && q.inRow < q.Burst {
		if e := q.find(f, look); e != nil {
			q.remove(e)
			q.again(f)
			return e.item, true
		}
	}
	for i := 0; i < len(q.order); {
		f := q.order[i]
		if f.len() == 0 && f.tag <= q.now {
			q.forget(i)
			continue
		}
		if e := q.find(f, look); e != nil {
			q.remove(e)
			q.serve(i)
			return e.item, true
		}
		i++
	}
	return item, false
}

// find returns the first entry of a flow to be taken, nil when there is none.
func (q *Queue[T]) find(f *flow[T], look func(tenant string, item T) Verdict) *Entry[T] {
	for _, in := range []*list.List{&f.first, &f.behind} {
		for at := in.Front(); at != nil; {
			e := at.Value.(*Entry[T])
			at = at.Next()
			switch look(f.tenant, e.item) {
			case Take:
				return e
			case Drop:
				q.remove(e)
			case Skip:
			case SkipTenant:
				return nil
			}
		}
	}
	return nil
}

// serve has a tenant have used its turn. One that could not be served for a while has saved no turns.
func (q *Queue[T]) serve(i int) {
	f := q.order[i]
	q.now = max(q.now, f.tag)
	q.last, q.inRow = f, 1
	q.charge(i, q.now)
}

// again has a tenant have used a turn beyond its first, which is before others'. The virtual time stays.
func (q *Queue[T]) again(f *flow[T]) {
	q.inRow++
	q.charge(slices.Index(q.order, f), f.tag)
}

// charge puts a flow's next turn after one that began at a virtual time.
func (q *Queue[T]) charge(i int, began float64) {
	f, weight := q.order[i], 1
	if q.Weight != nil {
		weight = max(1, q.Weight(f.tenant))
	}
	q.order = slices.Delete(q.order, i, i+1)
	f.tag = began + 1/float64(weight)
	q.insert(f)
}

// Len is how many items wait.
func (q *Queue[T]) Len() int { return q.waiting }

// Of is how many items of a tenant wait.
func (q *Queue[T]) Of(tenant string) int {
	if f := q.tenants[tenant]; f != nil {
		return f.len()
	}
	return 0
}
