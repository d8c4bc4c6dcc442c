package hostname

import "testing"

// TestADomainOverlapsWithThatOfAnotherOwner: the widest domain of another owner comes first, then the same one, and those below last.
func TestADomainOverlapsWithThatOfAnotherOwner(t *testing.T) {
	var all Entries
	all.Add("acme", []string{"acme.example", "shop.acme.example"})
	all.Add("rival", []string{"rival.example", "a.b.acme.example", "com"})
	for name, c := range map[string]struct {
		owner, domain string
		want          Entry
		is            bool
	}{
		"its own, above one":  {"acme", "acme.example", Entry{"rival", 1}, true},
		"no other":            {"acme", "shop.acme.example", Entry{}, false},
		"below another":       {"rival", "x.shop.acme.example", Entry{"acme", 0}, true},
		"the same as another": {"rival", "shop.acme.example", Entry{"acme", 0}, true},
		"above another":       {"acme", "b.acme.example", Entry{"rival", 1}, true},
		"below a top level":   {"acme", "acme.com", Entry{"rival", 2}, true},
		"only alike":          {"acme", "evilrival.example", Entry{}, false},
	} {
		if got, is := all.Overlap(c.owner, c.domain); got != c.want || is != c.is {
			t.Errorf("%s: %v %t", name, got, is)
		}
	}
	if _, is := (&Entries{}).Overlap("acme", "acme.example"); is {
		t.Error("nobody has a domain")
	}
}
