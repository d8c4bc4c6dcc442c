package index

import (
	"fmt"
	"strings"
	"testing"
)

func item(name, etag string) *Item { return &Item{Name: name, Body: []byte(etag), ETag: etag} }

func all(string) bool { return true }

func names(items []*Item) string {
	var all []string
	for _, item := range items {
		all = append(all, item.Name)
	}
	return strings.Join(all, " ")
}

// TestThePagesOfAListAreInOrder, whatever is put and deleted in which order.
func TestThePagesOfAListAreInOrder(t *testing.T) {
	x := New()
	for _, name := range []string{"d", "b", "e", "a", "c"} {
		x.Put("l", item(name, "1"))
	}
	x.Put("other", item("x", "1"))
	x.Delete("l", "c")
	x.Delete("l", "none")
	x.Delete("none", "c")
	for _, c := range []struct {
		after string
		limit int
		may   func(string) bool
		want  string
	}{
		{"", 10, all, "a b d e"}, {"", 2, all, "a b"}, {"b", 2, all, "d e"}, {"c", 1, all, "d"}, {"e", 2, all, ""}, {"", 2, func(name string) bool { return name > "b" }, "d e"},
	} {
		if got := names(x.Page("l", c.after, c.limit, c.may)); got != c.want {
			t.Errorf("after %q at most %d: %q, want %q", c.after, c.limit, got, c.want)
		}
	}
	if x.Get("l", "c") != nil || x.Get("none", "c") != nil || x.Get("l", "d") == nil {
		t.Error("Get returns other items than Page")
	}
}

// TestAnotherObjectOfTheSameNameIsAChange, also if the answer about it is the same.
func TestAnotherObjectOfTheSameNameIsAChange(t *testing.T) {
	x, next := New(), item("a", "1")
	x.Put("l", item("a", "1"))
	next.UID = "2"
	x.Put("l", next)
	if got := x.Get("l", "a"); got != next {
		t.Errorf("it is %+v", got)
	}
}

func changesOf(changes []Change) string {
	var all []string
	for _, c := range changes {
		all = append(all, fmt.Sprintf("%s=%s %t", c.Item.Name, c.Item.ETag, c.Deleted))
	}
	return strings.Join(all, ", ")
}

// TestChangesOfAListAreReturnedInOrder, those of other lists not at all, and what is the same is no change.
func TestChangesOfAListAreReturnedInOrder(t *testing.T) {
	x := New()
	x.Put("other", item("a", "1"))
	x.Put("l", item("a", "1"))
	items, at := x.Snapshot("l", all)
	if names(items) != "a" {
		t.Errorf("it begins with %s", names(items))
	}
	next, changed, known := x.Since("l", at)
	if len(next) > 0 || !known {
		t.Fatalf("%v %t", next, known)
	}
	x.Put("other", item("a", "2"))
	x.Put("l", item("a", "1"))
	select {
	case <-changed:
		t.Error("another list changed, and an item was put that is the same")
	default:
	}
	x.Put("l", item("a", "2"))
	x.Delete("l", "a")
	<-changed
	if next, _, _ := x.Since("l", at); changesOf(next) != "a=2 false, a=2 true" || next[1].Number != at+2 {
		t.Errorf("%s", changesOf(next))
	}
	for name, number := range map[string]uint64{"one to come": at + 3, "one before the list": 0} {
		if _, _, known := x.Since("l", number); known {
			t.Errorf("%s is known", name)
		}
	}
	if _, is := New().Number(x.Text(at)); is {
		t.Error("another process takes the number for its own")
	}
	if number, is := x.Number(x.Text(at)); number != at || !is {
		t.Errorf("%s is read as %d", x.Text(at), number)
	}
}

// TestTheMemoryOfChangesIsBounded: a reader that is too far behind gets an error, and a list that nobody needs is removed.
func TestTheMemoryOfChangesIsBounded(t *testing.T) {
	x := New()
	x.Put("gone", item("a", "1"))
	x.Delete("gone", "a")
	x.Put("l", item("a", "0"))
	_, behind := x.Snapshot("l", all)
	_, quiet := x.Snapshot("quiet", all)
	_, waiting, _ := x.Since("quiet", quiet)
	const size = 10_000
	for i := range 3 * maxRemembered / size {
		x.Put("l", &Item{Name: "a", Body: make([]byte, size), ETag: fmt.Sprint(i + 1)})
	}
	if kept := len(x.lists["l"].changes); kept*size > maxRemembered || kept*size < maxRemembered/2 || len(x.recent) != kept {
		t.Errorf("%d changes are remembered, and %d lists of them", kept, len(x.recent))
	}
	if _, _, known := x.Since("l", behind); known {
		t.Error("a change that was forgotten is known")
	}
	recent := behind + 5*maxRemembered/2/size
	if next, _, known := x.Since("l", recent); !known || len(next) != maxRead || next[0].Number != recent+1 {
		t.Errorf("%t: %d changes", known, len(next))
	}
	if x.lists["gone"] != nil {
		t.Error("a list without items and changes is kept")
	}
	// A list without changes for long is still followed.
	x.Put("quiet", item("b", "1"))
	<-waiting
	if next, _, known := x.Since("quiet", quiet); !known || changesOf(next) != "b=1 false" {
		t.Errorf("%t: %s", known, changesOf(next))
	}
}
