package etag

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// FuzzIfMatch: whatever a caller requires, what was read of it is read again from the same ETags in quotes, and one that is added counts, but for *.
func FuzzIfMatch(f *testing.F) {
	f.Add(`"a", "b,c" ,,"d"`)
	f.Add(`W/"a", "*"`)
	f.Add("*")
	f.Fuzz(func(t *testing.T, list string) {
		required, errs := IfMatch(http.Header{"If-Match": {list}})
		if len(errs) > 0 || required == nil {
			return
		}
		mine := Of([]byte("mine"))
		again := mine
		for _, etag := range required {
			again += `,"` + etag + `"`
		}
		for _, lines := range [][]string{{again}, {mine, list}, {list, mine}} {
			read, errs := IfMatch(http.Header{"If-Match": lines})
			if len(errs) > 0 || !read.Has(mine) || len(read) != len(required)+1 {
				t.Errorf("%q is %q: %v", lines, read, errs)
			}
			for _, etag := range required {
				if !slices.Contains(read, etag) || strings.Contains(etag, `"`) {
					t.Errorf("%q lacks %q", lines, etag)
				}
			}
		}
	})
}

// FuzzIfNoneMatch: whatever else a caller names, the answer that it has is found, and another one is not, but for *.
func FuzzIfNoneMatch(f *testing.F) {
	f.Add(`W/"a", "b"`)
	f.Add(`"`)
	f.Fuzz(func(t *testing.T, others string) {
		mine, other := Of([]byte("mine")), Of([]byte("another"))
		for _, list := range []string{others + "," + mine, "W/" + mine + " ," + others} {
			if !(Known{IfNoneMatch: list}).Has(mine) {
				t.Errorf("%q has not %s", list, mine)
			}
			if (Known{IfNoneMatch: list}).Has(other) && !strings.Contains(others, "*") && !strings.Contains(others, other) {
				t.Errorf("%q has %s", list, other)
			}
		}
	})
}
