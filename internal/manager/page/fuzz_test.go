package page

import (
	"slices"
	"strings"
	"testing"
)

// FuzzPages: whatever the keys are and however large a page is, the cursors lead through all items in their order, each once.
func FuzzPages(f *testing.F) {
	f.Add("a,b,c", uint8(1))
	f.Add("\x00,\xff,acme/shop/web,ä", uint8(2))
	f.Fuzz(func(t *testing.T, text string, limit uint8) {
		keys := strings.Split(text, ",")
		slices.Sort(keys)
		keys = slices.DeleteFunc(slices.Compact(keys), func(key string) bool { return key == "" })
		after := func(key string, most int) ([]string, error) {
			at, found := slices.BinarySearch(keys, key)
			if found {
				at++
			}
			return keys[at:min(len(keys), at+most)], nil
		}
		q, got := Query{Limit: 1 + int(limit)}, []string{}
		for pages := 0; pages <= len(keys)/q.Limit; pages++ {
			list, err := Read(t.Context(), q, after, same, same)
			if err != nil || len(list.Items) > q.Limit {
				t.Fatalf("%d items of %d: %v", len(list.Items), q.Limit, err)
			}
			got = append(got, list.Items...)
			if q.Cursor = list.Next; q.Cursor == "" {
				break
			}
		}
		if q.Cursor != "" || !slices.Equal(got, keys) {
			t.Errorf("%q become %q, and then %q", keys, got, q.Cursor)
		}
	})
}

// FuzzCursor: what a caller sends as a cursor is one that a page may have, but for line breaks, or it is refused.
func FuzzCursor(f *testing.F) {
	f.Add("YWNtZS9zaG9w")
	f.Add("YR")
	f.Add("YQ==\n")
	f.Fuzz(func(t *testing.T, cursor string) {
		key, err := Query{Cursor: cursor}.Key()
		if err != nil {
			return
		}
		list := Of(Query{Limit: 1}, []string{key, "the first one of the next page"}, same)
		if want := strings.NewReplacer("\r", "", "\n", "").Replace(cursor); list.Next != want {
			t.Errorf("%q is %q, whose cursor is %q", cursor, key, list.Next)
		}
	})
}
