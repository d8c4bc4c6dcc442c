package writes

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestETagsAreReadAsInRFC9110(t *testing.T) {
	for list, want := range map[string]struct {
		etags []string
		ok    bool
	}{
		`*`:                {nil, true},
		`"a"`:              {[]string{"a"}, true},
		`"a", "b,c" ,,"d"`: {[]string{"a", "b,c", "d"}, true},
		`W/"a"`:            {[]string{}, true},
		`W/"a", "b"`:       {[]string{"b"}, true},
		`""`:               {[]string{""}, true},
		``:                 {nil, false},
		` , `:              {nil, false},
		`a`:                {nil, false},
		`"a" "b"`:          {nil, false},
		`"a`:               {nil, false},
		`w/"a"`:            {nil, false},
		`"a", *`:           {nil, false},
		"\"a\tb\"":         {nil, false},
	} {
		etags, ok := parseETags(list)
		if diff := cmp.Diff(want.etags, etags); ok != want.ok || ok && diff != "" {
			t.Errorf("%q: %t %s", list, ok, diff)
		}
	}
}
