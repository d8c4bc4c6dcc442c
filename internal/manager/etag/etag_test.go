package etag

import (
	"net/http"
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
		etags, ok := parse(list)
		if diff := cmp.Diff(want.etags, etags); ok != want.ok || ok && diff != "" {
			t.Errorf("%q: %t %s", list, ok, diff)
		}
	}
}

func TestAVersionMayBeChangedIfItIsOneThatIsRequired(t *testing.T) {
	version, other := Of([]byte("a")), Of([]byte("b"))
	for name, c := range map[string]struct {
		lines []string
		has   bool
	}{
		"no header":        {nil, true},
		"any":              {[]string{"*"}, true},
		"this one":         {[]string{version}, true},
		"one of two lines": {[]string{other, version}, true},
		"another one":      {[]string{other}, false},
		"a weak one":       {[]string{"W/" + version}, false},
	} {
		t.Run(name, func(t *testing.T) {
			required, errs := IfMatch(http.Header{"If-Match": c.lines})
			if len(errs) > 0 || required.Has(version) != c.has {
				t.Errorf("%v: %v", errs, required)
			}
		})
	}
	if _, errs := IfMatch(http.Header{"If-Match": {"a"}}); len(errs) != 1 {
		t.Errorf("without quotes: %v", errs)
	}
}

// TestETagsThatAreWrittenAreRead, with anything between them that a list may have.
func TestETagsThatAreWrittenAreRead(t *testing.T) {
	for list, want := range map[string][]string{
		"\"a\"\t,\t\"b\"": {"a", "b"}, `"a","b"`: {"a", "b"}, `"ä!~"`: {"ä!~"}, `"W/a"`: {"W/a"}, `"*"`: {"*"}, ",, \"a\"": {"a"}, `"a", W/"b", "c"`: {"a", "c"}, " * ": nil,
	} {
		if got, ok := parse(list); !ok || !cmp.Equal(got, want) {
			t.Errorf("%q: %q, %t; want %q", list, got, ok, want)
		}
	}
	for _, list := range []string{`"a b"`, "\"a\x7f\"", `"a"b`, `"a";"b"`, `W/a`, `W/`, `**`, `*, "a"`, `'a'`} {
		if got, ok := parse(list); ok {
			t.Errorf("%q is read as %q", list, got)
		}
	}
}
