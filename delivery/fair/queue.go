package fair

import (
	"container/list"
	"slices"
)

// Queue holds waiting items by tenant, in the order of weighted fair queueing: tenants take turns, and each tenant's items are first in,
// first out. A tenant of weight 2 has two turns for one turn of a tenant of weight 1. So a tenant with one item waits for at most one item,
// or Burst, of each other tenant, however many items those have.
//
// The order is that of start-time fair queueing (Goyal, Vin, Cheng: Start-Time Fair Queueing, SIGCOMM 1996). Each item costs one turn,
// because its duration is not known in advance. A tenant without waiting items is forgotten as soon as it would not gain a turn by that.
// The zero value is ready. Not safe for concurrent use.
type Queue[T any] struct {
	// Weight returns the weight of a tenant, at least 1. With nil, every tenant has weight 1.
	Weight func(tenant string) int
	// Burst is how many items of one tenant are taken in a row before the next tenant's turn, because they can share cached data. Each
	// still costs the tenant a turn. 0 means 1.
	Burst int

	tenants map[string]*flow[T]
	// order holds the same flows, sorted by tag and then by arrival.
	order []*flow[T]
	// now is the virtual time: the tag of the last turn.
	now      float64
	arrivals uint64
	waiting  int
	// last is the flow that was served last, and inRow how often it was served in a row.
	last  *flow[T]
	inRow int
}

// flow holds the waiting items of one tenant. A flow without items is kept while its tag is later than the virtual time.
type flow[T any] struct {
	tenant string
	// tag is the virtual time of the tenant's next turn. arrived orders flows with the same tag.
	tag     float64
	arrived uint64
	// first are items; behind are items that are taken after all of these.
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

// Verdict says what to do with an item.
type Verdict int

const (
	// Take removes the item from the queue and uses a turn of the tenant.
	Take Verdict = iota
	// Drop removes the item without using a turn, and goes on to the tenant's next item.
	Drop
	// Skip leaves the item, and goes on to the tenant's next item.
	Skip
	// SkipTenant leaves the item, and goes on to the next tenant.
	SkipTenant
)

// Add appends an item to the items of its tenant.
func (q *Queue[T]) Add(tenant string, item T) *Entry[T] {
	f := q.flow(tenant)
	return q.push(f, &f.first, item)
}

// AddBehind adds an item that is taken after all items of its tenant from Add, also after those that are added later.
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

// flow returns the flow of a tenant to which an item is about to be added.
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

// insert inserts a flow into the order, after those with the same tag.
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

// Remove removes an item that is not wanted any more, and reports whether it was still waiting.
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

// settle forgets all tenants once nothing waits, because there is no tenant whose turns they could take.
func (q *Queue[T]) settle() {
	if q.waiting == 0 {
		q.tenants, q.order, q.now, q.last = nil, nil, 0, nil
	}
}

// Next removes and returns the first item, in the order of turns, for which look returns Take. look must not change the queue.
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

// find returns the first entry of a flow to be taken; nil if there is none.
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

// serve charges a tenant for its turn. A tenant that could not be served for a while has not saved up turns.
func (q *Queue[T]) serve(i int) {
	f := q.order[i]
	q.now = max(q.now, f.tag)
	q.last, q.inRow = f, 1
	q.charge(i, q.now)
}

// again charges a tenant for another turn in a burst. The virtual time stays.
func (q *Queue[T]) again(f *flow[T]) {
	q.inRow++
	q.charge(slices.Index(q.order, f), f.tag)
}

// charge sets a flow's next turn after a turn that began at the given virtual time.
func (q *Queue[T]) charge(i int, began float64) {
	f, weight := q.order[i], 1
	if q.Weight != nil {
		weight = max(1, q.Weight(f.tenant))
	}
	q.order = slices.Delete(q.order, i, i+1)
	f.tag = began + 1/float64(weight)
	q.insert(f)
}

// Len is the number of waiting items.
func (q *Queue[T]) Len() int { return q.waiting }

// Of is the number of waiting items of a tenant.
func (q *Queue[T]) Of(tenant string) int {
	if f := q.tenants[tenant]; f != nil {
		return f.len()
	}
	return 0
}
