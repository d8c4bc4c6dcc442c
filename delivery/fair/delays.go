package fair

import (
	"container/heap"
	"time"
)

// delays are the objects that become ready later, as a heap: the earliest is the first.
type delays[T comparable] []*work[T]

func (d *delays[T]) add(w *work[T]) { heap.Push((*soonest[T])(d), w) }

func (d *delays[T]) remove(w *work[T]) { heap.Remove((*soonest[T])(d), w.index) }

// sooner makes an object ready at the given time, unless it is ready earlier anyway.
func (d *delays[T]) sooner(w *work[T], at time.Time) {
	if at.Before(w.at) {
		w.at = at
		heap.Fix((*soonest[T])(d), w.index)
	}
}

// soonest implements heap.Interface for delays.
type soonest[T comparable] []*work[T]

// Len implements heap.Interface.
func (s soonest[T]) Len() int { return len(s) }

// Less implements heap.Interface.
func (s soonest[T]) Less(i, j int) bool { return s[i].at.Before(s[j].at) }

// Swap implements heap.Interface.
func (s soonest[T]) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}

// Push implements heap.Interface.
func (s *soonest[T]) Push(x any) {
	w := x.(*work[T])
	w.index = len(*s)
	*s = append(*s, w)
}

// Pop implements heap.Interface.
func (s *soonest[T]) Pop() any {
	last := len(*s) - 1
	w := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	return w
}
