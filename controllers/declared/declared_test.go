package declared

import "testing"

func TestAnObjectHasTheWantedFields(t *testing.T) {
	type m = map[string]any
	type l = []any
	for name, c := range map[string]struct {
		is, want any
		holds    bool
	}{
		"the same":                   {m{"a": "x"}, m{"a": "x"}, true},
		"with defaults":              {m{"a": "x", "b": int64(1)}, m{"a": "x"}, true},
		"another value":              {m{"a": "y"}, m{"a": "x"}, false},
		"one is missing":             {m{"b": "x"}, m{"a": "x"}, false},
		"nothing there":              {nil, m{"a": "x"}, false},
		"nothing wanted or there":    {nil, m{}, true},
		"no map":                     {"x", m{"a": "x"}, false},
		"defaults in a list":         {l{m{"a": "x", "b": "y"}}, l{m{"a": "x"}}, true},
		"a shorter list":             {l{"a"}, l{"a", "b"}, false},
		"a longer list":              {l{"a", "b"}, l{"a"}, false},
		"another order":              {l{"b", "a"}, l{"a", "b"}, false},
		"an empty list, left out":    {nil, l{}, true},
		"a number of another type":   {float64(1), int64(1), false},
		"a map where text is wanted": {m{}, "x", false},
	} {
		if got := holds(c.is, c.want); got != c.holds {
			t.Errorf("%s: holds %t, want %t", name, got, c.holds)
		}
	}
}
