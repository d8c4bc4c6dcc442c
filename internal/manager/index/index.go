// Package index keeps the answers about objects in lists, sorted by name, so the cost of a page does not depend on the length of its list. It
// remembers the last changes for callers who follow a list.
package index

import (
	"crypto/rand"
	"slices"
	"sync"
	"time"
)

// Item is the answer about one object. Items are shared, and never change.
type Item struct {
	Name string
	// Body is JSON on one line, without a line break at its end.
	Body []byte
	// ETag is derived from Body.
	ETag string
	// UID and Created distinguish the object from an earlier one of the same name.
	UID     string
	Created time.Time
	// Deleting says that the object is being deleted.
	Deleting bool
}

// Index has lists of items, by name.
type Index struct {
	// epoch distinguishes the changes of this Index from those of another process.
	epoch string

	mu    sync.RWMutex
	lists map[string]*list
	// made counts all changes. The number of a change is never reused.
	made uint64
	// recent has, for each remembered change, its list, the oldest change first.
	recent []*list
	// remembered is the size of the remembered changes, in bytes.
	remembered int
}

// New returns an Index without lists.
func New() *Index { return &Index{epoch: rand.Text()[:8], lists: map[string]*list{}} }

// Put adds an item to a list, or replaces the item with its name. An equal item is no change.
func (x *Index) Put(name string, item *Item) {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.list(name)
	at, found := find(l.items, item.Name)
	switch {
	case found && l.items[at].ETag == item.ETag && l.items[at].UID == item.UID:
		return
	case found:
		l.items[at] = item
	default:
		l.items = slices.Insert(l.items, at, item)
	}
	x.record(l, item, false)
}

// Delete removes the item with a name from a list.
func (x *Index) Delete(name, item string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.lists[name]
	if l == nil {
		return
	}
	at, found := find(l.items, item)
	if !found {
		return
	}
	deleted := l.items[at]
	l.items = slices.Delete(l.items, at, at+1)
	x.record(l, deleted, true)
}

// Get returns the item with a name, nil if the list has none.
func (x *Index) Get(name, item string) *Item {
	x.mu.RLock()
	defer x.mu.RUnlock()
	l := x.lists[name]
	if l == nil {
		return nil
	}
	if at, found := find(l.items, item); found {
		return l.items[at]
	}
	return nil
}

// Page returns up to limit items whose names come after a name, of those that the caller may see.
func (x *Index) Page(name, after string, limit int, may func(item string) bool) []*Item {
	x.mu.RLock()
	defer x.mu.RUnlock()
	l := x.lists[name]
	if l == nil {
		return nil
	}
	at, found := find(l.items, after)
	if found {
		at++
	}
	page := make([]*Item, 0, min(limit, len(l.items)-at))
	for _, item := range l.items[at:] {
		if len(page) == limit {
			break
		}
		if may(item.Name) {
			page = append(page, item)
		}
	}
	return page
}
