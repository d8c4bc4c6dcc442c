package index

import (
	"strconv"
	"strings"
)

// maxRead is how many changes are read at once.
const maxRead = 100

// Snapshot returns all items of a list that the caller may see, and the number of the last change that they contain.
func (x *Index) Snapshot(name string, may func(item string) bool) (items []*Item, at uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.list(name)
	for _, item := range l.items {
		if may(item.Name) {
			items = append(items, item)
		}
	}
	return items, l.next() - 1
}

// Since returns the changes of a list after a number. If there are none yet, the channel is closed by the next one. It reports false if a change after
// that number was forgotten, or if no change had that number.
func (x *Index) Since(name string, at uint64) (next []Change, changed <-chan struct{}, known bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.list(name)
	if at+1 < l.first || at >= l.next() {
		return nil, nil, false
	}
	if left := l.changes[at+1-l.first:]; len(left) > 0 {
		// This is a copy, because the index may forget the first of them meanwhile.
		return append([]Change{}, left[:min(len(left), maxRead)]...), nil, true
	}
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return nil, l.changed, true
}

// Text formats the number of a change for callers, who send it back later.
func (x *Index) Text(number uint64) string { return x.epoch + "." + strconv.FormatUint(number, 10) }

// Number parses what Text returned. It reports false for a number of another process.
func (x *Index) Number(text string) (number uint64, is bool) {
	epoch, rest, _ := strings.Cut(text, ".")
	number, err := strconv.ParseUint(rest, 10, 63)
	return number, err == nil && epoch == x.epoch
}
