// Package index keeps the answers about objects, sorted by name in lists, so that a page costs what is on it, however long its list is.
package index

import (
	"slices"
	"strings"
	"sync"
)

// Item is the answer about one object. It is shared, and never changed.
type Item struct {
	Name string
	// Body is JSON, without a line break at its end.
	Body []byte
	// ETag is made of Body.
	ETag string
}

// Index has lists of items, by the names of the lists.
type Index struct {
	mu    sync.RWMutex
	lists map[string][]*Item
}

// New returns an Index without lists.
func New() *Index { return &Index{lists: map[string][]*Item{}} }

// Put adds an item to a list, or replaces the one of its name.
func (x *Index) Put(list string, item *Item) {
	x.mu.Lock()
	defer x.mu.Unlock()
	items := x.lists[list]
	at, found := find(items, item.Name)
	if found {
		// Readers have copies of the pointers only while they hold the lock.
		items[at] = item
		return
	}
	x.lists[list] = slices.Insert(items, at, item)
}

// Delete removes the item of a name from a list.
func (x *Index) Delete(list, name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	items := x.lists[list]
	at, found := find(items, name)
	if !found {
		return
	}
	if items = slices.Delete(items, at, at+1); len(items) == 0 {
		delete(x.lists, list)
		return
	}
	x.lists[list] = items
}

// Get returns the item of a name, nil if the list has none.
func (x *Index) Get(list, name string) *Item {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if at, found := find(x.lists[list], name); found {
		return x.lists[list][at]
	}
	return nil
}

// Page returns up to limit items of a list whose names come after a name, and that the caller may see.
func (x *Index) Page(list, after string, limit int, may func(name string) bool) []*Item {
	x.mu.RLock()
	defer x.mu.RUnlock()
	items := x.lists[list]
	at, found := find(items, after)
	if found {
		at++
	}
	page := make([]*Item, 0, min(limit, len(items)-at))
	for _, item := range items[at:] {
		if len(page) == limit {
			break
		}
		if may(item.Name) {
			page = append(page, item)
		}
	}
	return page
}

func find(items []*Item, name string) (int, bool) {
	return slices.BinarySearchFunc(items, name, func(item *Item, name string) int { return strings.Compare(item.Name, name) })
}
