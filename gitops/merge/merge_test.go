package merge

import (
	"slices"
	"testing"
)

type item struct{ name, version string }

func TestOnlyItemsThatDifferAreReported(t *testing.T) {
	list := func(items ...item) (all []item) { return append(all, items...) }
	for name, c := range map[string]struct {
		before, after []item
		want          []string
	}{
		"nothing":          {},
		"equal":            {list(item{"a", "1"}, item{"b", "1"}), list(item{"a", "1"}, item{"b", "1"}), nil},
		"added":            {list(item{"b", "1"}), list(item{"a", "1"}, item{"b", "1"}, item{"c", "1"}), []string{"→a1", "→c1"}},
		"removed":          {list(item{"a", "1"}, item{"b", "1"}, item{"c", "1"}), list(item{"b", "1"}), []string{"a1→", "c1→"}},
		"changed":          {list(item{"a", "1"}, item{"b", "1"}), list(item{"a", "1"}, item{"b", "2"}), []string{"b1→b2"}},
		"one for another":  {list(item{"a", "1"}), list(item{"b", "1"}), []string{"a1→", "→b1"}},
		"one before all":   {list(item{"c", "1"}), list(item{"a", "1"}), []string{"→a1", "c1→"}},
		"all of it is new": {nil, list(item{"a", "1"}), []string{"→a1"}},
	} {
		var got []string
		Differ(c.before, c.after, func(i item) string { return i.name }, func(b, a item) {
			got = append(got, b.name+b.version+"→"+a.name+a.version)
		})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
