package index

import (
	"slices"
	"strings"
)

// maxRemembered limits the size of the remembered changes of all lists together, in bytes. A client that is further behind reads the whole list again.
const maxRemembered = 8 << 20

// Change says that an item was put into a list, or deleted from it.
type Change struct {
	// Number increases by one with each change of a list.
	Number  uint64
	Item    *Item
	Deleted bool
}

type list struct {
	name  string
	items []*Item
	// changes are the remembered changes. first is the number of the oldest of them or, if there are none, of the next change.
	changes []Change
	first   uint64
	// changed is closed by the next change. It is nil while nobody waits for it.
	changed chan struct{}
}

// list returns a list, and creates it if it does not exist. If a list was removed and is created again, its numbers are greater than the earlier ones.
func (x *Index) list(name string) *list {
	l := x.lists[name]
	if l == nil {
		l = &list{name: name, first: x.made + 1}
		x.lists[name] = l
	}
	return l
}

// size estimates the memory of a change, in bytes.
func (c Change) size() int { return len(c.Item.Body) + 128 }

// next returns the number of the next change.
func (l *list) next() uint64 { return l.first + uint64(len(l.changes)) }

// record remembers a change, forgets the oldest ones if they need too much memory, and wakes those who wait for it.
func (x *Index) record(l *list, item *Item, deleted bool) {
	x.made++
	c := Change{l.next(), item, deleted}
	l.changes = append(l.changes, c)
	x.recent = append(x.recent, l)
	for x.remembered += c.size(); x.remembered > maxRemembered && len(x.recent) > 1; {
		x.forgetOldest()
	}
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

func (x *Index) forgetOldest() {
	oldest := x.recent[0]
	x.recent[0] = nil
	x.recent = x.recent[1:]
	x.remembered -= oldest.changes[0].size()
	oldest.changes[0] = Change{}
	oldest.changes = oldest.changes[1:]
	oldest.first++
	if len(oldest.items) == 0 && len(oldest.changes) == 0 && oldest.changed == nil {
		delete(x.lists, oldest.name)
	}
}

func find(items []*Item, name string) (int, bool) {
	return slices.BinarySearchFunc(items, name, func(item *Item, name string) int { return strings.Compare(item.Name, name) })
}
