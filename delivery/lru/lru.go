// Package lru has a cache that is limited by the weight of its values, and evicts the least recently used ones.
package lru

import (
	"container/list"
	"iter"
)

// Cache keeps values by key. Not safe for concurrent use.
type Cache[K comparable, V any] struct {
	// Dropped, if it is set, is called with each value that leaves the cache by Add or Remove.
	Dropped func(V)

	max, weight int64
	weigh       func(V) int64
	// order has the entries, the most recently used first.
	order   *list.List
	entries map[K]*list.Element
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

// New returns a cache whose values together weigh at most max. The weight of a value must not change while it is in the cache. With nil,
// each value weighs 1.
func New[K comparable, V any](max int64, weigh func(V) int64) *Cache[K, V] {
	if weigh == nil {
		weigh = func(V) int64 { return 1 }
	}
	return &Cache[K, V]{max: max, weigh: weigh, order: list.New(), entries: map[K]*list.Element{}}
}

// Get returns the value of a key, and makes it the most recently used.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	at := c.entries[key]
	if at == nil {
		return value, false
	}
	c.order.MoveToFront(at)
	return at.Value.(entry[K, V]).value, true
}

// Add sets the value of a key, and evicts the least recently used values above the limit. A value that is above the limit alone is not
// kept.
func (c *Cache[K, V]) Add(key K, value V) {
	c.Remove(key)
	weight := c.weigh(value)
	if weight > c.max {
		return
	}
	c.entries[key] = c.order.PushFront(entry[K, V]{key, value})
	for c.weight += weight; c.weight > c.max; {
		c.remove(c.order.Back())
	}
}

// Remove removes the value of a key, if there is one.
func (c *Cache[K, V]) Remove(key K) {
	if at := c.entries[key]; at != nil {
		c.remove(at)
	}
}

func (c *Cache[K, V]) remove(at *list.Element) {
	e := c.order.Remove(at).(entry[K, V])
	delete(c.entries, e.key)
	c.weight -= c.weigh(e.value)
	if c.Dropped != nil {
		c.Dropped(e.value)
	}
}

// All returns the values in no order, and does not make them recently used. Values may be removed meanwhile.
func (c *Cache[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for key, at := range c.entries {
			if !yield(key, at.Value.(entry[K, V]).value) {
				return
			}
		}
	}
}

// Clear removes everything.
func (c *Cache[K, V]) Clear() {
	c.order.Init()
	clear(c.entries)
	c.weight = 0
}

// Weight is the weight of all values together.
func (c *Cache[K, V]) Weight() int64 { return c.weight }

// Len is the number of values.
func (c *Cache[K, V]) Len() int { return len(c.entries) }
